"""What concerns all ledgers is done by every volume."""

from __future__ import annotations

import errno
from dataclasses import fields, replace

import pytest

from bookkeeper.errors import LedgerFencedError
from bookkeeper.ids import LedgerId
from bookkeeper.storage.base.results import EngineStats, OpenReport
from bookkeeper.volumes.calls.all_volumes import merged_report, merged_stats
from tests.bookkeeper.volumes.doors import Door


def report(**changes: object) -> OpenReport:
    found = merged_report([])
    return replace(found, **{"clean": True, "last_boot": 3, "fresh": False, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["clean", "fresh"])
def test_what_holds_for_all_volumes_holds(name: str) -> None:
    yes, no = report(**{name: True}), report(**{name: False})
    assert getattr(merged_report([yes, yes]), name) is True
    assert getattr(merged_report([yes, no]), name) is False


def test_what_was_found_on_one_volume_was_found() -> None:
    first = report(last_boot=5, replayed_groups=2, replayed_records=10, torn_tail="/a: torn", quarantined=["x"])
    second = report(last_boot=4, replayed_groups=1, replayed_records=1, limbo_reason="/b: lost", rebuilt=True)
    third = report(torn_tail="/c: torn", limbo_reason="/c: lost", quarantined=["y", "z"])
    found = merged_report([first, second, third])
    assert (found.last_boot, found.replayed_groups, found.replayed_records) == (5, 3, 11)
    assert (found.torn_tail, found.limbo_reason) == ("/a: torn; /c: torn", "/b: lost; /c: lost")
    assert found.rebuilt and found.quarantined == ["x", "y", "z"]
    quiet = merged_report([report(), report()])
    assert quiet.torn_tail is None and quiet.limbo_reason is None and not quiet.rebuilt and quiet.quarantined == []


def test_counters_are_added_and_the_slowest_sync_is_the_slowest() -> None:
    first, second = EngineStats(), EngineStats()
    numbers = [field for field in fields(EngineStats) if field.name != "sync_summary"]
    for at, field in enumerate(numbers, 1):
        setattr(first, field.name, at)
        setattr(second, field.name, 100 * at)
    first.sync_summary.observe(0.5)
    second.sync_summary.observe(0.25, 3)
    merged = merged_stats([first, second])
    assert (merged.sync_summary.count, merged.sync_summary.total) == (4, 1.25)
    for at, field in enumerate(numbers, 1):
        expected = 100 * at if field.name == "slowest_sync_seconds" else 101 * at
        assert getattr(merged, field.name) == expected, field.name
    assert merged_stats([]) == EngineStats()


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
