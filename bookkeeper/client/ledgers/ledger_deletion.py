"""Deleting a ledger for ever: its writer is stopped first.

Bookies drop the data of a deleted ledger much later, and know nothing of the deletion until then: they would go on
acknowledging a running writer. So a ledger that is not closed is recovered first, which fences it; only then do its
metadata go.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from bookkeeper.client.ledger_record import LedgerRecord
from bookkeeper.client.ledgers.ledger_recovery import recover
from bookkeeper.client.services import ClientServices
from bookkeeper.errors import (
    BookKeeperError,
    MetadataConflictError,
    MetadataError,
    NoSuchLedgerError,
    RecoveryInconclusiveError,
)
from bookkeeper.ids import LedgerId
from bookkeeper.ledger import DigestScheme, DigestType

_log = logging.getLogger(__name__)


async def delete(services: ClientServices, ledger_id: LedgerId, *, force: bool = False) -> None:
    """Close the ledger if need be, with the password that its metadata hold, then remove its metadata.

    Args:
        force: delete it also if it cannot be closed, after one try. A writer that is still running is then
            acknowledged until the bookies collect the ledger, and all of it is lost.

    Raises:
        NoSuchLedgerError: there is none.
        RecoveryInconclusiveError: it is not closed and cannot be closed now; it was not deleted.
        MetadataUnavailableError: unknown; call again.
    """
    ledgers = services.metadata.ledgers
    created_txn: int | None = None
    while True:
        record = LedgerRecord(ledgers, ledger_id, await ledgers.read(ledger_id, fresh=True))
        if created_txn is not None and record.versioned.created_txn != created_txn:
            return None  # the one that was meant is gone; this one was made since, under the same id
        created_txn = record.versioned.created_txn
        if not record.metadata.is_closed:
            await _close(services, record, force)
        try:
            return await ledgers.delete(ledger_id, record.versioned.version)
        except MetadataConflictError:  # repaired, or deleted and made anew, since it was read
            pass


async def _close(services: ClientServices, record: LedgerRecord, force: bool) -> None:
    metadata = record.metadata
    digest = DigestScheme(metadata.digest_type or DigestType.CRC32, metadata.password or b"")
    if force:
        services = replace(services, config=replace(services.config, recovery_attempts=1))
    try:
        await recover(services, record, digest)
    except (MetadataError, NoSuchLedgerError):
        raise
    except BookKeeperError as error:
        if not force:
            raise RecoveryInconclusiveError(
                f"ledger {record.ledger_id} was not deleted: it is not closed, and closing it failed, so that its "
                f"writer could go on ({error}); force deletes it nevertheless"
            ) from error
        _log.warning("ledger %d is deleted without having been closed: %s", record.ledger_id, error)
