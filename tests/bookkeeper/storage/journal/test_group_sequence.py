"""The order of groups: one is written at a time, answers only for what is durable, and nothing leaves too early."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from bookkeeper.codec import record
from bookkeeper.errors import InvariantError
from bookkeeper.storage.base.durable_file import BLOCK
from bookkeeper.storage.index.entry_index import place
from bookkeeper.storage.journal.group_sequence import NOWHERE, UNLOGGED_MAX, GroupSequence
from bookkeeper.storage.journal.journal_format import padded
from bookkeeper.storage.journal.pending_group import GroupBuffer, GroupState, PendingGroup
from tests.bookkeeper.storage.workload import make_entry
from tests.examples_of import examples

FILE_BYTES, IN_FLIGHT = 8 * BLOCK, 4000
RECORD = record(make_entry(1, 0))


class Pen:
    """Collects as group commit does: groups lie one behind the other in the entry log."""

    def __init__(self, durable: int = 7) -> None:
        self.groups = GroupSequence(durable=durable, file_id=3, file_bytes=FILE_BYTES, inflight_bytes=IN_FLIGHT)
        self.log, self.end = 1, BLOCK

    def take(self, records: int = 1) -> bool:
        """Take records; whether callers are told to pause."""
        group = self.groups.collecting
        if group is not None and not group.room_for(records * len(RECORD)):
            self.close()
        group = self.groups.collecting or self.groups.collect(GroupBuffer(1 << 16), self.log, self.end)
        for _ in range(records):
            group.add_record(1, RECORD)
        return self.groups.took(records * len(RECORD))

    def close(self) -> None:
        group = self.groups.close()
        assert group is not None
        self.end = group.log_offset + group.size

    def written(self, records: int = 1) -> PendingGroup:
        self.take(records)
        self.close()
        return self.groups.number()


def ignored(error: BaseException | None) -> None:
    """A waiter."""


@pytest.mark.rule("K9", "K10")
def test_groups_are_numbered_one_after_the_other_behind_what_is_durable() -> None:
    pen = Pen()
    first = pen.written()
    assert (first.sequence, first.file_id, first.file_offset) == (8, 3, BLOCK)
    pen.take()
    pen.close()
    with pytest.raises(InvariantError, match="K9"):
        pen.groups.number()
    assert pen.groups.made_durable() is first and pen.groups.durable == 8
    second = pen.groups.number()
    assert (second.sequence, second.file_offset) == (9, BLOCK + padded(first.size))
    pen.groups.validate_state()


@pytest.mark.rule("B7")
def test_a_place_is_held_by_the_group_that_has_its_record_until_that_is_logged() -> None:
    pen = Pen()
    first = pen.written()
    pen.take(2)
    second = pen.groups.collecting
    at = [place(1, BLOCK + number * len(RECORD)) for number in range(4)]
    assert [pen.groups.holding(each) for each in at] == [first, second, second, None]
    assert pen.groups.logged_below == pen.groups.cached_below == at[0]
    pen.groups.made_durable()
    pen.groups.made_logged()
    assert [pen.groups.holding(each) for each in at[:2]] == [None, second]


@pytest.mark.rule("K10")
def test_a_group_that_does_not_fit_begins_the_next_file_and_one_that_never_fits_takes_a_file_of_its_own() -> None:
    pen = Pen()
    places = []
    for records in (60, 150, 1, 1, 400, 1):
        group = pen.written(records)
        places.append((group.file_id, group.file_offset))
        pen.groups.validate_state()
        pen.groups.made_durable()
        pen.groups.made_logged()
        pen.groups.relieved()
    assert places == [(3, BLOCK), (3, 3 * BLOCK), (3, 7 * BLOCK), (4, BLOCK), (5, BLOCK), (6, BLOCK)]


@pytest.mark.rule("K7")
def test_nobody_is_answered_before_the_group_is_durable_and_nobody_twice() -> None:
    pen = Pen()
    group = pen.written()
    group.waiters.append(ignored)
    with pytest.raises(InvariantError, match="K7"):
        pen.groups.answerable(group)
    pen.groups.made_durable()
    assert pen.groups.answerable(group) == [ignored]
    assert pen.groups.answerable(group) == []


@pytest.mark.rule("K13")
def test_nobody_is_told_that_a_group_is_covered_before_it_is_in_the_entry_log() -> None:
    pen = Pen()
    group = pen.written()
    group.logged_waiters.append(ignored)
    pen.groups.made_durable()
    with pytest.raises(InvariantError, match="K13"):
        pen.groups.covered(group)
    pen.groups.made_logged()
    assert pen.groups.covered(group) == [ignored] and pen.groups.covered(group) == []


def test_records_are_in_memory_until_their_group_is_in_the_entry_log() -> None:
    pen = Pen()
    assert pen.groups.logged_below == NOWHERE
    first = pen.written()
    pen.take()
    assert pen.groups.logged_below == place(1, BLOCK)
    pen.groups.made_durable()
    assert pen.groups.logged_below == place(1, BLOCK) and pen.groups.newest_not_durable is pen.groups.collecting
    pen.groups.made_logged()
    assert pen.groups.logged_below == place(1, BLOCK + first.size)
    assert list(pen.groups.newest_first()) == [pen.groups.collecting]


@pytest.mark.rule("P12")
def test_callers_pause_once_and_go_on_once() -> None:
    pen = Pen()
    pauses = [pen.take() for _ in range(2 * IN_FLIGHT // len(RECORD))]
    assert pauses.count(True) == 1 and pen.groups.paused
    assert not pen.groups.relieved()
    pen.close()
    pen.groups.number()
    pen.groups.made_durable()
    assert not pen.groups.relieved(), "durable, and still in memory"
    pen.groups.made_logged()
    assert pen.groups.relieved() and not pen.groups.relieved()


@pytest.mark.rule("P12")
def test_callers_pause_above_the_limit_and_not_at_it() -> None:
    groups = GroupSequence(durable=0, file_id=1, file_bytes=FILE_BYTES, inflight_bytes=IN_FLIGHT)
    groups.collect(GroupBuffer(1 << 16), 1, BLOCK)
    assert not groups.took(IN_FLIGHT)
    assert groups.took(1)


@pytest.mark.rule("K26", "P12")
def test_nobody_pauses_for_what_is_blocked() -> None:
    pen = Pen()
    pen.take(2 * IN_FLIGHT // len(RECORD))
    assert pen.groups.block(OSError(errno.ENOSPC, "full")), "those who pause may go on"
    assert not pen.take(), "and nobody is told to pause"
    pen.groups.validate_state()
    pen.groups.unblock()
    assert pen.take(), "and again when writing goes on"


@pytest.mark.rule("K23")
def test_after_a_failure_no_group_is_numbered_and_everyone_is_told_in_order() -> None:
    pen = Pen()
    told: list[Callable[..., None]] = []
    for at in range(3):
        if at:
            pen.take()
            pen.close()
        group = pen.written() if not at else pen.groups.newest
        assert group is not None
        group.waiters.append(lambda error, at=at: None)  # type: ignore[misc]
        told += group.waiters
    assert pen.groups.fail(OSError(errno.EIO, "broken"))
    assert not pen.groups.fail(OSError(errno.EIO, "again")), "that is known"
    assert pen.groups.everyone() == told and pen.groups.everyone() == []
    pen.groups.made_durable()
    with pytest.raises(InvariantError, match="K23"):
        pen.groups.number()


SPOILT: dict[str, Callable[[GroupSequence], None]] = {
    "K9": lambda groups: setattr(groups, "durable", groups.durable + 1),
    "K10": lambda groups: setattr(groups, "file_offset", groups.file_offset + 1),
    "P12": lambda groups: setattr(groups, "in_flight", groups.in_flight - 1),
}


@pytest.mark.parametrize("broken", SPOILT)
def test_a_state_that_cannot_be_is_noticed(broken: str) -> None:
    pen = Pen()
    pen.written()
    pen.take()
    pen.groups.validate_state()
    SPOILT[broken](pen.groups)
    with pytest.raises(InvariantError, match=broken):
        pen.groups.validate_state()


class Groups(RuleBasedStateMachine):
    """Any order of events: the state is derived again after each."""

    def __init__(self) -> None:
        super().__init__()
        self.pen = Pen()
        self.asked: list[int] = []
        self.answered: list[int] = []
        self.pressure: list[bool] = []

    @property
    def groups(self) -> GroupSequence:
        return self.pen.groups

    @rule(records=st.integers(1, 60))
    def take(self, records: int) -> None:
        if self.pen.take(records):
            self.pressure.append(True)

    @precondition(lambda self: self.groups.collecting is not None)
    @rule(new_log=st.booleans())
    def close(self, new_log: bool) -> None:
        self.pen.close()
        if new_log:
            self.pen.log, self.pen.end = self.pen.log + 1, BLOCK

    @precondition(lambda self: self.groups.newest_not_durable is not None)
    @rule(follows=st.booleans())
    def wait(self, follows: bool) -> None:
        group = self.groups.newest_not_durable
        assert group is not None
        number = len(self.asked)
        self.asked.append(number)
        (group.logged_waiters if follows else group.waiters).append(self.waiter(number))

    def waiter(self, number: int) -> Any:
        def called(error: BaseException | None) -> None:
            self.answered.append(number)

        return called

    @precondition(
        lambda self: self.groups.closed and self.groups.writing is None and len(self.groups.unlogged) < UNLOGGED_MAX
    )
    @rule()
    def number(self) -> None:
        if self.groups.failure is not None:
            return
        before = self.groups.durable
        group = self.groups.number()
        assert group.sequence == before + 1 and group.state is GroupState.WRITING

    @precondition(lambda self: self.groups.writing is not None)
    @rule()
    def durable(self) -> None:
        group = self.groups.made_durable()
        self.groups.unblock()
        for waiter in self.groups.answerable(group):
            waiter(None)

    @precondition(lambda self: self.groups.oldest_unlogged is not None)
    @rule()
    def logged(self) -> None:
        group = self.groups.made_logged()
        for waiter in self.groups.covered(group):
            waiter(None)
        if self.groups.relieved():
            self.pressure.append(False)

    @precondition(lambda self: self.groups.writing is not None or self.groups.oldest_unlogged is not None)
    @rule()
    def block(self) -> None:
        if self.groups.block(OSError(errno.ENOSPC, "full")):
            self.pressure.append(False)

    @rule()
    def fail(self) -> None:
        if self.groups.fail(OSError(errno.EIO, "broken")):
            for waiter in self.groups.everyone():
                waiter(None)

    @invariant()
    def holds(self) -> None:
        self.groups.validate_state()
        assert len(self.answered) == len(set(self.answered)), "each once"
        assert all(one is not other for one, other in zip(self.pressure, self.pressure[1:], strict=False))


TestGroups = Groups.TestCase
TestGroups.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
