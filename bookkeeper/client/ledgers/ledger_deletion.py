"""Deletes a ledger, and stops its writer first.

Bookies learn of a deletion much later, when they collect garbage. Until then they would go on acknowledging a running
writer. So a ledger that is not closed is recovered first, which fences its writer; only then its metadata are removed.
For a grace time they are kept beside the cluster's root, and the ledger can be brought back.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from bookkeeper.client.ledger_view import LedgerView
from bookkeeper.client.ledgers.ledger_recovery import recover
from bookkeeper.client.services import ClientServices
from bookkeeper.errors import (
    BookKeeperError,
    MetadataConflictError,
    MetadataError,
    NoSuchLedgerError,
    RecoveryInconclusiveError,
    in_words,
)
from bookkeeper.ids import LedgerId
from bookkeeper.ledger import DigestScheme, DigestType

_log = logging.getLogger(__name__)


async def delete(
    services: ClientServices, ledger_id: LedgerId, *, force: bool = False, grace_s: int | None = None
) -> None:
    """Close the ledger if it is not closed, with the password in its metadata, then remove its metadata.

    Args:
        force: delete the ledger also if one try to close it fails. A writer that is still running may then be
            acknowledged until the bookies collect the ledger; what it appends is lost.
        grace_s: for so many seconds the ledger can be brought back; None: as the client's ``delete_grace_s`` says. With
            0 it is gone at once, and a deleted ledger that could still be brought back is gone, too.

    Raises:
        NoSuchLedgerError: the ledger does not exist.
        RecoveryInconclusiveError: the ledger is not closed and cannot be closed now; it was not deleted.
        MetadataUnavailableError: it is not known whether the ledger was deleted; call again.
    """
    ledgers = services.metadata.ledgers
    if grace_s is None:
        grace_s = services.config.delete_grace_s
    if not grace_s and await ledgers.restorable.has(ledger_id, fresh=True):
        await ledgers.restorable.remove(ledger_id)
        if await services.metadata.store.exists(ledgers.path(ledger_id)) is None:
            return None
    created_txn: int | None = None
    while True:
        record = await LedgerView.read(ledgers, ledger_id)
        if created_txn is not None and record.versioned.created_txn != created_txn:
            return None  # the ledger is gone, and another one was made under its id
        created_txn = record.versioned.created_txn
        if not record.metadata.is_closed:
            await _close(services, record, force)
        try:
            return await ledgers.delete(ledger_id, record.versioned.version, created_txn=created_txn, grace_s=grace_s)
        except MetadataConflictError:  # a repair changed the metadata, or another ledger was made under this id
            pass


async def _close(services: ClientServices, record: LedgerView, force: bool) -> None:
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
                f"ledger {record.ledger_id} was not deleted: it is open, and it could not be closed, so its writer may "
                f"still run ({error}); try again later, or delete it with force"
            ) from error
        _log.warning(
            "ledger %d is deleted, though it could not be closed (%s): what its writer still appends is lost",
            record.ledger_id,
            in_words(error),
        )
