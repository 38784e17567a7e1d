"""Which log is compacted next, and when: intervals, shares, room, time and pace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.compaction.schedule import CompactionKind, CompactionSchedule, LogUse
from tests.bookkeeper.storage.workload import CONFIG

MINOR, MAJOR = CompactionKind.MINOR, CompactionKind.MAJOR


def changed(**settings: Any) -> StorageConfig:
    return replace(CONFIG, **settings)


def use(log_id: int, live: int, total: int = 100, **more: object) -> LogUse:
    return LogUse(log_id=log_id, total=total, live=live, **more)  # type: ignore[arg-type]


def order(schedule: CompactionSchedule, kind: CompactionKind, *uses: LogUse, room: int = 1 << 40) -> list[int]:
    schedule.begin(kind, 0.0)
    schedule.choose(uses)
    taken = []
    while (log := schedule.next_log(0.0, room)) is not None:
        taken.append(log.log_id)
    schedule.end(0.0, None)
    return taken


def test_a_minor_run_is_due_every_hour_and_a_major_one_every_day() -> None:
    schedule = CompactionSchedule(CONFIG, 100.0)
    assert schedule.due(100.0 + 3599) is None
    assert schedule.due(100.0 + 3600) is MINOR
    schedule.begin(MINOR, 3700.0)
    assert schedule.due(3700.0 + 90_000) is None, "one run at a time"
    schedule.end(3710.0, None)
    assert schedule.due(3710.0 + 3599) is None and schedule.due(3710.0 + 3600) is MINOR
    assert schedule.due(100.0 + 86_400) is MAJOR
    schedule.begin(MAJOR, 86_500.0)
    schedule.end(86_600.0, None)
    assert schedule.due(86_600.0 + 3599) is None, "it was a minor one as well"


@pytest.mark.parametrize("off", [0.0, -1.0])
def test_a_threshold_or_an_interval_of_0_or_less_switches_a_kind_off(off: float) -> None:
    for name in ("compaction_ratio", "compaction_interval_s"):
        schedule = CompactionSchedule(changed(**{f"minor_{name}": off}), 0.0)
        assert schedule.due(80_000.0) is None and schedule.due(90_000.0) is MAJOR
        schedule = CompactionSchedule(changed(**{f"minor_{name}": off, f"major_{name}": off}), 0.0)
        assert schedule.due(1e9) is None
    schedule = CompactionSchedule(replace(CONFIG, minor_compaction_ratio=off), 0.0)
    assert order(schedule, MINOR, use(1, 1)) == []


def test_the_smallest_living_share_comes_first_and_what_is_above_the_threshold_stays() -> None:
    schedule = CompactionSchedule(CONFIG, 0.0)
    logs = [use(1, 10), use(2, 19), use(3, 20), use(4, 5), use(5, 79), use(6, 80), use(7, 100), use(8, 1, 1000)]
    assert order(schedule, MINOR, *logs) == [8, 4, 1, 2]
    assert order(schedule, MAJOR, *logs) == [8, 4, 1, 2, 3, 5]


@pytest.mark.rule("G4")
def test_logs_that_are_filling_empty_unreadable_or_left_are_not_taken() -> None:
    schedule = CompactionSchedule(CONFIG, 0.0)
    schedule.leave(4, "it is damaged")
    logs = [use(1, 1, filling=True), use(2, 0), use(3, 1, unreadable="no map"), use(4, 1), use(5, 1), use(6, 0, 0)]
    assert order(schedule, MAJOR, *logs) == [5]
    assert schedule.left == {4: "it is damaged"}


@pytest.mark.rule("G6")
def test_a_log_whose_copies_have_no_room_is_passed_over_and_named() -> None:
    schedule = CompactionSchedule(CONFIG, 0.0)
    assert order(schedule, MAJOR, use(1, 50), use(2, 30, 1000), use(3, 40), room=40) == [2, 3]
    assert schedule.stopped_by == "what lives in log 1 needs 50 bytes, and 40 are free"


def test_a_run_begins_no_log_when_its_time_is_over() -> None:
    schedule = CompactionSchedule(replace(CONFIG, compaction_run_s=60.0), 0.0)
    schedule.begin(MAJOR, 1000.0)
    schedule.choose([use(1, 1), use(2, 2), use(3, 3)])
    first = schedule.next_log(1059.0, 100)
    assert first is not None and first.log_id == 1
    assert schedule.next_log(1060.0, 100) is None
    assert schedule.stopped_by == "2 logs are left for the next run: this one has taken 60 s"
    schedule = CompactionSchedule(replace(CONFIG, compaction_run_s=0.0), 0.0)
    schedule.begin(MAJOR, 0.0)
    schedule.choose([use(1, 1)])
    assert schedule.next_log(1e9, 100) is not None


def test_the_pace_holds_over_many_pieces_and_a_pause_is_not_made_up_for() -> None:
    schedule = CompactionSchedule(replace(CONFIG, compaction_bytes_per_s=1000), 0.0)
    schedule.begin(MINOR, 10.0)
    assert schedule.pause_s(500, 10.0) == pytest.approx(0.5)
    assert schedule.pause_s(500, 10.1) == pytest.approx(0.9), "what was too early is waited for"
    assert schedule.pause_s(100, 100.0) == pytest.approx(0.1), "what was too late is not"
    assert CompactionSchedule(replace(CONFIG, compaction_bytes_per_s=0), 0.0).pause_s(1 << 30, 0.0) == 0.0


def test_nothing_is_due_while_it_is_suspended() -> None:
    schedule = CompactionSchedule(CONFIG, 0.0)
    schedule.suspend()
    assert schedule.due(4000.0) is None
    schedule.resume()
    assert schedule.due(4000.0) is MINOR


@pytest.mark.rule("G5")
def test_a_run_that_an_error_ended_is_not_a_good_one_and_the_next_one_comes() -> None:
    schedule = CompactionSchedule(CONFIG, 0.0)
    schedule.begin(MINOR, 3600.0)
    schedule.end(3601.0, "no space")
    assert schedule.last_good is None and schedule.stopped_by == "no space"
    assert schedule.due(3601.0 + 3600) is MINOR


@pytest.mark.rule("G5")
def test_the_moment_of_the_last_good_run_is_known() -> None:
    schedule = CompactionSchedule(CONFIG, 0.0)
    schedule.begin(MINOR, 8000.0)
    schedule.end(8001.0, None)
    assert schedule.last_good == 8001.0
