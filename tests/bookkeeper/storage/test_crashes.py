"""Crash-point enumeration: whatever a crash leaves, what was acknowledged is there and nothing else.

The second half plants the bugs that this is meant to find, and sees it find them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from bookkeeper.errors import BookKeeperError
from bookkeeper.seams import Disk, File
from bookkeeper.storage import checkpoint, durable, start
from bookkeeper.storage.checkpoint import Covered, Snapshot, run_checkpoint
from bookkeeper.storage.config import StorageConfig
from bookkeeper.storage.journal import JournalWriter, PendingGroup
from bookkeeper.storage.ledger_state import Kind
from bookkeeper.storage.manifest import Manifest
from tests.bookkeeper.storage.recording_disk import RecordingDisk, crash_images
from tests.bookkeeper.storage.workload import Truth, everything, open_engine, standard_life, violations


def boot_and_check(truth: Truth, at: int, files: dict[str, bytes]) -> tuple[list[str], RecordingDisk]:
    """Boot the real engine on an image, compare with the truth, crash at once and boot again."""
    disk = RecordingDisk(files)
    try:
        engine, workers = open_engine(disk)
        bad = violations(truth, at, engine, workers)
        first = everything(engine, workers)
        after = disk.files()
        again, workers = open_engine(RecordingDisk(after))
        if everything(again, workers) != first:
            bad.append("the second start gives another state")
    except (BookKeeperError, OSError, AssertionError) as error:
        bad = [f"{type(error).__name__}: {error}"]
    return bad, disk


def enumerate_crashes(seed: int, per_point: int, direct: bool) -> Iterator[tuple[str, list[str]]]:
    """Every image, and what was wrong with it. A tenth crash again inside their start."""
    rng = random.Random(seed)
    disk = RecordingDisk(direct=direct)
    truth = standard_life(disk)
    for at, kept, files in crash_images({}, disk.ops, rng, per_point):
        where = f"after {at} operations ({disk.ops[at - 1].kind} {disk.ops[at - 1].path}), kept {kept}"
        bad, booted = boot_and_check(truth, at, files)
        yield where, bad
        if rng.random() < 0.1 and booted.ops:
            images = list(crash_images(files, booted.ops[: rng.randrange(len(booted.ops)) + 1], rng, 4))
            again, kept_again, files_again = images[-1]
            bad, _ = boot_and_check(truth, at, files_again)
            yield f"{where}; in the start after {again}, kept {kept_again}", bad


@pytest.mark.rule("B1", "B2", "B3", "K1", "K2", "K3", "K7", "K8", "K9", "K10", "K12", "K13", "K14", "K16", "K17", "K31")
@pytest.mark.parametrize("direct", [False, True])
def test_every_crash_keeps_what_was_acknowledged(direct: bool) -> None:
    seen = 0
    for where, bad in enumerate_crashes(7, 10, direct):
        assert not bad, f"{where}: {bad}"
        seen += 1
    assert seen >= 1000
    print(f"{seen} images")
