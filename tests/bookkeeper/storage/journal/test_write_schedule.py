"""When the journal writes, and on which thread: decided without a clock, a loop or a thread."""

from __future__ import annotations

import pytest

from bookkeeper.errors import InvariantError
from bookkeeper.storage.base.durable_file import BLOCK
from bookkeeper.storage.journal.group_sequence import UNLOGGED_MAX, GroupSequence
from bookkeeper.storage.journal.inline_sync import INLINE_BYTES, InlineSync
from bookkeeper.storage.journal.pending_group import GroupBuffer, PendingGroup
from bookkeeper.storage.journal.write_schedule import ALONE, NextWrite, WriteSchedule


class Desk:
    """Group commit without its files and threads."""

    def __init__(self, *, quick: bool = False, gap_s: float = 0.0, split_bytes: int = 4096) -> None:
        self.groups = GroupSequence(durable=0, file_id=1, file_bytes=1 << 20, inflight_bytes=1 << 20)
        self.inline = InlineSync(1e-4, on=quick)
        self.schedule = WriteSchedule(self.groups, self.inline, gap_s=gap_s, split_bytes=split_bytes)
        self.end = BLOCK

    def collect(self, size: int = 100, waiters: int = 1) -> PendingGroup:
        group = self.groups.collect(GroupBuffer(2 * size + BLOCK), 1, self.end)
        group.add_record(7, bytes(size))
        self.groups.took(size)
        group.waiters += [lambda error: None] * waiters
        self.end += size
        return group

    def next(self, now: float = 0.0, copy_failed: bool = False) -> NextWrite:
        return self.schedule.next(now, copy_failed)

    def number(self) -> PendingGroup:
        self.groups.close()
        return self.groups.number()

    def hand_over(self, now: float = 0.0) -> bool:
        """To the worker; whether the same job copies it."""
        return self.schedule.handed_over(self.number(), now)

    def write_here(self, waiters: int = 1) -> None:
        self.collect(waiters=waiters)
        group = self.number()
        self.schedule.written_here(group, 0.0)
        self.groups.made_durable()
        self.groups.answerable(group)
        self.groups.made_logged()


def test_there_is_nothing_to_do_while_nothing_is_collected() -> None:
    assert Desk().next() is NextWrite.NOTHING


@pytest.mark.rule("K9")
def test_one_group_at_a_time_goes_to_the_worker_and_the_next_when_it_is_back() -> None:
    desk = Desk()
    desk.collect()
    assert desk.next() is NextWrite.BY_WORKER
    desk.hand_over()
    desk.collect()
    assert desk.next() is NextWrite.NOTHING
    desk.groups.made_durable()
    desk.schedule.handed_back()
    assert desk.next() is NextWrite.BY_WORKER


@pytest.mark.rule("K9")
def test_a_second_group_for_the_worker_is_refused() -> None:
    desk = Desk()
    desk.collect()
    desk.hand_over()
    with pytest.raises(InvariantError):
        desk.schedule.handed_over(desk.collect(), 0.0)


def test_a_group_that_could_not_be_written_is_next_again() -> None:
    desk = Desk(quick=True, gap_s=1.0)
    desk.collect()
    desk.hand_over()
    desk.schedule.handed_back()
    desk.groups.block(OSError("for now"))
    assert desk.next(0.5) is NextWrite.BY_WORKER, "it has its number: neither a gap nor the loop is for it"


def test_the_journal_waits_for_an_entry_log_that_is_behind() -> None:
    desk = Desk()
    for _ in range(UNLOGGED_MAX):
        desk.collect()
        desk.number()
        desk.groups.made_durable()
    desk.collect()
    assert desk.next() is NextWrite.NOTHING
    desk.groups.made_logged()
    assert desk.next() is NextWrite.BY_WORKER


@pytest.mark.rule("K26")
def test_a_copy_that_failed_is_tried_before_anything_is_written() -> None:
    desk = Desk()
    desk.collect()
    assert desk.next(copy_failed=True) is NextWrite.COPY_FIRST
    desk.hand_over()
    assert desk.next(copy_failed=True) is NextWrite.NOTHING, "the worker is at it"


@pytest.mark.rule("K23")
def test_nothing_is_written_or_copied_when_the_disk_has_failed() -> None:
    desk = Desk()
    desk.collect()
    desk.groups.fail(OSError("broken"))
    assert desk.next() is NextWrite.NOTHING
    assert desk.next(copy_failed=True) is NextWrite.NOTHING


# -- a gap between syncs ----------------------------------------------------------------------------------


def test_two_syncs_begin_no_sooner_than_the_gap_after_each_other() -> None:
    desk = Desk(gap_s=0.010)
    desk.collect()
    assert desk.next(100.0) is NextWrite.BY_WORKER, "the first one has none before it"
    desk.hand_over(100.0)
    desk.groups.made_durable()
    desk.schedule.handed_back()
    desk.collect()
    assert desk.next(100.004) is NextWrite.AFTER_GAP
    assert desk.schedule.gap_left_s == pytest.approx(0.006)
    assert desk.next(100.005) is NextWrite.NOTHING, "one timer"
    desk.schedule.gap_over()
    assert desk.next(100.009) is NextWrite.AFTER_GAP, "a timer that came early"
    desk.schedule.gap_over()
    assert desk.next(100.010) is NextWrite.BY_WORKER


def test_a_group_that_is_full_waits_for_no_gap() -> None:
    desk = Desk(gap_s=1.0)
    desk.collect()
    desk.hand_over(0.0)
    desk.groups.made_durable()
    desk.schedule.handed_back()
    desk.collect()
    desk.groups.close()
    assert desk.next(0.1) is NextWrite.BY_WORKER


# -- on the loop's thread ---------------------------------------------------------------------------------


def test_where_syncs_are_quick_what_comes_in_one_turn_is_one_group() -> None:
    desk = Desk(quick=True)
    desk.collect()
    assert desk.next() is NextWrite.AT_END_OF_TURN
    assert desk.next() is NextWrite.NOTHING, "it is awaited"
    desk.schedule.turn_ended()
    assert desk.next() is NextWrite.AT_END_OF_TURN


def test_who_was_alone_often_enough_is_written_at_once_until_another_comes() -> None:
    desk = Desk(quick=True)
    for _ in range(ALONE):
        desk.write_here()
    group = desk.collect()
    assert desk.next() is NextWrite.ON_LOOP
    desk.number()
    desk.schedule.written_here(group, 0.0)
    desk.groups.made_durable()
    desk.collect()
    assert desk.next() is NextWrite.AT_END_OF_TURN, "the one before it is not in the entry log"
    desk.schedule.turn_ended()
    desk.number()
    desk.groups.made_durable()
    desk.groups.made_logged()
    desk.groups.made_logged()
    desk.write_here(waiters=2)
    desk.collect()
    assert desk.next() is NextWrite.AT_END_OF_TURN, "they come in company again"


def test_slow_syncs_go_to_the_worker() -> None:
    desk = Desk(quick=True)
    desk.inline.note(0.0, 1.0, 100)
    desk.collect()
    assert desk.next() is NextWrite.BY_WORKER


@pytest.mark.parametrize(
    ("size", "waiters", "files_open", "fits"),
    [
        (INLINE_BYTES, 1, True, True),
        (INLINE_BYTES + 1, 1, True, False),
        (100, 0, True, False),
        (100, 1, False, False),
    ],
)
def test_only_small_groups_that_somebody_waits_for_hold_up_the_loop(
    size: int, waiters: int, files_open: bool, fits: bool
) -> None:
    desk = Desk(quick=True)
    desk.collect(size, waiters)
    assert desk.schedule.fits_loop(desk.number(), files_open=files_open) is fits


def test_while_a_group_is_on_its_way_to_the_entry_log_the_loop_writes_none() -> None:
    desk = Desk(quick=True)
    desk.collect()
    desk.number()
    desk.groups.made_durable()
    desk.collect()
    assert not desk.schedule.fits_loop(desk.number(), files_open=True)


# -- who copies -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "same_job"), [(4096, True), (4097, False)])
def test_a_small_group_is_copied_by_the_job_that_writes_it(size: int, same_job: bool) -> None:
    desk = Desk(split_bytes=4096)
    desk.collect(size)
    assert desk.hand_over() is same_job


def test_a_small_group_behind_one_that_is_being_copied_is_copied_after_it() -> None:
    desk = Desk()
    desk.collect()
    desk.number()
    desk.groups.made_durable()
    desk.collect()
    assert desk.hand_over() is False
