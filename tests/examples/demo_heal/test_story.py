"""The whole demo in short: whole with autorecovery, not whole without it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def demo(*arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "examples.demo_heal", "--short", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_cluster_to_which_all_of_it_is_done_is_whole_in_the_end(tmp_path: Path) -> None:
    status, output = demo("--dir", str(tmp_path / "demo"))
    last = output.strip().splitlines()[-1]
    assert last.startswith("heal: whole: yes ("), output
    for part in ("2 bookies lost", "1 came back empty", "1 filled up", "1 taken out of service", "50 bits flipped"):
        assert part in last
    assert status == 0
    assert "b2 is refused with an empty disk: bk: " in output
    assert "a rack was lost: b7 and b8 were killed at once" in output
    assert "; 0 ledgers had two copies of an entry there" in output, "each copy of an entry stands in a rack of its own"
    assert "healed after the blow to a rack" in output


def test_without_autorecovery_it_ends_in_no(tmp_path: Path) -> None:
    status, output = demo("--sabotage", "--dir", str(tmp_path / "demo"))
    assert output.strip().splitlines()[-1].startswith("heal: whole: no ("), output
    assert status == 1
