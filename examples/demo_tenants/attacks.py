"""What somebody tries who has a good certificate of the cluster, and knows the passwords in the metadata.

Each attack returns how often it got what it wanted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from bookkeeper import BookKeeper
from bookkeeper.client.bookie_request import reply_of
from bookkeeper.errors import BookKeeperError, NoSuchEntryError
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.ledger import DigestScheme, master_key
from bookkeeper.wire import AddEntry, ReadEntry
from examples.demo_tenants.tenants import PASSWORD, TenantProgram

RUN: Final = 20
"""Entries that a flood appends at a time."""


async def read_all(thief: BookKeeper, ledgers: Iterable[int]) -> int:
    """Read other people's ledgers. Returns the entries that were read."""
    got = 0
    for ledger_id in ledgers:
        try:
            async with await thief.open_ledger(ledger_id, PASSWORD, recovery=False) as reader:
                last = await reader.read_last_add_confirmed()
                if last >= 0:
                    got += len([entry async for entry in reader.read(0, last)])
        except BookKeeperError:
            continue
    return got


async def end_writer(thief: BookKeeper, ledger_id: int) -> int:
    """Fence a ledger that somebody writes, at each of its bookies. Returns how many of them did it."""
    metadata = await thief.metadata(ledger_id)
    fenced = 0
    for bookie in metadata.last_fragment.ensemble:
        request = ReadEntry(LedgerId(ledger_id), EntryId(-1), fence=True, master_key=master_key(PASSWORD))
        try:
            await reply_of(thief.services, bookie, request, "a fence")
        except NoSuchEntryError:
            pass  # nothing was written yet, and now nothing will be
        except BookKeeperError:
            continue
        fenced += 1
    return fenced


async def forge(thief: BookKeeper, ledger_id: int, entry_id: int) -> int:
    """Write an entry into a ledger of somebody else, at each of its bookies: as its writer, and as a recovery.

    The entry is sealed with the ledger's own password, so no reader would see that it is forged.
    """
    metadata = await thief.metadata(ledger_id)
    assert metadata.digest_type is not None
    scheme = DigestScheme(metadata.digest_type, PASSWORD)
    payload = b"forged"
    entry = scheme.seal(ledger_id, entry_id, entry_id - 1, len(payload), payload)
    taken = 0
    for bookie in metadata.last_fragment.ensemble:
        for recovery in (False, True):
            request = AddEntry(LedgerId(ledger_id), EntryId(entry_id), scheme.master_key, entry, recovery=recovery)
            try:
                await reply_of(thief.services, bookie, request, "a forged entry")
            except BookKeeperError:
                continue
            taken += 1
    return taken


def admitted_at_most(adds_per_s: int, seconds: float, *, ensemble: int = 3, ack_quorum: int = 2) -> int:
    """Entries of one writer that a rate lets through in so many seconds: each bookie keeps the rate by itself.

    A bookie admits what was saved up for a second, the rate, and the end of the last run. What it refuses the others
    may take, and an entry is acknowledged by so many of them: all bookies' shares, spent as cleverly as can be.
    """
    by_each = adds_per_s * (1 + seconds) + RUN
    return int(by_each * ensemble / ack_quorum)


async def flood(tenant: TenantProgram, seconds: float) -> tuple[int, float]:
    """Write as fast as it goes for a while. Returns the entries that were acknowledged, and the seconds it took."""
    loop = asyncio.get_running_loop()
    began, done = loop.time(), 0
    try:
        async with await tenant.ledger() as ledger:
            while loop.time() < began + seconds:
                first = ledger.last_add_confirmed + 1
                payloads = [b"%s %d" % (tenant.tenant.encode(), first + number) for number in range(RUN)]
                await ledger.append_many(payloads)
                tenant.written[ledger.id] += payloads
                done += RUN
    except BookKeeperError:
        pass  # refused for good: what was acknowledged counts
    return done, loop.time() - began
