"""Fencing the last fragment; the stories of a whole recovery are in test_recovery.py."""

from __future__ import annotations

import pytest

from bookkeeper.errors import (
    BookieUnavailableError,
    InvariantError,
    RecoveryInconclusiveError,
    UnauthorizedError,
)
from bookkeeper.ids import EntryId
from bookkeeper.ledger.answer import Answer
from bookkeeper.ledger.config import RecoveryConfig
from bookkeeper.ledger.metadata import LedgerMetadata
from bookkeeper.ledger.quorum import QuorumSpec
from bookkeeper.ledger.recovery.effects import FenceRead
from bookkeeper.ledger.recovery.fencing import FencePhase
from tests.bookkeeper.ledger.test_metadata import bookies

B1, B2, B3, B4 = bookies("b1 b2 b3 b4")
SPEC = QuorumSpec(ensemble_size=3, write_quorum=3, ack_quorum=2)
LOST = BookieUnavailableError("lost")
STORED = LedgerMetadata.create(SPEC, (B1, B2, B3)).change_ensemble(5, (B1, B2, B4)).begin_recovery()


def phase(rounds_max: int = 2) -> FencePhase:
    return FencePhase(STORED, RecoveryConfig(rounds_max=rounds_max, retry_ms=500))


@pytest.mark.rule("R2", "R4")
def test_it_covers_the_last_fragment_and_hears_the_highest_last_add_confirmed() -> None:
    fencing = phase()
    assert fencing.begin() == [FenceRead(B1), FenceRead(B2), FenceRead(B4)]
    assert fencing.lac == 4, "lower ids are on earlier fragments"
    fencing.on_answer(B3, Answer.POSITIVE, EntryId(99), 0.0, None)
    assert fencing.lac == 4, "it is not in the last fragment"
    fencing.on_answer(B1, Answer.POSITIVE, EntryId(7), 0.0, None)
    assert not fencing.is_covered
    fencing.on_answer(B4, Answer.NEGATIVE, None, 0.0, None)
    assert (fencing.is_covered, fencing.lac) == (True, 7)
    fencing.validate_state()


@pytest.mark.rule("R3", "V2")
def test_those_without_an_answer_are_asked_again_and_then_it_gives_up() -> None:
    fencing = phase(rounds_max=2)
    fencing.on_answer(B1, Answer.POSITIVE, EntryId(7), 0.0, None)
    fencing.on_answer(B2, Answer.UNKNOWN, None, 0.0, LOST)
    assert (fencing.due, fencing.failure) == (None, None), "b4 has not answered"
    fencing.on_answer(B4, Answer.UNKNOWN, None, 1.0, LOST)
    assert fencing.due == 1.5
    assert fencing.on_tick(1.4) == []
    assert fencing.on_tick(1.5) == [FenceRead(B2), FenceRead(B4)]
    fencing.on_answer(B1, Answer.UNKNOWN, None, 2.0, LOST)  # late, and it is fenced already
    fencing.on_answer(B2, Answer.UNKNOWN, None, 2.0, LOST)
    fencing.validate_state()
    fencing.on_answer(B4, Answer.UNKNOWN, None, 2.0, None)
    assert isinstance(fencing.failure, RecoveryInconclusiveError)
    assert "could be fenced (lost; no usable answer)" in str(fencing.failure)


@pytest.mark.rule("R2")
def test_one_bookie_that_refuses_everybody_stops_nobody_and_two_are_told_at_once() -> None:
    fencing, error = phase(), UnauthorizedError("another password")
    fencing.on_answer(B1, Answer.UNKNOWN, None, 0.0, error)
    assert (fencing.failure, fencing.is_covered) == (None, False)
    fencing.on_answer(B2, Answer.POSITIVE, EntryId(7), 0.0, None)
    fencing.on_answer(B4, Answer.NEGATIVE, None, 0.0, None)
    assert (fencing.failure, fencing.is_covered, fencing.lac) == (None, True, 7)
    fencing.validate_state()
    refused = phase()
    refused.on_answer(B2, Answer.UNKNOWN, None, 0.0, LOST)
    refused.on_answer(B1, Answer.UNKNOWN, None, 0.0, UnauthorizedError())
    assert refused.failure is None
    refused.on_answer(B4, Answer.UNKNOWN, None, 0.0, error)
    assert refused.failure is error


@pytest.mark.rule("R3")
def test_answers_that_contradict_each_other_are_found() -> None:
    fencing = phase()
    fencing.on_answer(B1, Answer.POSITIVE, None, 0.0, None)
    fencing._unfenced[B1] = LOST
    with pytest.raises(InvariantError, match="R3"):
        fencing.validate_state()


@pytest.mark.rule("V2")
def test_that_all_have_answered_and_nothing_follows_is_found() -> None:
    fencing = phase()
    for bookie in (B1, B2):
        fencing.on_answer(bookie, Answer.UNKNOWN, None, 0.0, LOST)
    fencing.validate_state()
    fencing._unfenced[B4] = LOST
    with pytest.raises(InvariantError, match="V2"):
        fencing.validate_state()
