"""A bookie that failed and answers again (W10b)."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.errors import (
    LedgerFencedError,
)
from tests.bookkeeper.client.scripted import ScriptedCluster


@pytest.mark.rule("W10b", "D12")
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
