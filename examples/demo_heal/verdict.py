"""Whether every ledger is whole, no mark is left, and every acknowledged entry reads back."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from bookkeeper import BookKeeper
from bookkeeper.client.ledger_view import LedgerView
from bookkeeper.errors import BookKeeperError, in_words
from bookkeeper.ids import LedgerId
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.replication.copying import RepairContext
from bookkeeper.replication.inspection.check import incomplete_copies
from examples.demo_heal.writers import PASSWORD, WrittenLedger, payload

_AT_ONCE: Final = 4
_LEDGER_S: Final = 20.0
"""How long one ledger may take; a ledger that takes longer counts as not whole, and as not read."""


@dataclass(slots=True)
class Wholeness:
    """What the comparison found."""

    ledgers: int = 0
    entries: int = 0
    """Acknowledged entries that read back as they were written."""
    incomplete: list[str] = field(default_factory=list)
    """A line for each copy that is not proved to be whole, every entry read and verified."""
    unread: list[str] = field(default_factory=list)
    """A line for each ledger of which acknowledged entries did not read back."""
    marks: list[int] = field(default_factory=list)
    """Ledgers that are still marked as under-replicated."""

    @property
    def good(self) -> bool:
        return not (self.incomplete or self.unread or self.marks)

    @property
    def problems(self) -> list[str]:
        """Everything that is wrong, as lines for people."""
        return [
            *self.incomplete,
            *self.unread,
            *(f"ledger {ledger} is still marked as under-replicated" for ledger in self.marks),
        ]


async def judge_ledgers(client: BookKeeper, ledgers: Mapping[int, WrittenLedger]) -> Wholeness:
    """Read every copy of every ledger, then every acknowledged entry, as a client reads it."""
    found = Wholeness(ledgers=len(ledgers))
    found.marks = sorted([ledger async for ledger in client.metadata_store.under_replication.ledgers()])
    turns = asyncio.Semaphore(_AT_ONCE)
    context = RepairContext(services=client.services)

    async def judge(ledger_id: int, written: WrittenLedger) -> None:
        async with turns:
            try:
                async with asyncio.timeout(_LEDGER_S * stretch()):
                    await _look(client, context, ledger_id, found)
            except (BookKeeperError, TimeoutError) as error:
                found.incomplete.append(f"ledger {ledger_id} could not be checked: {in_words(error)}")
            try:
                async with asyncio.timeout(_LEDGER_S * stretch()):
                    await _read(client, ledger_id, written, found)
            except (BookKeeperError, TimeoutError) as error:
                found.unread.append(f"ledger {ledger_id} could not be read: {in_words(error)}")

    async with asyncio.TaskGroup() as group:
        for ledger_id, written in ledgers.items():
            group.create_task(judge(ledger_id, written))
    found.incomplete.sort()
    found.unread.sort()
    return found


async def _look(client: BookKeeper, context: RepairContext, ledger_id: int, found: Wholeness) -> None:
    records = client.metadata_store.ledgers
    record = LedgerView(records, LedgerId(ledger_id), await records.read(LedgerId(ledger_id), fresh=True))
    lacking = await incomplete_copies(context, record, sample_percent=100)
    found.incomplete += [f"ledger {ledger_id}: {each}" for each in lacking]


async def _read(client: BookKeeper, ledger_id: int, written: WrittenLedger, found: Wholeness) -> None:
    wanted = set(written.acknowledged)
    async with await client.open_ledger(ledger_id, PASSWORD) as reader:
        async for entry in reader.read(0, reader.last_add_confirmed):
            if entry.payload == payload(ledger_id, entry.entry_id, written.size):
                found.entries += entry.entry_id in wanted
                wanted.discard(entry.entry_id)
    if wanted:
        found.unread.append(f"ledger {ledger_id}: {len(wanted)} acknowledged entries did not read back")
