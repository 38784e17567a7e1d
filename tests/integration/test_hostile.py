"""What sockets that only take up room do to the memory of a real bookie."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.hostile import KINDS, address_of, attack, resident
from benchmarks.processes import BookieProcesses
from bookkeeper.real import run

pytestmark = pytest.mark.integration


@pytest.mark.rule("P12", "X31", "X34")
@pytest.mark.timeout(120)
def test_a_bookie_keeps_little_of_half_frames_and_gives_it_back(tmp_path: Path) -> None:
    """Each connection kept its whole frame's size, without a bound for all of them; and what they had taken stayed
    with the process after they were gone, for the C library gives back only the end of its memory."""
    with BookieProcesses(tmp_path / "c", bookies=1) as cluster:
        half = [KINDS["half a frame of 5 MB"]]
        pid = cluster.pids[0]
        seen = run(attack(address_of(cluster), pid, 80, kinds=half, stay_s=1.0, after_s=0.0))
        assert seen.refused == 0
        assert seen.during - seen.before < 110, "64 MB, one frame beyond, and what connections take"
        while resident(pid) - seen.before > 40:  # within the test's time
            pass
