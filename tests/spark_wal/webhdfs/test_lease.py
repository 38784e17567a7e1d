from __future__ import annotations

import asyncio

import pytest

from bookkeeper.errors import MetadataUnavailableError
from bookkeeper.meta import Version
from bookkeeper.meta.memory import MemoryCluster, MemoryStore
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


@pytest.mark.rule("S3")
@in_virtual_time
async def test_d22_one_that_gives_up_before_it_had_the_lease_does_not_call_it_free() -> None:
    cluster = MemoryCluster()
    partitioned = cluster.connect()
    old, hasty = lease_on(partitioned, "a"), lease_on(cluster.connect(), "b")
    await old.acquire(wait_vacant=False)
    cluster.suspend(partitioned)  # it cannot see that it is replaced, and answers for what is left of its lease
    taking = asyncio.ensure_future(hasty.acquire(wait_vacant=False))
    await asyncio.sleep(0.05)
    assert held(old) and not taking.done()
    taking.cancel()
    await asyncio.wait([taking])
    await hasty.release()
    third = lease_on(cluster.connect(), "c")
    taking = asyncio.ensure_future(third.acquire(wait_vacant=False))
    while not taking.done():
        await asyncio.sleep(0.01)
        assert not (held(old) and held(third))
    cluster.resume(partitioned)
    await old.release()
    await third.release()


@pytest.mark.rule("S3", "M8")
@in_virtual_time
async def test_d22_one_that_took_the_lease_without_knowing_waits_for_the_owner_before_it() -> None:
    cluster = MemoryCluster()
    partitioned, store = cluster.connect(), cluster.connect()
    old, new = lease_on(partitioned, "a"), lease_on(store, "b")
    await old.acquire(wait_vacant=False)
    cluster.suspend(partitioned)
    real, calls = store.set, 0

    async def reply_lost(path: str, value: bytes, expected: Version | None, *, born: int = 0) -> Version:
        nonlocal calls
        calls += 1
        version = await real(path, value, expected, born=born)
        if calls == 1:
            store.sync = unreachable  # type: ignore[method-assign]
            raise MetadataUnavailableError("the reply is lost")
        return version

    sync = store.sync

    async def unreachable(path: str) -> None:
        store.sync = sync  # type: ignore[method-assign]
        raise MetadataUnavailableError("not now")

    store.set = reply_lost  # type: ignore[method-assign]
    taking = asyncio.ensure_future(new.acquire(wait_vacant=False))
    while not taking.done():
        await asyncio.sleep(0.01)
        assert not (held(old) and held(new))
    assert held(new)
    cluster.resume(partitioned)
    await old.release()
    await new.release()


@pytest.mark.rule("M8", "F9")
@in_virtual_time
async def test_a_renewal_whose_reply_was_lost_is_not_taken_for_a_successor() -> None:
    store = MemoryCluster().connect()
    lease = lease_on(store, "a")
    await lease.acquire(wait_vacant=False)
    real, sync = store.set, store.sync

    async def reply_lost(path: str, value: bytes, expected: Version | None, *, born: int = 0) -> Version:
        await real(path, value, expected, born=born)
        store.set, store.sync = real, unreachable  # type: ignore[method-assign]
        raise MetadataUnavailableError("the reply is lost")

    async def unreachable(path: str) -> None:
        store.sync = sync  # type: ignore[method-assign]
        raise MetadataUnavailableError("not now")

    store.set = reply_lost  # type: ignore[method-assign]
    for _ in range(30):
        await asyncio.sleep(0.1)
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
