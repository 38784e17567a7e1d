"""Orders to be read-only."""

from __future__ import annotations

import asyncio

from bookkeeper.ids import BookieId
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.records.read_only import ReadOnlyOrders
from bookkeeper.meta.stores.memory import MemoryCluster

B1, B2 = BookieId("b1"), BookieId("b2")


async def test_an_order_is_for_one_bookie_and_stays_until_it_is_taken_back() -> None:
    cluster = MemoryCluster()
    one, two = cluster.connect(), cluster.connect()
    orders = ReadOnlyOrders(one, Paths("/ledgers"))
    await orders.give(B1, "eve on host")
    await orders.give(B1, "somebody else")
    await one.close()
    orders = ReadOnlyOrders(two, Paths("/ledgers"))
    assert await orders.read(B1) == "eve on host" and await orders.read(B2) is None
    await orders.take_back(B1)
    await orders.take_back(B1)
    assert await orders.read(B1) is None


async def test_a_bookie_hears_of_its_own_order() -> None:
    cluster = MemoryCluster()
    orders, other = (ReadOnlyOrders(cluster.connect(), Paths("/ledgers")) for _ in range(2))
    heard = asyncio.Event()
    watch = orders.watch(B1, heard.set)
    await other.give(B2, "x")
    await asyncio.sleep(0.01)
    assert not heard.is_set()
    await other.give(B1, "x")
    await asyncio.wait_for(heard.wait(), 5)
    watch.close()
