"""Checks whether a ledger is whole: asks every bookie that its metadata name which entries it holds, and compares.

* If a bookie does not answer, or does not say, its copies count as unknown, never as missing.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from bookkeeper.client.ledger_record import LedgerRecord
from bookkeeper.client.tasks import Tasks
from bookkeeper.errors import BookKeeperError
from bookkeeper.ids import BookieId
from bookkeeper.ledger import LedgerMetadata
from bookkeeper.replication.copies import Copy, copies_of
from bookkeeper.replication.repair import RepairContext, held_by
from bookkeeper.wire.availability import HeldEntries


@dataclass(frozen=True, slots=True)
class IncompleteCopy:
    """One copy that is not proved to be whole."""

    copy: Copy
    missing: int
    """How many of its entries the bookie says it does not hold."""
    unknown: BookKeeperError | None = None
    """Why it is not known which entries the bookie holds; then ``missing`` is 0."""

    def __str__(self) -> str:
        if self.unknown is not None:
            return f"{self.copy}: it is not known whether they are there: {self.unknown}"
        if not self.copy.is_decided:
            return f"{self.copy}: the ledger is not closed"
        return f"{self.copy}: {self.missing} are missing"


async def incomplete_copies(context: RepairContext, record: LedgerRecord) -> list[IncompleteCopy]:
    """Every copy of the ledger that is not proved to be whole. An empty list means that the ledger is whole.

    The last fragment of a ledger that is not closed has no end: its copies count as not proved.
    """
    metadata = record.metadata
    bookies = sorted(metadata.bookies)
    tasks = Tasks(f"check of ledger {record.ledger_id}")
    try:
        answers = await asyncio.gather(*(_held(context, tasks, bookie, record) for bookie in bookies))
    finally:
        await tasks.close()
    held = dict(zip(bookies, answers, strict=True))
    found = [_judge(metadata, copy, held[copy.bookie]) for copy in copies_of(metadata)]
    return [each for each in found if each is not None]


async def _held(
    context: RepairContext, tasks: Tasks, bookie: BookieId, record: LedgerRecord
) -> HeldEntries | BookKeeperError:
    try:
        return await held_by(context.services, tasks, bookie, record)
    except BookKeeperError as error:
        return error


def _judge(metadata: LedgerMetadata, copy: Copy, held: HeldEntries | BookKeeperError) -> IncompleteCopy | None:
    if not copy.is_decided:
        return IncompleteCopy(copy, 0)
    if copy.held(metadata.spec) == 0:
        return None
    if isinstance(held, BookKeeperError):
        return IncompleteCopy(copy, 0, held)
    missing = sum(entry not in held for run in copy.runs(metadata.spec, 4096) for entry in run)
    return IncompleteCopy(copy, missing) if missing else None
