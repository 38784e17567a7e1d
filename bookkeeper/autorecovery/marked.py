"""The list of under-replicated ledgers as people want to see it: since when, for which bookies, and why it is stuck."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from bookkeeper.autorecovery.report import StuckRepair
from bookkeeper.autorecovery.status import status_of
from bookkeeper.errors import MetadataFormatError, in_words
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.meta import Metadata
from bookkeeper.meta.records.under_replication import UnderReplicationMark

READS_AT_ONCE: Final = 32
"""Marks that are read at a time."""


@dataclass(frozen=True, slots=True)
class MarkedLedger:
    """One under-replicated ledger."""

    ledger_id: LedgerId
    bookies: tuple[BookieId, ...] = ()
    """The bookies that lack entries, as the mark says."""
    since_ms: int | None = None
    """When it was marked last, in milliseconds since 1970; None: the mark does not say."""
    reason: str = ""
    """Why a process of ours could not repair it so far; empty: none says so."""
    tries: int = 0
    """How often that process has tried."""
    is_readable: bool = True
    """Whether its mark can be read; if not, ``reason`` says why."""


async def marked_ledgers(metadata: Metadata, missing: str | None = None) -> list[MarkedLedger]:
    """Every ledger in the list in ascending order; with ``missing`` only those whose marks name this bookie.

    A mark that cannot be read is listed with the reason, whatever ``missing`` is: it may name anybody.
    Raises: MetadataError.
    """
    status = await status_of(metadata)
    stuck = {LedgerId(each.ledger): each for report in status.reports for each in report.stuck}
    found: list[MarkedLedger] = []
    for at in range(0, len(status.marked), READS_AT_ONCE):
        some = status.marked[at : at + READS_AT_ONCE]
        found += [each for each in await asyncio.gather(*(_read(metadata, ledger, stuck) for ledger in some)) if each]
    return [each for each in found if missing is None or missing in each.bookies or not each.is_readable]


async def _read(metadata: Metadata, ledger_id: LedgerId, stuck: Mapping[LedgerId, StuckRepair]) -> MarkedLedger | None:
    """One ledger; None: it was repaired meanwhile."""
    try:
        mark = await metadata.under_replication.read(ledger_id)
    except MetadataFormatError as error:
        return MarkedLedger(ledger_id, reason=in_words(error), is_readable=False)
    return _joined(mark, stuck.get(ledger_id)) if mark is not None else None


def _joined(mark: UnderReplicationMark, stuck: StuckRepair | None) -> MarkedLedger:
    if stuck is None:
        return MarkedLedger(mark.ledger_id, mark.bookies, mark.since_ms)
    return MarkedLedger(mark.ledger_id, mark.bookies, mark.since_ms, stuck.reason, stuck.tries)
