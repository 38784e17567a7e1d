"""Reading forward; the stories of a whole recovery are in test_recovery.py."""

from __future__ import annotations

import pytest

from bookkeeper.errors import BookieUnavailableError, InvariantError, RecoveryInconclusiveError
from bookkeeper.ids import NO_ENTRY, BookieId, EntryId
from bookkeeper.ledger.answer import Answer
from bookkeeper.ledger.config import RecoveryConfig
from bookkeeper.ledger.metadata import LedgerMetadata
from bookkeeper.ledger.quorum import QuorumSpec
from bookkeeper.ledger.recovery.effects import Effect, RecoveryRead
from bookkeeper.ledger.recovery.reading import ReadPhase
from tests.bookkeeper.ledger.test_metadata import bookies

B1, B2, B3 = bookies("b1 b2 b3")
SPEC = QuorumSpec(ensemble_size=3, write_quorum=3, ack_quorum=2)
LOST = BookieUnavailableError("lost")
STORED = LedgerMetadata.create(SPEC, (B1, B2, B3)).begin_recovery()
CONFIG = RecoveryConfig(window_entries=8, hedge_ms=250, retry_ms=500, rounds_max=2)


def phase(lac: int = -1) -> ReadPhase:
    return ReadPhase(STORED, EntryId(lac), CONFIG)


def read(bookie: BookieId, entry_id: int) -> RecoveryRead:
    return RecoveryRead(bookie, EntryId(entry_id), True)


def says(reading: ReadPhase, bookie: BookieId, entry_id: int, answer: Answer, length: int = 0) -> list[Effect] | None:
    effects = reading.on_answer(bookie, entry_id, answer, 0.0, length, LOST if answer is Answer.UNKNOWN else None)
    reading.validate_state()
    return effects


@pytest.mark.rule("R4", "R6")
def test_it_reads_a_window_ahead_which_grows_with_what_is_found_and_hands_over_in_order() -> None:
    reading = phase()
    assert reading.begin(0.0) == []
    assert reading.read_ahead(-1, 0.0) == [read(B1, 0), read(B2, 1), read(B3, 2), read(B1, 3)]
    assert says(reading, B2, 1, Answer.POSITIVE, 20) == []
    assert list(reading.take()) == [], "entry 0 is missing"
    assert says(reading, B1, 0, Answer.POSITIVE, 10) == []
    assert list(reading.take()) == [(0, 10), (1, 20)]
    assert list(reading.take()) == []
    assert len(reading.read_ahead(1, 0.0)) == 6, "the window is 8 entries now"
    assert says(reading, B1, 0, Answer.POSITIVE, 10) is None, "nobody waits for it"


@pytest.mark.rule("R6", "R14")
def test_enough_negatives_are_the_end_and_what_lies_behind_is_left_out() -> None:
    reading = phase()
    reading.read_ahead(-1, 0.0)
    says(reading, B2, 1, Answer.POSITIVE, 20)
    assert says(reading, B1, 0, Answer.NEGATIVE) == [read(B2, 0), read(B3, 0)]
    assert says(reading, B2, 0, Answer.NEGATIVE) == []
    assert reading.end == 0
    assert list(reading.take()) == []
    assert reading.read_ahead(-1, 0.0) == []


@pytest.mark.rule("R6", "V2")
def test_silence_is_no_negative_and_an_entry_that_stays_unknown_is_inconclusive() -> None:
    reading = phase()
    reading.read_ahead(-1, 0.0)
    assert reading.on_tick(0.2) == []
    assert reading.on_tick(0.25)[:2] == [read(B2, 0), read(B3, 0)], "a read that takes too long"
    for bookie in (B1, B2, B3):
        says(reading, bookie, 0, Answer.UNKNOWN)
    assert next(reading.dues()) == 0.5
    assert reading.on_tick(0.5) == [read(B1, 0), read(B2, 0), read(B3, 0)]
    for bookie in (B1, B2, B3):
        says(reading, bookie, 0, Answer.UNKNOWN)
    reading.on_tick(1.0)
    assert isinstance(reading.failure, RecoveryInconclusiveError)
    assert reading.end is None


@pytest.mark.rule("R12")
def test_the_length_at_the_last_add_confirmed_is_read_unless_nothing_is_confirmed() -> None:
    assert phase(NO_ENTRY).lac_length == 0
    reading = phase(6)
    assert reading.begin(0.0) == [read(B1, 6)]
    assert (reading.lac_length, says(reading, B1, 6, Answer.POSITIVE, 70), reading.lac_length) == (None, [], 70)
    assert list(reading.take()) == [], "it is confirmed, and not written back"
    lost = phase(6)
    lost.begin(0.0)
    for _ in range(CONFIG.rounds_max):
        for bookie in (B1, B2, B3):
            says(lost, bookie, 6, Answer.UNKNOWN)
        lost.on_tick(9.0)
    assert isinstance(lost.no_length, RecoveryInconclusiveError)
    assert lost.failure is None, "nobody needs it if something is written back"


@pytest.mark.rule("R6")
def test_an_entry_for_which_nothing_is_asked_is_found() -> None:
    reading = phase()
    reading.read_ahead(-1, 0.0)
    reading._readings[0].asked.clear()
    reading._readings[0].due = None
    with pytest.raises(InvariantError, match="V2"):
        reading.validate_state()


@pytest.mark.rule("R14")
@pytest.mark.parametrize("field", ["_next_take", "_next_read"])
def test_an_entry_before_the_next_one_or_behind_the_end_is_found(field: str) -> None:
    reading = phase()
    reading.read_ahead(-1, 0.0)
    setattr(reading, field, 2)
    with pytest.raises(InvariantError, match="R14"):
        reading.validate_state()
