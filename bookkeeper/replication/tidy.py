"""Tidies the marks of under-replicated ledgers after a repair: removes a mark if its ledger is whole.

    * The ledger is verified as it is stored now. If its metadata or the mark change meanwhile, the mark stays.

If a bookie that is up lacks entries (it was away while the writer went on), its copy is completed first.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass

from bookkeeper.client.ledger_record import LedgerRecord
from bookkeeper.errors import BookKeeperError, NoSuchLedgerError, in_words
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
    context: RepairContext, bookies: Collection[BookieId], ledgers: Collection[LedgerId], owner: str
) -> list[TidiedMark]:
    """Tidy the marks that name one of ``bookies``, and those of ``ledgers``. A mark that fails does not hold up the
    others.

    Raises: MetadataError: the marks cannot be listed.
    """
    metadata = context.services.metadata
    found: list[TidiedMark] = []
    async for ledger_id in metadata.under_replication.ledgers():
        try:
            mark = await metadata.under_replication.read(ledger_id)
            if mark is None or not (ledger_id in ledgers or set(mark.bookies) & set(bookies)):
                continue
            async with repair_lock(metadata, ledger_id, owner) as holder:
                if holder is not None:
                    found.append(TidiedMark(ledger_id, False, f"{holder} repairs it now and holds its lock"))
                    continue
                found.append(await tidy_mark(context, mark))
        except BookKeeperError as error:
            found.append(TidiedMark(ledger_id, False, str(error) or type(error).__name__))
    return found


async def tidy_mark(context: RepairContext, mark: UnderReplicationMark) -> TidiedMark:
    """Verify the ledger, complete copies where that is possible, and remove the mark if the ledger is whole.

    Raises: BookKeeperError: the ledger cannot be verified now; the mark stays.
    """
    services, ledger_id = context.services, mark.ledger_id
    ledgers = services.metadata.ledgers
    try:
        record = LedgerRecord(ledgers, ledger_id, await ledgers.read(ledger_id, fresh=True))
    except NoSuchLedgerError:
        removed = await services.metadata.under_replication.remove(mark)
        return TidiedMark(ledger_id, removed, "the ledger was deleted")
    lacking = await incomplete_copies(context, record)
    if any(each.missing for each in lacking):
        for each in lacking:
            if each.missing:
                await _complete(context, record, each)
        lacking = await incomplete_copies(context, record)
    if lacking:
        return TidiedMark(ledger_id, False, "; ".join(map(str, lacking)))
    verified = record.versioned.version
    await record.refresh()
    if record.versioned.version != verified:
        return TidiedMark(ledger_id, False, "its metadata changed while it was verified")
    removed = await services.metadata.under_replication.remove(mark)
    return TidiedMark(ledger_id, removed, "every copy is whole" if removed else "it was marked again meanwhile")


async def _complete(context: RepairContext, record: LedgerRecord, lacking: IncompleteCopy) -> None:
    """Copy to a bookie what it lacks of its own share."""
    brought = await bring(context, record, lacking.copy, lacking.copy.bookie)
    if brought.error is not None:
        _log.info(
            "ledger %d: %s could not be completed (%s): the ledger stays marked as under-replicated",
            record.ledger_id,
            lacking.copy,
            in_words(brought.error) if brought.error is not None else "no reason is known",
        )
