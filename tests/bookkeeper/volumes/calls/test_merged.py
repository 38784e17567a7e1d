"""What several engines have found and counted."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from bookkeeper.storage.base.results import EngineStats, OpenReport
from bookkeeper.volumes.calls.merged import merged_report, merged_stats


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
    for at, field in enumerate(fields(EngineStats), 1):
        setattr(first, field.name, at)
        setattr(second, field.name, 100 * at)
    merged = merged_stats([first, second])
    for at, field in enumerate(fields(EngineStats), 1):
        expected = 100 * at if field.name == "slowest_sync_seconds" else 101 * at
        assert getattr(merged, field.name) == expected, field.name
    assert merged_stats([]) == EngineStats()
