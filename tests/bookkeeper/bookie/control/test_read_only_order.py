"""A bookie that is ordered from afar to take no new entries, in a simulated world."""

from __future__ import annotations

import asyncio

from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.ids import BookieId
from bookkeeper.meta.records.read_only import ReadOnlyOrders
from bookkeeper.testing.cluster import SimCluster
from tests.bookkeeper.replication.clusters import append, until

B1 = BookieId("b1")


def orders_of(bk: BookKeeper) -> ReadOnlyOrders:
    return ReadOnlyOrders(bk.metadata_store.store, bk.metadata_store.paths)


async def until_writable(bk: BookKeeper, *names: str) -> None:
    async with asyncio.timeout(60):
        while await bk.metadata_store.bookies.writable() != list(names):  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0.1)


def test_its_writers_go_on_elsewhere_until_the_order_is_taken_back() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger(password=b"pw")
            await append(cluster, ledger, 5)
            gone = BookieId(ledger.metadata.last_fragment.ensemble[0])
            rest = sorted({"b1", "b2", "b3", "b4"} - {gone})
            await orders_of(bk).give(gone, "eve on host")
            await until_writable(bk, *rest)
            await append(cluster, ledger, 5)
            await until(lambda: gone not in ledger.metadata.last_fragment.ensemble)
            await orders_of(bk).take_back(gone)
            await until_writable(bk, "b1", "b2", "b3", "b4")
            await ledger.close()
            await cluster.check_acked()

    SimCluster(bookies=4).run(story)


def test_the_order_outlives_a_restart_and_a_bookie_that_starts_follows_it_at_once() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            await orders_of(bk).give(B1, "eve on host")
            await until_writable(bk, "b2", "b3")
            cluster.node("b1").crash()
            await asyncio.sleep(5)
            cluster.node("b1").restart()
            await cluster.wait_until_up("b1")
            assert await bk.metadata_store.bookies.read_only() == ["b1"]
            assert cluster.servers["b1"].health()["read_only"] is True

    SimCluster().run(story)


def test_an_order_that_could_not_be_read_at_once_is_followed_later() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            cluster.store.begin_outage()
            await asyncio.sleep(3)
            cluster.store.end_outage()
            await orders_of(bk).give(B1, "eve on host")
            await until_writable(bk, "b2", "b3")

    SimCluster().run(story)


def test_who_gave_the_order_can_wait_until_the_bookie_follows_it_and_until_it_does_not() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            order, orders = cluster.servers["b1"].parts.order, orders_of(bk)
            for ordered in (True, False):
                waiting = asyncio.ensure_future(order.wait_until(ordered=ordered))
                await asyncio.sleep(1)
                assert not waiting.done()
                await (orders.give(B1, "eve") if ordered else orders.take_back(B1))
                async with asyncio.timeout(30):
                    await waiting
                assert cluster.servers["b1"].health()["read_only"] is ordered

    SimCluster().run(story)
