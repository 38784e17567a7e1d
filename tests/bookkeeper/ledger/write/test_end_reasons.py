"""The errors with which writers end."""

from __future__ import annotations

import pytest

from bookkeeper.errors import BookKeeperError, LedgerClosedError, LedgerFencedError, NoSuchLedgerError
from bookkeeper.ledger.config import WriterConfig
from bookkeeper.ledger.ensemble.sync_policy import sync_policy
from bookkeeper.ledger.ensemble.writer_ensemble import WriterEnsemble
from bookkeeper.ledger.quorum import QuorumSpec
from bookkeeper.ledger.write.effects import ChangeFailure
from bookkeeper.ledger.write.end_reasons import ended_by, ended_while_changing, not_acknowledged
from tests.bookkeeper.ledger.test_metadata import CLOSED, IN_RECOVERY, bookies
from tests.bookkeeper.ledger.write.test_writer import LOST


def test_metadata_of_somebody_elses_end_say_how() -> None:
    closed = ended_by(CLOSED)
    assert isinstance(closed, LedgerClosedError)
    assert str(closed) == "a recovery closed the ledger at entry 4"
    assert isinstance(ended_by(IN_RECOVERY), LedgerFencedError)


@pytest.mark.parametrize(
    ("reason", "error"),
    [
        (ChangeFailure.CLOSED, LedgerClosedError),
        (ChangeFailure.IN_RECOVERY, LedgerFencedError),
        (ChangeFailure.DELETED, NoSuchLedgerError),
        (ChangeFailure.NO_SPARE, type(None)),
        (ChangeFailure.STORE_AWAY, type(None)),
    ],
)
def test_a_change_that_was_not_made_ends_the_writer_only_if_the_ledger_has_ended(
    reason: ChangeFailure, error: type[BookKeeperError | None]
) -> None:
    assert type(ended_while_changing(reason)) is error


@pytest.mark.parametrize(("ack_quorum", "quorum"), [(1, "1 bookie"), (2, "2 bookies")])
def test_an_append_without_a_quorum_is_told_with_the_bookies_that_failed(ack_quorum: int, quorum: str) -> None:
    config = WriterConfig()
    spec = QuorumSpec(ensemble_size=2, write_quorum=2, ack_quorum=ack_quorum)
    ensemble = WriterEnsemble(spec, bookies("b1 b2"), config, sync_policy(config))
    text = f"entry 3 was not acknowledged by an ack quorum ({quorum}) within 700 ms; failed bookies: "
    assert str(not_acknowledged(3, ensemble, 700)) == f"{text}none"
    ensemble.on_bookie_failed(bookies("b2")[0], LOST)
    ensemble.plan_change(0.0)
    late = not_acknowledged(3, ensemble, 700)
    assert str(late) == f"{text}b2 (connection lost); an ensemble change was in flight"
    assert late.__cause__ is LOST
