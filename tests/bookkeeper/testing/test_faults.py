"""Faults are there within their block, and gone behind it; what was acknowledged stays readable."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from bookkeeper.errors import MetadataUnavailableError
from bookkeeper.testing import faults
from bookkeeper.testing.cluster import SESSION_TIMEOUT_S, SimCluster
from bookkeeper.testing.plugin import in_virtual_time

pytest_plugins = ["bookkeeper.testing.plugin"]

FAULTS: list[Callable[..., AbstractContextManager[None]]] = [
    faults.stopped,
    faults.frozen,
    faults.slow,
    faults.full_disk,
    faults.cut_off,
    faults.without_metadata,
]


def now() -> float:
    return asyncio.get_running_loop().time()


async def writable(bk: Any) -> set[str]:
    return {str(bookie) for bookie in await bk.metadata_store.bookies.writable()}


@pytest.mark.rule("L1", "R11")
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("bookkeeper_bookies", [4])
@in_virtual_time
async def test_appends_go_on_while_one_of_four_bookies_has_a_fault(
    bookkeeper_cluster: SimCluster, fault: Callable[..., AbstractContextManager[None]]
) -> None:
    cluster = bookkeeper_cluster
    async with cluster.connect() as bk, await bk.create_ledger() as ledger:
        for number in range(30):
            payload = b"%d" % number
            if number == 10:
                with fault(cluster, "b1"):
                    for inside in range(10):
                        cluster.acked(ledger.id, await ledger.append(b"in %d" % inside), b"in %d" % inside)
                    await asyncio.sleep(5)
            cluster.acked(ledger.id, await ledger.append(payload), payload)
    await cluster.wait_until_up()
    await cluster.check_acked()


@pytest.mark.parametrize("power", [False, True])
@in_virtual_time
async def test_a_stopped_bookie_is_down_within_the_block(bookkeeper_cluster: SimCluster, power: bool) -> None:
    with faults.stopped(bookkeeper_cluster, "b1", "b2", power=power):
        assert [bookkeeper_cluster.node(name).alive for name in ("b1", "b2", "b3")] == [False, False, True]
    await bookkeeper_cluster.wait_until_up()


@in_virtual_time
async def test_a_slow_or_frozen_bookie_of_the_quorum_delays_an_append(bookkeeper_cluster: SimCluster) -> None:
    async with bookkeeper_cluster.connect() as bk, await bk.create_ledger(ack_quorum=3) as ledger:
        began = now()
        await ledger.append(b"quick")
        assert now() - began < 1
        with faults.slow(bookkeeper_cluster, "b1", sync_s=1.5):
            began = now()
            await ledger.append(b"slow")
            assert now() - began >= 1.5
        await asyncio.sleep(5)
        with faults.frozen(bookkeeper_cluster, "b2"):
            waiting = asyncio.ensure_future(ledger.append(b"later"))
            await asyncio.sleep(2)
            assert not waiting.done()
        await waiting
    assert bookkeeper_cluster.node("b1").disk.sync_s < 1


@in_virtual_time
async def test_a_bookie_whose_disk_is_full_takes_no_more_until_there_is_room(bookkeeper_cluster: SimCluster) -> None:
    async with bookkeeper_cluster.connect() as bk, await bk.create_ledger() as ledger:
        with faults.full_disk(bookkeeper_cluster, "b1"):
            await asyncio.sleep(60)
            await ledger.append(b"x")
            assert await writable(bk) == {"b2", "b3"}
        await asyncio.sleep(120)
        assert await writable(bk) == {"b1", "b2", "b3"}


@in_virtual_time
async def test_who_is_cut_off_from_all_reaches_nobody(bookkeeper_cluster: SimCluster) -> None:
    network, node = bookkeeper_cluster.world.network, bookkeeper_cluster.node
    with faults.cut_off(bookkeeper_cluster, "b1"), faults.cut_off(bookkeeper_cluster, "client", "b2"):
        assert network.is_cut(node("b1"), node("b3")) and network.is_cut(node("client"), node("b1"))
        assert network.is_cut(node("b2"), node("client")) and not network.is_cut(node("b2"), node("b3"))
    assert not network.is_cut(node("b1"), node("b3")) and not network.is_cut(node("b2"), node("client"))


@pytest.mark.parametrize("longer", [False, True])
@in_virtual_time
async def test_without_metadata_a_session_lasts_for_a_while(bookkeeper_cluster: SimCluster, longer: bool) -> None:
    async with bookkeeper_cluster.connect() as bk:
        session = bookkeeper_cluster.sessions["b1"].session_id
        with faults.without_metadata(bookkeeper_cluster, "b1"):
            await asyncio.sleep(SESSION_TIMEOUT_S + 1 if longer else SESSION_TIMEOUT_S / 2)
            assert await writable(bk) == ({"b2", "b3"} if longer else {"b1", "b2", "b3"})
        await asyncio.sleep(SESSION_TIMEOUT_S + 5)
        assert (bookkeeper_cluster.sessions["b1"].session_id != session) is longer
        assert await writable(bk) == {"b1", "b2", "b3"}


@in_virtual_time
async def test_a_client_without_metadata_creates_no_ledger(bookkeeper_cluster: SimCluster) -> None:
    async with bookkeeper_cluster.connect() as bk:
        with faults.without_metadata(bookkeeper_cluster, "client"), pytest.raises(MetadataUnavailableError):
            await bk.create_ledger()
        async with await bk.create_ledger() as ledger:
            await ledger.append(b"x")


@in_virtual_time
async def test_a_bookie_that_lost_its_session_registers_again(bookkeeper_cluster: SimCluster) -> None:
    async with bookkeeper_cluster.connect() as bk:
        faults.lose_session(bookkeeper_cluster, "b1", "client")
        await asyncio.sleep(5)
        assert await writable(bk) == {"b1", "b2", "b3"}
