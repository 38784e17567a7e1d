"""Writing back and closing; the stories of a whole recovery are in test_recovery.py."""

from __future__ import annotations

import pytest

from bookkeeper.errors import (
    BookieUnavailableError,
    InvariantError,
    RecoveryInconclusiveError,
    UnauthorizedError,
)
from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger.config import RecoveryConfig
from bookkeeper.ledger.metadata import Fragment, LedgerMetadata
from bookkeeper.ledger.quorum import QuorumSpec
from bookkeeper.ledger.recovery.effects import CloseRecovered, FindStandIns, ForgetPayloads, WriteBack
from bookkeeper.ledger.recovery.writing import WritePhase
from tests.bookkeeper.ledger.test_metadata import bookies

B1, B2, B3, B4 = bookies("b1 b2 b3 b4")
SPEC = QuorumSpec(ensemble_size=3, write_quorum=3, ack_quorum=2)
LOST = BookieUnavailableError("lost")
STORED = LedgerMetadata.create(SPEC, (B1, B2, B3)).begin_recovery()
CONFIG = RecoveryConfig(retry_ms=500, rounds_max=2)


@pytest.fixture
def writing() -> WritePhase:
    return WritePhase(STORED, EntryId(4), CONFIG)


def back(bookie: BookieId, entry_id: int, length: int) -> WriteBack:
    return WriteBack(bookie, EntryId(entry_id), EntryId(4), length)


@pytest.mark.rule("R7", "R8", "R12")
def test_entries_are_written_back_in_order_and_done_at_the_ack_quorum(writing: WritePhase) -> None:
    assert writing.length(50) == 50, "nothing is written back yet"
    assert writing.write(5, 60) == [back(bookie, 5, 60) for bookie in SPEC.write_set(5, (B1, B2, B3))]
    writing.write(6, 70)
    assert writing.on_written(B1, 6, 0.0) and writing.on_written(B2, 6, 0.0)
    assert (writing.advance(), writing.written) == ([], 4), "entry 5 comes first"
    assert writing.on_written(B1, 5, 0.0)
    assert not writing.on_written(B1, 5, 0.0)
    assert not writing.on_written(B1, 9, 0.0)
    assert writing.on_written(B3, 5, 0.0)
    assert (writing.advance(), writing.written) == ([ForgetPayloads(EntryId(6))], 6)
    writing.validate_state()
    assert writing.length(50) == 70
    assert writing.close(70) == CloseRecovered(EntryId(6), 70, STORED.fragments)


@pytest.mark.rule("R9")
def test_a_bookie_that_fails_is_replaced_in_private_from_the_first_entry_that_is_not_done(writing: WritePhase) -> None:
    writing.write(5, 60)
    assert writing.on_write_failed(B2, 5, LOST, 0.0) == [FindStandIns((B2,), (B1, B2, B3))]
    assert writing.on_write_failed(B2, 5, LOST, 0.0) == [], "they are looked for already"
    assert writing.on_stand_ins({B2: B4}) == [back(B4, 5, 60)]
    assert writing.fragments == (Fragment(EntryId(0), (B1, B2, B3)), Fragment(EntryId(5), (B1, B4, B3)))
    assert STORED.fragments == (Fragment(EntryId(0), (B1, B2, B3)),)
    writing.validate_state()
    assert writing.on_write_failed(B3, 5, LOST, 0.0) == [FindStandIns((B3, B2), (B1, B4, B3))]


@pytest.mark.rule("R7", "V2")
def test_without_a_stand_in_the_same_bookies_are_tried_again_and_then_it_gives_up(writing: WritePhase) -> None:
    writing.write(5, 60)
    for failing in (1, 2):
        for bookie in (B1, B2, B3):
            writing.on_write_failed(bookie, 5, LOST, float(failing))
        assert list(writing.dues()) == [failing + 0.5]
        writing.on_stand_ins({})
        writing.validate_state()
        effects = writing.on_tick(failing + 0.5)
        assert len(effects) == (3 if failing == 1 else 0)
    assert isinstance(writing.failure, RecoveryInconclusiveError)


@pytest.mark.rule("R9")
def test_a_bookie_that_refuses_what_is_written_back_is_replaced_like_any_other(writing: WritePhase) -> None:
    writing.write(5, 60)
    assert writing.on_write_failed(B1, 5, UnauthorizedError(), 0.0) == [FindStandIns((B1,), (B1, B2, B3))]
    assert writing.failure is None


@pytest.mark.rule("R7")
def test_an_entry_that_is_skipped_is_found(writing: WritePhase) -> None:
    writing.write(6, 70)
    with pytest.raises(InvariantError, match="R7"):
        writing.validate_state()
