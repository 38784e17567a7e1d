"""Records that nobody waits for: written soon, and in few groups."""

from __future__ import annotations

import pytest

from bookkeeper.storage.base.durable_file import BLOCK
from bookkeeper.storage.journal.deferred_start import SOON_BYTES, SOON_TURNS, DeferredStart, StartDecision
from bookkeeper.storage.journal.group_sequence import GroupSequence
from bookkeeper.storage.journal.pending_group import GroupBuffer

NOT_NOW, NEXT_TURN, NOW = StartDecision.NOT_NOW, StartDecision.NEXT_TURN, StartDecision.NOW


class Desk:
    """A group that collects, and who decides when it is written."""

    def __init__(self, *, has_turns: bool = True) -> None:
        self.groups = GroupSequence(durable=0, file_id=1, file_bytes=1 << 24, inflight_bytes=1 << 24)
        self.deferred = DeferredStart(self.groups, has_turns=has_turns)
        self.end = BLOCK

    def add(self, size: int = 100) -> None:
        group = self.groups.collecting or self.groups.collect(GroupBuffer(2 * SOON_BYTES + BLOCK), 1, self.end)
        group.add_record(7, bytes(size))
        self.groups.took(size)
        self.end += size

    def add_and_ask(self, size: int = 100, busy: bool = False) -> StartDecision:
        self.add(size)
        return self.deferred.wanted(busy)


@pytest.mark.rule("W11")
def test_a_turn_that_brings_no_more_is_the_last_one() -> None:
    desk = Desk()
    assert desk.add_and_ask() is NEXT_TURN
    assert desk.add_and_ask() is NOT_NOW, "one turn is awaited at a time"
    assert desk.deferred.turn_over(False) is NEXT_TURN, "it brought one more"
    assert desk.deferred.turn_over(False) is NOW


@pytest.mark.rule("W11")
def test_a_few_in_every_turn_are_written_after_so_many_turns() -> None:
    desk = Desk()
    verdicts = [desk.add_and_ask()]
    while verdicts[-1] is NEXT_TURN:
        desk.add()
        verdicts.append(desk.deferred.turn_over(False))
    assert verdicts == [NEXT_TURN] * SOON_TURNS + [NOW]
    desk.groups.close()
    desk.groups.number()
    desk.groups.made_durable()
    assert desk.add_and_ask() is NEXT_TURN, "the next ones have as many"


@pytest.mark.rule("W11")
def test_many_bytes_are_written_at_once_or_at_the_end_of_their_turn() -> None:
    desk = Desk()
    assert desk.add_and_ask(SOON_BYTES) is NOW
    desk = Desk()
    assert desk.add_and_ask() is NEXT_TURN
    desk.add(SOON_BYTES)
    assert desk.deferred.turn_over(False) is NOW


def test_while_the_journal_is_at_work_nothing_is_awaited() -> None:
    desk = Desk()
    assert desk.add_and_ask(busy=True) is NOT_NOW
    assert desk.deferred.wanted(False) is NEXT_TURN, "asked again when it is done"
    desk.add()
    assert desk.deferred.turn_over(True) is NOW, "group commit knows that it is at work"


def test_a_group_that_was_taken_along_leaves_the_turn_to_the_next_one() -> None:
    desk = Desk()
    assert desk.add_and_ask() is NEXT_TURN
    desk.groups.close()
    desk.groups.number()
    desk.groups.made_durable()
    desk.add()
    assert desk.deferred.turn_over(False) is NEXT_TURN
    assert desk.deferred.turn_over(False) is NOW


def test_what_is_closed_or_could_not_be_written_goes_first() -> None:
    desk = Desk()
    desk.add()
    desk.groups.close()
    assert desk.add_and_ask() is NOW
    desk.groups.number()
    assert desk.deferred.wanted(False) is NOW


def test_without_turns_everything_is_written_at_once() -> None:
    assert Desk(has_turns=False).add_and_ask() is NOW


@pytest.mark.rule("K23")
def test_a_failed_disk_writes_nothing_more() -> None:
    desk = Desk()
    desk.groups.fail(OSError("broken"))
    assert desk.add_and_ask() is NOT_NOW
