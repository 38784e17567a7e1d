"""Rounds of force()."""

from __future__ import annotations

import pytest

from bookkeeper.errors import BookieUnavailableError, RequestTimedOutError
from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger.ensemble.acks import Acks
from bookkeeper.ledger.ensemble.member import EnsembleMember
from bookkeeper.ledger.quorum import QuorumSpec
from bookkeeper.ledger.write.effects import Effect, ForceDone, ForceFailed, SendForce
from bookkeeper.ledger.write.force_rounds import ForceRounds
from tests.bookkeeper.ledger.test_metadata import bookies

B1, B2, B3 = bookies("b1 b2 b3")
SPEC = QuorumSpec(ensemble_size=3, write_quorum=3, ack_quorum=2)
LOST = BookieUnavailableError("lost")


class Rounds:
    """A forcing of three bookies that have acknowledged everything below these marks."""

    def __init__(self, *marks: int) -> None:
        self.forcing = ForceRounds(1000)
        self.members = [EnsembleMember(b, p, Acks(SPEC, p, 0), 0.0) for p, b in enumerate((B1, B2, B3))]
        for member, mark in zip(self.members, marks, strict=True):
            member.acks.add(0, mark)

    @property
    def acknowledged(self) -> EntryId:
        return EntryId(sorted(member.acks.mark for member in self.members)[1] - 1)

    def ask(self, now: float = 0.0) -> int:
        return self.forcing.request(self.acknowledged, 10 * self.acknowledged + 10, now)

    def go(self) -> list[Effect]:
        effects = self.forcing.proceed(self.members, self.acknowledged, 10 * self.acknowledged + 10)
        self.forcing.validate_state(self.acknowledged)
        return effects

    def done(self, bookie: BookieId, number: int) -> list[Effect]:
        self.forcing.on_forced(bookie, number)
        return self.go()

    def failed(self, number: int) -> list[Effect]:
        return self.forcing.on_failed(number, LOST, self.acknowledged, 0) + self.go()


@pytest.mark.rule("W11")
def test_a_round_completes_when_every_bookie_has_answered() -> None:
    rounds = Rounds(5, 5, 5)
    assert rounds.ask() == 1
    assert rounds.go() == [SendForce(B1, 1), SendForce(B2, 1), SendForce(B3, 1)]
    assert rounds.done(B1, 1) == rounds.done(B3, 1) == rounds.done(B3, 1) == []
    assert rounds.forcing.forced == -1
    assert rounds.done(B2, 1) == [ForceDone(1)]
    assert (rounds.forcing.forced, rounds.forcing.forced_length, rounds.forcing.active) == (4, 50, False)


@pytest.mark.rule("W11")
def test_a_bookie_is_asked_only_after_it_acknowledged_everything_below_the_target() -> None:
    rounds = Rounds(5, 5, 3)
    rounds.members[2].acks.add(4, 5)  # it has entry 4, but lacks 3
    rounds.ask()
    assert rounds.go() == [SendForce(B1, 1), SendForce(B2, 1)]
    assert rounds.done(B1, 1) == rounds.done(B2, 1) == []
    rounds.members[2].acks.add(3, 4)
    assert rounds.go() == [SendForce(B3, 1)]
    assert rounds.done(B3, 1) == [ForceDone(1)]


def test_who_asks_for_the_same_shares_the_round_and_who_asks_for_more_the_next() -> None:
    rounds = Rounds(5, 5, 5)
    assert rounds.ask() == rounds.ask() == 1
    rounds.go()
    for member in rounds.members:
        member.acks.add(5, 8)
    assert rounds.ask() == rounds.ask() == 2
    assert rounds.done(B1, 1) == rounds.done(B2, 1) == []
    assert rounds.done(B3, 1) == [ForceDone(1), SendForce(B1, 2), SendForce(B2, 2), SendForce(B3, 2)]
    assert rounds.forcing.forced == 4
    assert rounds.done(B1, 1) == []  # an answer to the round before says nothing about this one
    for bookie in (B2, B3):
        assert rounds.done(bookie, 2) == []
    assert rounds.done(B1, 2) == [ForceDone(2)]
    assert rounds.forcing.forced == 7


def test_what_is_forced_already_is_not_forced_again() -> None:
    rounds = Rounds(0, 0, 0)
    assert rounds.ask() == 1
    assert rounds.go() == [ForceDone(1)]  # nothing was acknowledged
    rounds = Rounds(5, 5, 5)
    rounds.ask()
    rounds.go()
    for bookie in (B1, B2, B3):
        rounds.done(bookie, 1)
    assert rounds.ask() == 2
    assert rounds.go() == [ForceDone(2)]


@pytest.mark.rule("W11")
def test_one_error_ends_the_round_and_the_next_one_begins_anew() -> None:
    rounds = Rounds(5, 5, 5)
    rounds.ask()
    rounds.go()
    rounds.done(B1, 1)
    rounds.done(B2, 1)
    assert rounds.failed(1) == [ForceFailed(1, LOST)]
    assert rounds.forcing.forced == -1
    assert rounds.failed(1) == []
    assert rounds.ask() == 2
    assert rounds.go() == [SendForce(B1, 2), SendForce(B2, 2), SendForce(B3, 2)]


def test_a_round_ends_at_its_deadline_and_those_who_wait_for_the_next_have_their_own() -> None:
    rounds = Rounds(5, 5, 3)
    rounds.ask(now=0.0)
    rounds.go()
    rounds.done(B1, 1)
    for member in rounds.members[:2]:
        member.acks.add(5, 6)
    assert rounds.ask(now=0.4) == 2
    assert rounds.forcing.on_tick(0.9, rounds.members, EntryId(5), 60) == []
    (failed,) = rounds.forcing.on_tick(1.0, rounds.members, EntryId(5), 60)
    assert isinstance(failed, ForceFailed)
    assert isinstance(failed.error, RequestTimedOutError)
    assert "up to 4" in str(failed.error)
    assert "b2, b3 did not answer force()" in str(failed.error)
    assert rounds.forcing.deadline == 1.4
    assert rounds.go() == [SendForce(B1, 2), SendForce(B2, 2)]


def test_the_end_of_the_writer_fails_all_rounds() -> None:
    rounds = Rounds(5, 5, 5)
    assert rounds.forcing.fail(LOST) == []
    rounds.ask()
    rounds.go()
    for member in rounds.members:
        member.acks.add(5, 8)
    rounds.ask()
    assert rounds.forcing.fail(LOST) == [ForceFailed(1, LOST), ForceFailed(2, LOST)]
    assert (rounds.forcing.active, rounds.done(B1, 1)) == (False, [])


@pytest.mark.rule("W11")
def test_a_bookie_that_holds_nothing_is_asked_too_and_one_that_is_not_live_is_not() -> None:
    striped = QuorumSpec(ensemble_size=3, write_quorum=2, ack_quorum=2)
    rounds = Rounds(0, 0, 0)
    rounds.members = [EnsembleMember(b, p, Acks(striped, p, 0), 0.0) for p, b in enumerate((B1, B2, B3))]
    rounds.members[0].acks.add(0, 1)
    rounds.members[1].acks.add(0, 1)
    rounds.forcing.request(EntryId(0), 10, 0.0)
    assert rounds.go() == [SendForce(B1, 1), SendForce(B2, 1), SendForce(B3, 1)]
    rounds = Rounds(5, 5, 5)
    rounds.members[1].live = False
    rounds.ask()
    assert rounds.go() == [SendForce(B1, 1), SendForce(B3, 1)]
