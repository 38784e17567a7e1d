"""Simulated worlds of streams: nothing is found in healthy ones, and planted bugs are. Each runs in a process of its
own, because what a crash leaves behind would be collected in the middle of another test."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

pytestmark = pytest.mark.timeout(300)


def worlds(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tests.segments.world.stream_worlds", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.rule("C1", "C2", "C3", "C4", "C5", "C6", "C7", "C9")
def test_a_world_with_faults_in_which_nothing_is_lost_the_same_each_time() -> None:
    """SEG-118 dedup survives fail-over; SEG-39 and SEG-43 an overtaken writer completes nothing"""
    said = worlds("--first", "4", "--seeds", "1")
    assert len(said.splitlines()) == 1, "no problem was found"
    numbers = re.match(r"seed 4: (\d+) acknowledged, (\d+) records, (\d+) duplicates told, (\d+) claims", said)
    assert numbers is not None
    assert int(numbers[1]) > 500 and int(numbers[3]) > 0 and int(numbers[4]) > 3
    assert worlds("--first", "4", "--seeds", "1") == said


@pytest.mark.rule("S14", "C4", "C9")
def test_a_world_in_which_batches_are_published_whole_in_order_and_once_among_faults() -> None:
    said = worlds("--first", "1001", "--seeds", "1")
    assert len(said.splitlines()) == 1, "no problem was found"
    numbers = re.search(r"(\d+) batches; .*kill_driver", said)
    assert numbers is not None and int(numbers[1]) > 20
