"""What is read next, and when: by numbers alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.scrub.damage import CheckedFile, FileKind
from bookkeeper.storage.scrub.schedule import ScrubSchedule

CONFIG = StorageConfig(journal_dir="/j", ledger_dir="/l", scrub_period_s=1000.0, scrub_bytes_per_s=100)


def log(number: int, size: int = 100) -> CheckedFile:
    return CheckedFile(FileKind.LOG, number, size)


FILES = [CheckedFile(FileKind.MANIFEST, 0, 10), CheckedFile(FileKind.INDEX, 3, 40), log(1), log(2), log(9)]


def taken(schedule: ScrubSchedule) -> list[CheckedFile]:
    """What is left of a pass, each file read to its end."""
    found = []
    while (file := schedule.next_file()) is not None:
        found.append(file)
        schedule.file_done()
    return found


@pytest.mark.rule("K30")
def test_a_pass_reads_every_file_once_and_the_next_one_begins_when_the_period_is_over() -> None:
    schedule = ScrubSchedule(CONFIG, 50.0)
    assert schedule.due_in_s(50.0) == 0.0, "a new bookie begins"
    schedule.begin(FILES, 50.0)
    assert schedule.left == (5, 350) and taken(schedule) == FILES
    assert not schedule.running and schedule.ended and schedule.next_file() is None
    assert schedule.due_in_s(150.0) == 900.0 and schedule.due_in_s(2000.0) == 0.0
    schedule.begin(FILES[:2], 2000.0)
    assert taken(schedule) == FILES[:2] and schedule.due_in_s(2000.0) == 1000.0


@pytest.mark.rule("K30")
def test_after_a_restart_it_goes_on_behind_the_last_file() -> None:
    schedule = ScrubSchedule(CONFIG, 0.0)
    schedule.begin(FILES, 0.0)
    for _ in range(3):
        schedule.next_file()
        schedule.file_done()
    schedule.next_file()  # and is stopped in it
    again = ScrubSchedule(CONFIG, 7.0, passed_s=schedule.passed_s(300.0), behind=schedule.behind, ended=schedule.ended)
    assert again.due_in_s(7.0) == 0.0
    again.begin(FILES, 7.0)
    assert taken(again) == [log(2), log(9)] and again.due_in_s(7.0) == 700.0


def test_without_a_period_nothing_begins_by_itself() -> None:
    schedule = ScrubSchedule(replace(CONFIG, scrub_period_s=0.0), 0.0)
    assert schedule.due_in_s(5.0) is None
    schedule.begin(FILES, 5.0, hurried=True)
    assert taken(schedule) == FILES and schedule.due_in_s(1e9) is None and not schedule.too_slow(5.0)


@pytest.mark.rule("K30")
def test_a_doubted_file_comes_next_at_the_limit_and_the_pass_goes_on_where_it_was() -> None:
    schedule = ScrubSchedule(CONFIG, 0.0)
    schedule.doubt(log(7))
    schedule.doubt(log(7))
    assert schedule.doubts and schedule.next_file() == log(7)
    assert schedule.pause_s(50, 50, 0.0) == 0.5
    schedule.file_done()
    assert [schedule.behind] == [None]
    assert ScrubSchedule(CONFIG, 0.0).doubts is False
    schedule.begin(FILES, 0.0)
    schedule.next_file()
    schedule.file_done()
    schedule.doubt(log(9))
    assert schedule.next_file() == log(9) and schedule.pause_s(50, 50, 0.0) == 0.5
    schedule.file_done()
    assert schedule.behind == (int(FileKind.MANIFEST), 0) and taken(schedule) == FILES[1:]


@pytest.mark.rule("K30")
def test_a_file_that_is_being_read_gives_way_to_a_doubted_one_and_is_begun_anew() -> None:
    schedule = ScrubSchedule(CONFIG, 0.0)
    schedule.begin(FILES, 0.0)
    first = schedule.next_file()
    assert first == FILES[0] and [schedule.gives_way] == [False]
    schedule.doubt(log(9))
    assert schedule.gives_way
    schedule.put_back()
    assert schedule.next_file() == log(9)
    schedule.doubt(log(2))
    assert [schedule.gives_way] == [False], "one doubted file after the other"
    schedule.file_done()
    assert taken(schedule) == [log(2), *FILES]


def test_a_file_that_cannot_be_read_for_the_moment_holds_up_no_other() -> None:
    schedule = ScrubSchedule(CONFIG, 0.0)
    schedule.begin(FILES, 0.0)
    schedule.next_file()
    schedule.put_off()
    assert taken(schedule) == [*FILES[1:], FILES[0]]
    schedule.doubt(log(7))
    schedule.doubt(log(8))
    schedule.next_file()
    schedule.put_off()
    assert taken(schedule) == [log(8), log(7)]


def test_it_spreads_over_the_period_and_hurries_only_when_it_is_asked_to() -> None:
    schedule = ScrubSchedule(CONFIG, 0.0)
    schedule.begin([log(1, 1000)], 0.0)
    schedule.next_file()
    assert schedule.pause_s(100, 900, 0.0) == pytest.approx(100.0), "a tenth of the bytes in a tenth of the time"
    assert schedule.pause_s(100, 900, 995.0) == 1.0, "never faster than the limit"
    assert schedule.pause_s(0, 900, 0.0) == 0.0
    schedule.begin([log(1, 1000)], 0.0, hurried=True)
    schedule.next_file()
    assert schedule.hurried and schedule.pause_s(100, 900, 0.0) == 1.0
    unlimited = ScrubSchedule(replace(CONFIG, scrub_bytes_per_s=0), 0.0)
    unlimited.begin([log(1, 1000)], 0.0, hurried=True)
    unlimited.next_file()
    assert unlimited.pause_s(100, 900, 0.0) == 0.0


def test_it_says_when_the_limit_is_too_small() -> None:
    schedule = ScrubSchedule(CONFIG, 0.0)
    schedule.begin([log(1, 50_000)], 0.0)
    assert not schedule.too_slow(0.0) and schedule.too_slow(600.0)
    schedule.begin([log(1, 200_000)], 0.0)
    assert schedule.too_slow(0.0)


@pytest.mark.rule("K30")
@given(
    sizes=st.lists(st.integers(1, 400), min_size=1, max_size=20),
    step=st.integers(1, 150),
    limit=st.sampled_from([0, 50, 100]),
)
def test_a_pass_ends_within_the_period_if_the_limit_lets_it(sizes: list[int], step: int, limit: int) -> None:
    """By any steps: no second has more than the limit, and it is through in time, or as soon as the limit allows."""
    config = replace(CONFIG, scrub_bytes_per_s=limit)
    schedule, now = ScrubSchedule(config, 0.0), 0.0
    files = [log(number, size) for number, size in enumerate(sizes)]
    schedule.begin(files, 0.0)
    seen = []
    while (file := schedule.next_file()) is not None:
        left = file.size
        while left > 0:
            count = min(step, left)
            left -= count
            pause = schedule.pause_s(count, left, now)
            assert limit == 0 or pause >= count / limit
            now += pause
        schedule.file_done()
        seen.append(file)
    assert seen == files
    at_limit = sum(sizes) / limit if limit else 0.0
    assert now <= max(1000.0, at_limit) + 1e-6
