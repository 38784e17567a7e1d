"""The whole demo in short: nothing is lost with fencing, something is without."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def demo(*arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "examples.namenode_sim", "--short", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_nothing_is_lost_or_applied_twice_whatever_is_done(tmp_path: Path) -> None:
    status, output = demo("--dir", str(tmp_path / "demo"))
    last = output.strip().splitlines()[-1]
    assert last.startswith("namenode: nothing acknowledged lost, nothing applied twice: yes ("), output
    for part in (
        "1 active replica killed",
        "1 zombie woken",
        "1 bookie lost",
        "50 bits flipped",
        "1 checkpoint damaged",
    ):
        assert part in last
    met = re.search(r"(\d+) damaged records met", last)
    assert met is not None and int(met[1]) > 0
    assert output.count("are those of the journal, up to edit") == 2, "each replica has a copy of the journal"
    assert status == 0
    assert "was fenced by the journal" in output


def test_without_fencing_it_ends_in_no(tmp_path: Path) -> None:
    status, output = demo("--sabotage", "--dir", str(tmp_path / "demo"))
    assert "applied twice: no (" in output.strip().splitlines()[-1], output
    assert status == 1
