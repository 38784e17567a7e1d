from __future__ import annotations

import asyncio

import pytest

from bookkeeper.meta import MemoryCluster
from bookkeeper.meta.memory import MemoryStore
from spark_wal.webhdfs.lease import DRIFT, Lease, LeaseValue, SoleOwner, StoreLease
from tests.spark_wal.webhdfs.virtual import LoopClock, in_virtual_time

PATH = "/ledgers-py/leases/test"


def lease_on(store: MemoryStore, owner: str, clock: LoopClock | None = None) -> StoreLease:
    return StoreLease(store, PATH, clock or LoopClock(), owner=owner, address=f"{owner}:1")


def held(lease: Lease) -> bool:
    return lease.is_held


@in_virtual_time
async def test_the_first_owner_waits_for_nobody_and_renews() -> None:
    lease = lease_on(MemoryCluster().connect(), "a")
    began = asyncio.get_running_loop().time()
    await lease.acquire(wait_vacant=False)
    assert asyncio.get_running_loop().time() - began < 0.5
    for _ in range(100):
        await asyncio.sleep(0.1)
        assert held(lease)
    await lease.release()
    assert not held(lease)


@pytest.mark.rule("S3")
@in_virtual_time
async def test_d22_at_no_moment_do_two_hold_it() -> None:
    cluster = MemoryCluster()
    old, new = lease_on(cluster.connect(), "a"), lease_on(cluster.connect(), "b")
    await old.acquire(wait_vacant=False)
    taking = asyncio.ensure_future(new.acquire(wait_vacant=False))
    while not taking.done():
        assert not (old.is_held and new.is_held)
        await asyncio.sleep(0.01)
    assert held(new)
    assert not held(old)
    await asyncio.wait_for(old.lost(), 1)
    assert old.is_others
    assert not new.is_others
    assert new.epoch == old.epoch + 1
    await old.release()
    await new.release()


@pytest.mark.rule("S3")
@in_virtual_time
async def test_d22_an_owner_that_was_paused_holds_it_no_more_when_it_wakes() -> None:
    clock = LoopClock()
    lease = lease_on(MemoryCluster().connect(), "a", clock)
    await lease.acquire(wait_vacant=False)
    clock.offset += 1.0  # the process was stopped for a second: no renewal ran, its clock went on
    assert not held(lease)
    await asyncio.sleep(1)  # nobody took it: it is renewed and goes on
    assert held(lease)
    await lease.release()


@pytest.mark.rule("S3")
@in_virtual_time
async def test_d22_a_successor_waits_out_the_lease_of_a_dead_owner() -> None:
    cluster = MemoryCluster()
    store = cluster.connect()
    dead = lease_on(store, "a")
    await dead.acquire(wait_vacant=False)
    cluster.suspend(store)  # as if it were killed: it can neither renew nor release
    new = lease_on(cluster.connect(), "b")
    began = asyncio.get_running_loop().time()
    await new.acquire(wait_vacant=False)
    assert asyncio.get_running_loop().time() - began >= 1.0 * DRIFT
    assert not held(dead)
    cluster.resume(store)
    await dead.lost()
    await dead.release()
    await new.release()


@in_virtual_time
async def test_a_released_lease_is_taken_at_once() -> None:
    cluster = MemoryCluster()
    old = lease_on(cluster.connect(), "a")
    await old.acquire(wait_vacant=False)
    await old.release()
    new = lease_on(cluster.connect(), "b")
    began = asyncio.get_running_loop().time()
    await new.acquire(wait_vacant=True)
    assert asyncio.get_running_loop().time() - began < 0.5
    await new.release()


@in_virtual_time
async def test_one_that_stands_by_waits_until_the_owner_renews_no_more() -> None:
    cluster = MemoryCluster()
    store = cluster.connect()
    owner, standby = lease_on(store, "a"), lease_on(cluster.connect(), "b")
    await owner.acquire(wait_vacant=False)
    waiting = asyncio.ensure_future(standby.acquire(wait_vacant=True))
    await asyncio.sleep(30)
    assert held(owner)
    assert standby.is_others
    assert not waiting.done()
    cluster.suspend(store)
    await asyncio.wait_for(waiting, 10)
    assert held(standby)
    cluster.resume(store)
    await owner.release()
    await standby.release()


@in_virtual_time
async def test_a_store_that_is_away_for_a_moment_costs_the_right_but_not_the_lease() -> None:
    cluster = MemoryCluster()
    lease = lease_on(cluster.connect(), "a")
    await lease.acquire(wait_vacant=False)
    cluster.begin_outage()
    await asyncio.sleep(2)
    assert not held(lease)
    cluster.end_outage()
    await asyncio.sleep(15)
    assert held(lease)
    await lease.release()


def test_the_value_survives_its_bytes() -> None:
    value = LeaseValue(3, "a", "host:1", 1000, released=True)
    assert LeaseValue.decode(value.encode()) == value


@in_virtual_time
async def test_a_sole_owner_is_always_sure() -> None:
    lease = SoleOwner()
    await lease.acquire(wait_vacant=True)
    assert held(lease)
    await lease.release()
