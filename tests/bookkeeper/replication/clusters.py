"""Ledgers on simulated clusters, for tests of repair."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.ledger_view import LedgerView
from bookkeeper.client.write.write_handle import WriteHandle
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.ledger import LedgerMetadata
from bookkeeper.replication.copying import copies_of
from bookkeeper.replication.copying.copies import Copy
from bookkeeper.testing.cluster import SimCluster

Story = Callable[[SimCluster], Coroutine[Any, Any, None]]


async def append(cluster: SimCluster, ledger: WriteHandle, count: int, size: int = 50) -> None:
    """Entries whose acknowledgement the cluster remembers."""
    payloads = [b"%d " % (ledger.last_add_confirmed + 1 + i) * size for i in range(count)]
    for entry, payload in zip(await ledger.append_many(payloads), payloads, strict=True):
        cluster.acked(ledger.id, entry, payload, b"pw")


async def written(cluster: SimCluster, bk: BookKeeper, count: int = 100, **shape: Any) -> LedgerId:
    """A closed ledger."""
    async with await bk.create_ledger(password=b"pw", **shape) as ledger:
        await append(cluster, ledger, count)
    return LedgerId(ledger.id)


async def record_of(bk: BookKeeper, ledger_id: int) -> LedgerView:
    ledgers = bk.metadata_store.ledgers
    return LedgerView(ledgers, LedgerId(ledger_id), await ledgers.read(LedgerId(ledger_id), fresh=True))


def copy_on(metadata: LedgerMetadata, bookie: str, index: int = 0) -> Copy:
    return copies_of(metadata, BookieId(bookie))[index]


def holds(cluster: SimCluster, bookie: str, ledger_id: int) -> set[int]:
    """What a running bookie holds of a ledger."""
    runs = cluster.servers[bookie].engine.entries(LedgerId(ledger_id))
    return {entry for run in runs for entry in range(run.first, run.first + run.count)}


async def until(condition: Callable[[], Any]) -> None:
    """In virtual time."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def set_read_only(cluster: SimCluster, bookie: str) -> None:
    """As a bookie started with ``read_only``."""
    server = cluster.servers[bookie]
    assert server._registration is not None and server.port.connections is not None
    server.port.connections.bookie.read_only = True
    await server._registration.set_read_only(True)
