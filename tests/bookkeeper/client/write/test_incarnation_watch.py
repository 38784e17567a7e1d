"""A bookie that failed and answers again (W10b)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from bookkeeper.errors import LedgerFencedError
from bookkeeper.meta.records import ledger_format
from bookkeeper.meta.stores.memory import MemoryStore
from bookkeeper.wire import ReadEntry, Reply, Request
from tests.bookkeeper.client.scripted import ScriptedBookie, ScriptedCluster


@pytest.mark.rule("W10b", "W14")
def test_a_bookie_that_comes_back_gets_entries_from_then_on_after_its_life_was_checked() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger() as ledger:
            await ledger.append(b"zero")
            cluster.world.node("b3").crash(power=False)
            await ledger.append(b"one")
            cluster.world.node("b3").restart()
            await asyncio.sleep(5)
            assert ledger.failed_bookies == ()
            await ledger.append(b"two")
            await asyncio.sleep(1)
            assert 2 in cluster["b3"].entries[ledger.id]

    ScriptedCluster().run(story)


@pytest.mark.rule("W10b")
def test_a_bookie_that_comes_back_after_a_recovery_ends_the_writer() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            await ledger.append(b"zero")
            cluster.world.node("b3").crash(power=False)
            await ledger.append(b"one")
            stored = await bk.metadata_store.ledgers.read(ledger.id)
            await bk.metadata_store.ledgers.write(ledger.id, stored.value.begin_recovery(), stored.version)
            cluster.world.node("b3").restart()
            await asyncio.sleep(5)
            assert ledger.closed
            with pytest.raises(LedgerFencedError):
                await ledger.append(b"two")

    ScriptedCluster().run(story)


class RecoveredMeanwhile(ScriptedBookie):
    """When it is asked whether it lives, somebody begins to recover the ledger, right before it answers."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.recover: Callable[[], None] | None = None
        self.asked = False

    def handle(self, request: Request, reply: Callable[[Reply], None]) -> None:
        if self.recover is not None and isinstance(request, ReadEntry) and not request.fence:
            self.recover()
            self.recover, self.asked = None, True
        super().handle(request, reply)


@pytest.mark.rule("W10b", "Z6")
def test_metadata_are_read_afresh_and_after_the_bookie_has_answered() -> None:
    """Read before the bookie answered, or from a server of the store that is behind, metadata show a ledger that was
    open once: a recovery that came in between has fenced the bookie's earlier life, and what it acknowledges counts
    for nothing."""

    async def story(cluster: ScriptedCluster) -> None:
        bookie = cluster["b3"]
        assert isinstance(bookie, RecoveredMeanwhile)
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            await ledger.append(b"zero")
            store = bk.metadata_store.store
            assert isinstance(store, MemoryStore)
            store.lag()
            path = bk.metadata_store.ledgers.path(ledger.id)

            def recover() -> None:
                new = ledger_format.encode(ledger.metadata.begin_recovery())
                cluster.store.write(0, lambda transaction: transaction.set(path, new, None))

            cluster.world.node("b3").crash(power=False)
            await ledger.append(b"one")
            bookie.recover = recover
            cluster.world.node("b3").restart()
            await asyncio.sleep(5)
            assert bookie.asked
            assert ledger.closed
            with pytest.raises(LedgerFencedError):
                await ledger.append(b"two")

    cluster = ScriptedCluster()
    cluster.bookies[2] = RecoveredMeanwhile("b3")
    cluster.run(story)
