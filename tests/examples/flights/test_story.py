"""The whole of ``make demo``: every row counted once, whatever is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.timeout(900)]

pytest.importorskip("pyspark")


def test_every_flight_is_counted_once_though_bookie_gateway_and_drivers_are_lost(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "examples.flights", "--dir", str(tmp_path / "demo")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    output = done.stdout + done.stderr
    last = output.strip().splitlines()[-1]
    assert last.startswith("demo: exactly once: yes ("), output
    for part in ("336776 rows", "driver killed 3 times", "bookie lost 1", "gateway killed 1", "zombie refused 1"):
        assert part in last
    assert done.returncode == 0
