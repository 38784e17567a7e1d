"""The ensemble of a writer; its stories with adds are in test_writer.py."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bookkeeper.errors import BookieFailedError, InvariantError, LedgerFencedError, UnauthorizedError
from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger.config import WriterConfig
from bookkeeper.ledger.ensemble.sync_policy import sync_policy
from bookkeeper.ledger.ensemble.writer_ensemble import (
    WAIT,
    EndWriter,
    PlannedChange,
    Readmit,
    Replace,
    WatchAgain,
    WriterEnsemble,
)
from bookkeeper.ledger.metadata import Fragment, LedgerMetadata
from bookkeeper.ledger.write import ChangeEnsemble, LedgerWriter
from bookkeeper.ledger.write.effects import ForceDone, SendForce, WatchIncarnation
from tests.bookkeeper.ledger.write.test_writer import B1, B2, B3, B4, LOST, SPEC, acks, add, change, of


def writer() -> LedgerWriter:
    return LedgerWriter(LedgerMetadata.create(SPEC, (B1, B2, B3)))


@pytest.mark.rule("W5", "W10b")
def test_a_failed_bookie_is_watched_and_a_stand_in_is_asked_for() -> None:
    machine = writer()
    add(machine)
    acks(machine, "0:b1 0:b2")
    effects = machine.on_bookie_failed(B3, LOST, 1.0)
    assert of(WatchIncarnation, effects) == [WatchIncarnation(B3)]
    (wanted,) = of(ChangeEnsemble, effects)
    assert isinstance(wanted, ChangeEnsemble)
    assert (wanted.failed, wanted.keep, wanted.first_entry) == ((B3,), (B1, B2), 1)
    assert (machine.failed_bookies, machine.is_changing) == ((B3,), True)


@pytest.mark.rule("W11")
def test_a_force_that_is_under_way_asks_the_stand_in_too() -> None:
    machine = writer()
    add(machine)
    acks(machine, "0:b1 0:b2")
    number, effects = machine.force(0.0)
    assert of(SendForce, effects) == [SendForce(B1, number), SendForce(B2, number)]
    machine.on_forced(B1, number, 0.0)
    machine.on_forced(B2, number, 0.0)
    machine.on_bookie_failed(B3, LOST, 0.0)
    assert of(SendForce, change(machine, 1, b3="b4")) == [SendForce(B4, number)]
    assert of(ForceDone, machine.on_forced(B4, number, 0.0)) == [ForceDone(number)]


@pytest.mark.rule("W11")
def test_with_deferred_sync_there_is_no_change_also_when_nothing_is_in_flight() -> None:
    machine = LedgerWriter(LedgerMetadata.create(SPEC, (B1, B2, B3)), WriterConfig(deferred_sync=True))
    assert of(ChangeEnsemble, machine.on_bookie_failed(B3, LOST, 0.0)) == []
    assert isinstance(machine.error, BookieFailedError)
    assert machine.on_spares_changed(0.0) == []


# -- verdicts ------------------------------------------------------------------------------------------------


def ensemble(config: WriterConfig | None = None) -> WriterEnsemble:
    config = config or WriterConfig()
    return WriterEnsemble(SPEC, (B1, B2, B3), config, sync_policy(config))


def first_fragment(*bookies: BookieId) -> Fragment:
    return Fragment(EntryId(0), bookies)


@pytest.mark.rule("W9", "W15")
def test_what_is_to_be_done_about_a_bookie_that_failed() -> None:
    three = ensemble()
    assert three.on_bookie_failed(B4, LOST) == WAIT, "it is no member"
    assert three.on_bookie_failed(B2, LOST) == Replace((B2,))
    assert three.on_bookie_failed(B2, LOST) == WAIT, "that is known already"
    assert three.failures == "b2 (connection lost)"
    unauthorised = UnauthorizedError("another password")
    assert three.on_bookie_failed(B1, unauthorised) == EndWriter(unauthorised)
    end = three.on_bookie_failed(B1, LedgerFencedError("fenced"))
    assert isinstance(end, EndWriter) and isinstance(end.error, LedgerFencedError)
    assert three.live_bookies == (B1, B3), "neither is this bookie's failure"


@pytest.mark.rule("W11")
def test_with_deferred_sync_any_failure_of_a_member_ends_the_writer() -> None:
    three = ensemble(WriterConfig(deferred_sync=True))
    end = three.on_bookie_failed(B2, LOST)
    assert isinstance(end, EndWriter) and isinstance(end.error, BookieFailedError)
    assert three.on_bookie_failed(B4, LOST) == WAIT
    assert three.plan_change(0.0) is None


@pytest.mark.rule("W4")
def test_one_change_at_a_time_with_a_pause_after_three_that_confirmed_nothing() -> None:
    three = ensemble(WriterConfig(change_retry_ms=1_000))
    assert three.plan_change(0.0) is None, "nobody failed"
    for attempt, (old, new) in enumerate([(B3, B4), (B4, B3), (B3, B4)], 1):
        three.on_bookie_failed(old, LOST)
        assert three.plan_change(5.0) == PlannedChange((old,), (B1, B2), attempt)
        assert three.plan_change(5.0) is None, "one is in flight"
        assert three.end_change() == (old,)
        [(left, came)] = three.seat(first_fragment(B1, B2, new), 0, 5.0)
        assert (left.bookie, came.bookie) == (old, new)
    three.on_bookie_failed(B4, LOST)
    assert (three.plan_change(5.1), three.retry_at) == (None, 6.0)
    three.on_spares_changed(5.2)
    assert three.plan_change(5.2) is not None, "a bookie appeared, the pause is over"
    assert three.end_change() == (B4,)
    assert three.end_change() is None


@pytest.mark.rule("W5")
def test_who_stays_keeps_its_acks_and_a_fragment_that_begins_elsewhere_is_refused() -> None:
    three = ensemble()
    three.members[0].acks.add(0, 7)
    three.on_bookie_failed(B3, LOST)
    three.plan_change(0.0)
    three.end_change()
    with pytest.raises(InvariantError, match="W5"):
        three.seat(first_fragment(B1, B2, B4), 3, 0.0)
    three.seat(Fragment(EntryId(3), (B1, B2, B4)), 3, 0.0)
    assert [member.acks.mark for member in three.members] == [7, 0, 3]


@pytest.mark.rule("W10b")
def test_a_bookie_that_returns_is_readmitted_unless_a_change_is_in_flight() -> None:
    three = ensemble()
    stored = first_fragment(B1, B2, B3)
    assert three.on_bookie_returned(B3, stored) == WAIT, "it is live"
    three.on_bookie_failed(B3, LOST)
    assert three.on_bookie_returned(B3, first_fragment(B1, B2, B4)) == WatchAgain(B3), (
        "it is not in the stored ensemble"
    )
    member = three.by_bookie[B3]
    assert three.on_bookie_returned(B3, stored) == Readmit(member)
    three.plan_change(0.0)
    assert three.on_bookie_returned(B3, first_fragment(B1, B2, B4)) == WAIT
    assert three.on_bookie_returned(B3, stored) == WAIT
    assert three.returned() == [member]
    assert three.on_bookie_failed(B3, LOST) == WatchAgain(B3), "lost again"
    three.end_change()
    assert three.returned() == []
    three.readmit(member, 5, 9.0)
    assert (member.live, member.acks.mark, member.progress_at) == (True, 5, 9.0)


@pytest.mark.rule("W11", "W15")
def test_a_bookie_that_trails_is_replaced_or_with_deferred_sync_waited_for() -> None:
    for deferred in (False, True):
        three = ensemble(WriterConfig(deferred_sync=deferred, trail_bytes_max=128))
        for member in three.members[:2]:
            member.acks.add(0, 200)
        assert three.on_acknowledged(127, 126) == WAIT
        assert three.on_acknowledged(128, 127) == (WAIT if deferred else Replace((B3,)))
        assert three.holds_up_callers is deferred
        assert not three.has_caught_up()
        three.members[2].acks.add(0, 200)
        assert three.has_caught_up() is deferred
        assert not three.holds_up_callers


@pytest.mark.parametrize(
    ("rule", "spoil"),
    [
        ("W4", lambda three: three.by_bookie.pop(B1)),
        ("W4", lambda three: three.members.reverse()),
        ("W4", lambda three: setattr(three, "changing", (B1,))),
        ("W10b", lambda three: setattr(three.members[0], "returned", True)),
        ("W10b", lambda three: setattr(three.members[0], "live", False)),
        ("W11", lambda three: setattr(three, "holds_up_callers", True)),
        ("W1", lambda three: three.members[0].acks._ahead.append((0, 5))),
    ],
)
def test_members_that_contradict_each_other_are_found(rule: str, spoil: Callable[[WriterEnsemble], object]) -> None:
    three = ensemble()
    three.validate_state()
    spoil(three)
    with pytest.raises(InvariantError, match=rule):
        three.validate_state()
