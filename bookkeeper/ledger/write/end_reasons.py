"""Why a writer ends: the errors that its callers get."""

from __future__ import annotations

from bookkeeper.amounts import counted
from bookkeeper.errors import AddTimeoutError, BookKeeperError, LedgerClosedError, NoSuchLedgerError
from bookkeeper.ledger.ensemble.writer_ensemble import WriterEnsemble, fenced_error
from bookkeeper.ledger.metadata import LedgerMetadata
from bookkeeper.ledger.write.effects import ChangeFailure


def ended_by(metadata: LedgerMetadata) -> BookKeeperError:
    """The stored metadata, which are not OPEN, say that the writer may not write any more."""
    if metadata.is_closed:
        return LedgerClosedError(f"a recovery closed the ledger at entry {metadata.last_entry}")
    return fenced_error()


def ended_while_changing(reason: ChangeFailure) -> BookKeeperError | None:
    """An ensemble change was not made for this reason. None: the writer goes on without it."""
    match reason:
        case ChangeFailure.CLOSED:
            return LedgerClosedError("the ledger was closed by a recovery")
        case ChangeFailure.IN_RECOVERY:
            return fenced_error()
        case ChangeFailure.DELETED:
            return NoSuchLedgerError("the ledger was deleted")
        case ChangeFailure.NO_SPARE | ChangeFailure.STORE_AWAY:
            return None


def not_acknowledged(entry_id: int, ensemble: WriterEnsemble, limit_ms: int) -> AddTimeoutError:
    """No ack quorum of ``ensemble`` has acknowledged ``entry_id`` within ``limit_ms`` milliseconds."""
    quorum = counted(ensemble.spec.ack_quorum, "bookie")
    error = AddTimeoutError(
        f"entry {entry_id} was not acknowledged by an ack quorum ({quorum}) within "
        f"{limit_ms} ms; failed bookies: {ensemble.failures}"
        + ("; an ensemble change was in flight" if ensemble.changing is not None else "")
    )
    error.__cause__ = ensemble.last_failure
    return error
