"""One ledger, repaired by an operator."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.errors import IllegalOperationError, NoSuchLedgerError
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.replication.copying import repair_lock
from bookkeeper.replication.repairs import repair_once
from bookkeeper.testing.cluster import SimCluster
from tests.bookkeeper.replication.clusters import Story, append, written


def run(story: Story, bookies: int = 4, seed: int = 1) -> None:
    SimCluster(seed, bookies).run(story)


@pytest.mark.rule("A7")
def test_it_copies_what_is_gone_says_what_it_does_and_removes_the_mark() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await written(cluster, bk, 30, ensemble=3)
            victim = sorted((await bk.metadata(ledger)).bookies)[0]
            await bk.metadata_store.under_replication.mark(ledger, [BookieId(victim)], 1)
            cluster.node(victim).crash()
            await asyncio.sleep(5)
            said: list[str] = []
            copied: list[int] = []
            done = await repair_once(
                bk,
                ledger,
                owner="me",
                grace_s=0,
                report=said.append,
                on_copied=lambda entries, size: copied.append(entries),
            )
            assert done.whole and sum(copied) == 30 and said[0] == f"copies entries 0..29 on {victim}"
            assert await bk.metadata_store.under_replication.read(ledger) is None
            await cluster.check_acked()

    run(story)


@pytest.mark.rule("A3")
def test_it_waits_for_the_writer_of_an_open_ledger_and_recovers_it_then() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger(password=b"pw", ensemble=3)
            await append(cluster, ledger, 10)
            victim = ledger.metadata.last_fragment.ensemble[0]
            await ledger.abandon()
            cluster.node(victim).crash()
            await asyncio.sleep(5)
            began = asyncio.get_running_loop().time()
            done = await repair_once(bk, LedgerId(ledger.id), owner="me", grace_s=20)
            assert done.whole and done.recovered and asyncio.get_running_loop().time() >= began + 20
            await cluster.check_acked()

    run(story)


@pytest.mark.rule("A8", "A10")
def test_what_cannot_be_done_is_said() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await written(cluster, bk, 30, ensemble=3)
            with pytest.raises(NoSuchLedgerError):
                await repair_once(bk, LedgerId(99), owner="me", grace_s=0)
            async with repair_lock(bk.metadata_store, ledger, "somebody"):
                with pytest.raises(IllegalOperationError, match="is being repaired by another repair of this client"):
                    await repair_once(bk, ledger, owner="me", grace_s=0)
            cluster.node("b1").crash()
            await asyncio.sleep(5)
            done = await repair_once(bk, ledger, owner="me", grace_s=0)
            assert not done.whole and "no bookie can take the place of b1" in done.reason

    run(story, bookies=3)
