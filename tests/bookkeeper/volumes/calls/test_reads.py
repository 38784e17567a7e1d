"""What is asked of a ledger is asked of the volume that has it."""

from __future__ import annotations

from bookkeeper.codec.shapes import FRAME_MAX
from bookkeeper.ids import LedgerId
from tests.bookkeeper.storage.reads.test_cached_reads import reads_of
from tests.bookkeeper.volumes.doors import Door


def test_a_ledger_that_is_nowhere_is_not_here() -> None:
    door = Door()
    door.add(1, 0)
    assert door.volumes.has(LedgerId(1)) and not door.volumes.has(LedgerId(2))


def test_reads_of_what_is_at_hand_are_answered_by_the_volume_that_has_it() -> None:
    door = Door()
    for ledger in (1, 2):
        door.acked(ledger, 0, 1)
        assert door.volumes.placements.volume_of(ledger) == ledger
    reads = reads_of((1, 0), (1, 1), (2, 1), (3, 0))
    counts = []
    for i0 in (0, 2, 3):
        answers = door.volumes.try_read_cached(reads, i0, FRAME_MAX)
        counts.append(answers.n if answers is not None else 0)
    assert counts == [2, 1, 0], "one ledger's at a time, and none of a ledger that is nowhere"
