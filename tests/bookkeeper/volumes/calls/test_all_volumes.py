"""What concerns all ledgers is done by every volume."""

from __future__ import annotations

import errno

import pytest

from bookkeeper.errors import LedgerFencedError
from bookkeeper.ids import LedgerId
from tests.bookkeeper.volumes.doors import Door


def test_every_volume_is_compacted() -> None:
    door = Door()
    assert door.done(lambda done: door.volumes.compact(done, major=True)) is None
    assert [each.engine.stats.compactions for each in door.volumes.serving] == [1, 1]
    assert door.volumes.stats.compactions == 2


def test_a_retired_ledger_that_is_nowhere_is_forgotten_when_it_is_deleted() -> None:
    door = Door()
    door.acked(1, 0)
    door.acked(2, 0)
    door.volumes.members.lose(1, "burnt")
    assert door.volumes.end_suspicion(LedgerId(1), door.volumes.suspicion(LedgerId(1)))
    assert door.volumes.placements.retired == {1} and door.volumes.placements.volume_of(1) is None
    assert door.done(lambda done: door.volumes.collect((), done, never_again=[(2, 9)])) is None
    assert door.volumes.placements.retired == {1}
    assert door.done(lambda done: door.volumes.collect((), done, never_again=[(0, 9)])) is None
    assert not door.volumes.placements.retired
    with pytest.raises(LedgerFencedError, match="was deleted"):
        door.add(1, 1)


def test_a_ledger_keeps_its_place_until_every_volume_remembers_that_it_was_dropped() -> None:
    door = Door()
    door.acked(1, 0)
    door.disk.faults["open", "/d2/"] = OSError(errno.ENOSPC, "full")
    assert door.done(lambda done: door.volumes.collect({LedgerId(1)}, done)) is not None
    assert door.volumes.placements.volume_of(1) == 1
    door.disk.faults.clear()
    assert door.done(lambda done: door.volumes.collect({LedgerId(1)}, done)) is None
    assert door.volumes.placements.volume_of(1) is None


def test_what_a_failed_collection_has_left_goes_with_the_next_one_whatever_that_is_for() -> None:
    """The ledger is in no listing any more, so nobody asks for it to be collected again."""
    door = Door(3)
    for ledger_id in range(1, 5):
        door.acked(ledger_id, 0)
    door.disk.faults["open", "/d2/"] = OSError(errno.ENOSPC, "full")
    assert door.done(lambda done: door.volumes.collect({LedgerId(1)}, done)) is not None
    assert door.volumes.placements.volume_of(1) == 1 and 1 not in list(door.volumes.ledgers())
    door.disk.faults.clear()
    assert door.done(lambda done: door.volumes.collect({LedgerId(4)}, done)) is None
    placements = door.volumes.placements
    assert [placements.volume_of(each) is None for each in range(1, 5)] == [True, False, False, True]
    assert all(1 in each.engine.dropped for each in door.volumes.serving)
    placements = door.again().volumes.placements
    assert [placements.volume_of(each) is None for each in range(1, 5)] == [True, False, False, True], "and durably"
