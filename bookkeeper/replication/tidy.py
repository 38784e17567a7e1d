"""Marks of under-replicated ledgers after a repair: removed when the ledger is whole, kept with a reason otherwise.

    * Verified as it is stored now; if metadata or mark have changed meanwhile the mark stays.

What a verified ledger still lacks on a bookie that is up (one that was away while its writer went on) is
completed where it is, so that the mark can go.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass

from bookkeeper.client.ledger_record import LedgerRecord
from bookkeeper.errors import BookKeeperError, NoSuchLedgerError
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.meta.records.under_replication import UnderReplicationMark
from bookkeeper.replication.check import IncompleteCopy, incomplete_copies
from bookkeeper.replication.repair import RepairContext, bring
from bookkeeper.replication.repair_lock import repair_lock

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TidiedMark:
    """What became of a mark."""

    ledger_id: LedgerId
    removed: bool
    reason: str
    """Why it was removed, or why not."""


async def tidy_marks(
    shop: RepairContext, bookies: Collection[BookieId], ledgers: Collection[LedgerId], owner: str
) -> list[TidiedMark]:
    """Look at the marks that name one of ``bookies``, and at those of ``ledgers``. One that cannot be dealt with does
    not hold up the others.

    Raises: MetadataError: the marks cannot be listed.
    """
    metadata = shop.services.metadata
    found: list[TidiedMark] = []
    async for ledger_id in metadata.under_replication.ledgers():
        try:
            mark = await metadata.under_replication.read(ledger_id)
            if mark is None or not (ledger_id in ledgers or set(mark.bookies) & set(bookies)):
                continue
            async with repair_lock(metadata, ledger_id, owner) as holder:
                if holder is not None:
                    found.append(TidiedMark(ledger_id, False, f"{holder} repairs it now"))
                    continue
                found.append(await tidy_mark(shop, mark))
        except BookKeeperError as error:
            found.append(TidiedMark(ledger_id, False, str(error) or type(error).__name__))
    return found


async def tidy_mark(shop: RepairContext, mark: UnderReplicationMark) -> TidiedMark:
    """Verify the ledger, complete what can be completed, remove the mark if the ledger is whole.

    Raises: BookKeeperError: nothing can be said now; the mark stays.
    """
    services, ledger_id = shop.services, mark.ledger_id
    ledgers = services.metadata.ledgers
    try:
        record = LedgerRecord(ledgers, ledger_id, await ledgers.read(ledger_id, fresh=True))
    except NoSuchLedgerError:
        removed = await services.metadata.under_replication.remove(mark)
        return TidiedMark(ledger_id, removed, "the ledger was deleted")
    lacking = await incomplete_copies(shop, record)
    if any(each.missing for each in lacking):
        for each in lacking:
            if each.missing:
                await _complete(shop, record, each)
        lacking = await incomplete_copies(shop, record)
    if lacking:
        return TidiedMark(ledger_id, False, "; ".join(map(str, lacking)))
    verified = record.versioned.version
    await record.refresh()
    if record.versioned.version != verified:
        return TidiedMark(ledger_id, False, "its metadata changed while it was verified")
    removed = await services.metadata.under_replication.remove(mark)
    return TidiedMark(ledger_id, removed, "every copy is whole" if removed else "it was marked again meanwhile")


async def _complete(shop: RepairContext, record: LedgerRecord, lacking: IncompleteCopy) -> None:
    """Bring a bookie what it lacks of its own share, where it is."""
    brought = await bring(shop, record, lacking.copy, lacking.copy.bookie)
    if brought.error is not None:
        _log.info("ledger %d: %s cannot be completed: %s", record.ledger_id, lacking.copy, brought.error)
