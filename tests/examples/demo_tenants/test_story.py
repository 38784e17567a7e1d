"""The whole demo in short: nobody gets anything under a policy, and much without one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def demo(*arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "examples.demo_tenants", "--short", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.rule("X12", "X13", "X22")
def test_under_a_policy_nobody_gets_what_is_not_his(tmp_path: Path) -> None:
    status, output = demo("--dir", str(tmp_path / "demo"))
    last = output.strip().splitlines()[-1]
    assert last.startswith("tenants: nobody got what was not his: yes (8 attacks, 0 entries read, 0 fences"), output
    assert status == 0


def test_without_a_policy_it_ends_in_no(tmp_path: Path) -> None:
    status, output = demo("--sabotage", "--dir", str(tmp_path / "demo"))
    assert output.strip().splitlines()[-1].startswith("tenants: nobody got what was not his: no ("), output
    assert "entries read: " in output and "entries forged: " in output
    assert status == 1
