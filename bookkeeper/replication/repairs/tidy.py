"""Tidies the marks of under-replicated ledgers after a repair: removes a mark if its ledger is whole.

    * The ledger is verified as it is stored now. If its metadata or the mark change meanwhile, the mark stays.

If a bookie that is up lacks entries (it was away while the writer went on), its copy is completed first.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from bookkeeper.errors import BookKeeperError
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.meta.records.under_replication import UnderReplicationMark
from bookkeeper.replication.copying.repair import RepairContext
from bookkeeper.replication.copying.repair_lock import repair_lock
from bookkeeper.replication.repairs.ledger_repair import GracePeriods, repair_ledger


@dataclass(frozen=True, slots=True)
class TidyResult:
    """What became of a mark."""

    ledger_id: LedgerId
    removed: bool
    reason: str
    """Why it was removed, or why not."""


async def tidy_marks(
    context: RepairContext, bookies: Collection[BookieId], ledgers: Collection[LedgerId], owner: str
) -> list[TidyResult]:
    """Tidy the marks that name one of ``bookies``, and those of ``ledgers``. A mark that fails does not hold up the
    others.

    Raises: MetadataError: the marks cannot be listed.
    """
    metadata = context.services.metadata
    found: list[TidyResult] = []
    async for ledger_id in metadata.under_replication.ledgers():
        try:
            mark = await metadata.under_replication.read(ledger_id)
            if mark is None or not (ledger_id in ledgers or set(mark.bookies) & set(bookies)):
                continue
            async with repair_lock(metadata, ledger_id, owner) as holder:
                if holder is not None:
                    found.append(TidyResult(ledger_id, False, f"{holder} repairs it now and holds its lock"))
                    continue
                found.append(await tidy_mark(context, mark))
        except BookKeeperError as error:
            found.append(TidyResult(ledger_id, False, str(error) or type(error).__name__))
    return found


async def tidy_mark(context: RepairContext, mark: UnderReplicationMark) -> TidyResult:
    """Verify the ledger, complete copies where that is possible, and remove the mark if the ledger is whole.

    Raises: BookKeeperError: the ledger cannot be verified now; the mark stays.
    """
    repair = await repair_ledger(context, mark.ledger_id, GracePeriods(0.0), mark, replace_gone=False)
    if repair.whole:
        return TidyResult(mark.ledger_id, True, "the ledger was deleted" if repair.deleted else "every copy is whole")
    return TidyResult(mark.ledger_id, False, repair.reason)
