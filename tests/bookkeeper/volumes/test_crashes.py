"""Crash-point enumeration of a bookie with several ledger directories: whatever a crash leaves, what was acknowledged
is there; and when a disk is lost as well, nothing of it is denied.

The second half plants the bugs that this is meant to find, and sees it find them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from bookkeeper.errors import BookKeeperError
from bookkeeper.storage.base.results import Done
from bookkeeper.volumes.map.placement_log import PlacementLog
from bookkeeper.volumes.map.stored_ledger_map import StoredLedgerMap
from bookkeeper.volumes.routing.ledger_moves import LedgerMove, LedgerMoves
from tests.bookkeeper.storage.recording_disk import RecordingDisk, crash_images
from tests.bookkeeper.storage.workload import everything, violations
from tests.bookkeeper.volumes.workload import Published, denials, lose_one, open_volumes, volumes_life


def enumerate_crashes(seed: int, per_point: int, direct: bool) -> Iterator[tuple[str, list[str]]]:
    """Every image, and what was wrong with it; of each once more with a volume lost."""
    rng = random.Random(seed)
    disk = RecordingDisk(direct=direct)
    ends: Published = []
    truth = volumes_life(disk, random.Random(seed), ends)
    for at, kept, files in crash_images({}, disk.ops, rng, per_point):
        where = f"after {at} operations ({disk.ops[at - 1].kind} {disk.ops[at - 1].path}), kept {kept}"
        booted = RecordingDisk(files)
        published = max((end for when, end in ends if when <= at), default=None)
        bad: list[str] = []
        try:
            volumes, workers = open_volumes(booted, published)
            if volumes.suspects:
                bad.append(f"falsely in doubt: {sorted(volumes.suspects)}")
            bad += violations(truth, at, volumes, workers)
            first = everything(volumes, workers)
            again, workers = open_volumes(RecordingDisk(booted.files()), volumes.placement_log.end)
            if everything(again, workers) != first:
                bad.append("the second start gives another state")
        except (BookKeeperError, OSError, AssertionError) as error:
            bad = [f"{type(error).__name__}: {error}"]
        yield where, bad
        number = rng.choice([1, 2, 3])
        if (left := lose_one(files, number)) is not None:
            try:
                yield (
                    f"{where}, volume {number} lost",
                    denials(truth, at, *open_volumes(RecordingDisk(left), published)),
                )
            except (BookKeeperError, OSError, AssertionError) as error:
                yield f"{where}, volume {number} lost", [f"{type(error).__name__}: {error}"]


@pytest.mark.rule("B12", "K35", "B1", "B2", "B3", "B5")
@pytest.mark.parametrize("seed", range(3))
def test_every_crash_keeps_what_was_acknowledged_and_a_lost_disk_denies_nothing(seed: int) -> None:
    seen = 0
    for where, bad in enumerate_crashes(seed, 2, bool(seed % 2)):
        assert not bad, f"{where}: {bad}"
        seen += 1
    assert seen >= 300


# -- planted bugs ---------------------------------------------------------------------------------------------


def answered_before_it_is_placed(patch: pytest.MonkeyPatch) -> None:
    """K35: a ledger's first answer does not wait for its placement."""
    patch.setattr(StoredLedgerMap, "when_placed", lambda self, callback: callback(None))


def moved_before_the_copy_is_durable(patch: pytest.MonkeyPatch) -> None:
    """A move does not wait until what went to both before is durable on the target."""

    def at_once(self: LedgerMoves, move: LedgerMove, callback: Done) -> None:
        move.answers_wait = True
        callback(None)

    patch.setattr(LedgerMoves, "wait_for_both", at_once)


def answered_by_the_source_alone(patch: pytest.MonkeyPatch) -> None:
    """While a move is recorded, adds are answered when the source has them."""
    wait = LedgerMoves.wait_for_both

    def forgets(self: LedgerMoves, move: LedgerMove, callback: Done) -> None:
        wait(self, move, callback)
        move.answers_wait = False

    patch.setattr(LedgerMoves, "wait_for_both", forgets)


def placements_are_not_synced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("bookkeeper.volumes.map.placement_log.sync", lambda file: None)


def a_move_is_not_recorded(patch: pytest.MonkeyPatch) -> None:
    """A ledger is served from the target before that is written down."""
    patch.setattr(PlacementLog, "when_durable", lambda self, callback: callback(None))


@pytest.mark.parametrize(
    ("plant", "seed"),
    [
        (answered_before_it_is_placed, 0),
        (moved_before_the_copy_is_durable, 4),
        (answered_by_the_source_alone, 3),
        (placements_are_not_synced, 0),
        (a_move_is_not_recorded, 0),
    ],
)
def test_a_planted_bug_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert any(bad for _, bad in enumerate_crashes(seed, 2, bool(seed % 2)))
