from __future__ import annotations

import asyncio
import json
import random
from dataclasses import replace
from typing import Any

import pytest

from bookkeeper.errors import MetadataFormatError, MetadataUnavailableError
from bookkeeper.leases.lease import (
    DRIFT,
    LEASE_S,
    LOOKS,
    VACANT_AFTER,
    Lease,
    LeaseEntry,
    LeaseLostError,
    LeaseValue,
    NamespaceOwnedError,
    SoleOwner,
    StoreLease,
    renewed_by,
)
from bookkeeper.leases.process_location import NOWHERE, OwnLocation, ProcessLocation
from bookkeeper.meta import Version
from bookkeeper.meta.stores.memory import Fate, MemoryCluster, MemoryStore
from bookkeeper.meta.stores.process_identity import ProcessIdentity
from tests.spark_wal.webhdfs.virtual import LoopClock, in_virtual_time

PATH = "/ledgers-py/leases/test"


def lease_on(store: MemoryStore, owner: str, clock: LoopClock | None = None, here: OwnLocation = NOWHERE) -> StoreLease:
    return StoreLease(store, PATH, clock or LoopClock(), owner=owner, address=f"{owner}:1", here=here)


def held(lease: Lease) -> bool:
    return lease.is_held


def now() -> float:
    return asyncio.get_running_loop().time()


async def taken(lease: Lease, entry: LeaseEntry = LeaseEntry.TAKE_OVER) -> Lease:
    """It is acquired, and held."""
    await lease.acquire(entry)
    await lease.wait_until_held()
    assert held(lease)
    return lease


def reply_is_lost(store: MemoryStore) -> None:
    """Of the next write, and nobody can ask whether it was done; then all is well again."""
    real, sync = store.set, store.sync

    async def reply_lost(path: str, value: bytes, expected: Version | None, *, created_txn: int = 0) -> Version:
        await real(path, value, expected, created_txn=created_txn)
        store.set, store.sync = real, unreachable  # type: ignore[method-assign]
        raise MetadataUnavailableError("the reply is lost")

    async def unreachable(path: str) -> None:
        store.sync = sync  # type: ignore[method-assign]
        raise MetadataUnavailableError("not now")

    store.set = reply_lost  # type: ignore[method-assign]


async def never_both(until: asyncio.Future[Lease], *leases: StoreLease) -> None:
    """Look at every hundredth of a second, until that is done and for two seconds more."""
    ends = float("inf")
    while now() < ends:
        assert sum(lease.is_held for lease in leases) < 2, "two hold it"
        if until.done():
            ends = min(ends, now() + 2)
        await asyncio.sleep(0.01)


@in_virtual_time
async def test_the_first_owner_waits_for_nobody_and_renews() -> None:
    lease = lease_on(MemoryCluster().connect(), "a")
    began = asyncio.get_running_loop().time()
    await taken(lease)
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
    await taken(old)
    taking = asyncio.ensure_future(taken(new))
    while not taking.done():
        assert not (old.is_held and new.is_held)
        await asyncio.sleep(0.01)
    assert held(new)
    assert not held(old)
    await asyncio.wait_for(old.lost(), 1)
    assert (old.other, new.other) == ("b:1", None)
    assert new.epoch == old.epoch + 1
    await old.release()
    await new.release()


@pytest.mark.rule("S3")
@in_virtual_time
async def test_d22_an_owner_that_was_paused_holds_it_no_more_when_it_wakes() -> None:
    clock = LoopClock()
    lease = lease_on(MemoryCluster().connect(), "a", clock)
    await taken(lease)
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
    await taken(dead)
    cluster.suspend(store)  # as if it were killed: it can neither renew nor release
    new = lease_on(cluster.connect(), "b")
    began = asyncio.get_running_loop().time()
    await taken(new)
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
    await taken(old)
    await old.release()
    new = lease_on(cluster.connect(), "b")
    began = asyncio.get_running_loop().time()
    await taken(new, LeaseEntry.WHEN_VACANT)
    assert asyncio.get_running_loop().time() - began < 0.5
    await new.release()


@in_virtual_time
async def test_with_the_store_away_a_lease_is_given_up_in_time() -> None:
    """It was waited for until the store gave up, 10 s: that was most of a gateway's stop."""
    cluster = MemoryCluster()
    lease = lease_on(cluster.connect(), "a")
    await lease.acquire(LeaseEntry.TAKE_OVER)
    cluster.begin_outage()
    async with asyncio.timeout(3):
        await lease.release()
    assert not held(lease)


@in_virtual_time
async def test_one_that_stands_by_waits_until_the_owner_renews_no_more() -> None:
    cluster = MemoryCluster()
    store = cluster.connect()
    owner, standby = lease_on(store, "a"), lease_on(cluster.connect(), "b")
    await taken(owner)
    waiting = asyncio.ensure_future(taken(standby, LeaseEntry.WHEN_VACANT))
    await asyncio.sleep(30)
    assert held(owner)
    assert standby.other == "a:1"
    assert standby.others_seen > 60
    assert not waiting.done()
    cluster.suspend(store)
    await asyncio.wait_for(waiting, 10)
    assert held(standby)
    cluster.resume(store)
    await owner.release()
    await standby.release()


@in_virtual_time
async def test_who_renews_a_lease_is_told_within_a_renewal_and_nobody_after_a_standbys_wait() -> None:
    cluster = MemoryCluster()
    store, asker = cluster.connect(), cluster.connect()

    async def told() -> tuple[str | None, float]:
        began = now()
        return await renewed_by(asker, PATH, LoopClock()), now() - began

    assert await told() == (None, 0), "there is no lease"
    owner = lease_on(store, "a")
    await taken(owner)
    address, took_s = await told()
    assert address == "a:1" and took_s < LEASE_S * 0.7
    cluster.suspend(store)
    address, took_s = await told()
    assert address is None and VACANT_AFTER < took_s < VACANT_AFTER + 0.5
    cluster.resume(store)
    await asyncio.sleep(1)
    assert (await told())[0] == "a:1"
    await owner.release()
    assert await told() == (None, 0), "it was given up"


@in_virtual_time
async def test_the_time_that_the_store_takes_to_answer_makes_no_lease_vacant() -> None:
    cluster = MemoryCluster()
    store, asker = cluster.connect(), cluster.connect()
    owner = lease_on(store, "a")
    await taken(owner)
    cluster.suspend(store)
    get, asked = asker.get, 0

    async def slow(path: str) -> Any:
        nonlocal asked
        asked += 1
        await asyncio.sleep(1.0)
        return await get(path)

    asker.get = slow  # type: ignore[method-assign]
    assert await renewed_by(asker, PATH, LoopClock()) is None
    assert asked >= VACANT_AFTER * LOOKS
    await owner.release()


@in_virtual_time
async def test_a_store_that_is_away_for_a_moment_costs_the_right_but_not_the_lease() -> None:
    cluster = MemoryCluster()
    lease = lease_on(cluster.connect(), "a")
    await taken(lease)
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
    await taken(old)
    cluster.suspend(partitioned)  # it cannot see that it is replaced, and answers for what is left of its lease
    taking = asyncio.ensure_future(taken(hasty))
    await asyncio.sleep(0.05)
    assert held(old) and not taking.done()
    taking.cancel()
    await asyncio.wait([taking])
    await hasty.release()
    third = lease_on(cluster.connect(), "c")
    taking = asyncio.ensure_future(taken(third))
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
    await taken(old)
    cluster.suspend(partitioned)
    reply_is_lost(store)
    taking = asyncio.ensure_future(taken(new))
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
    await taken(lease)
    reply_is_lost(store)
    for _ in range(30):
        await asyncio.sleep(0.1)
        assert held(lease)
    await lease.release()


def place(number: int, listen: str = "h:1") -> ProcessLocation:
    return ProcessLocation(ProcessIdentity("boot", "pid:[1]", number, 0), "net:[1]", listen)


def here(number: int, dead: set[int], listen: str = "h:1") -> OwnLocation:
    return OwnLocation(place(number, listen), lambda other: other.process.pid in dead)


class Losing:
    """Between the leases and their store: what the test says happens to the next operations of a kind."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self.fates: dict[tuple[int, str], list[Fate]] = {}
        cluster.interference = self

    def next(self, store: MemoryStore, kind: str, *fates: Fate) -> None:
        self.fates[store.session_id, kind] = list(fates)

    def fate(self, session: int, kind: str, path: str) -> Fate:
        left = self.fates.get((session, kind))
        return left.pop(0) if left else Fate()


@pytest.mark.rule("S11")
@in_virtual_time
async def test_a_lease_lasts_from_when_its_renewal_was_sent_not_from_when_the_reply_came() -> None:
    """Counted from the reply, a lease outlasts the wait of a successor who saw the renewal before its reply came:
    then two answer at once."""
    cluster = MemoryCluster()
    losing, store = Losing(cluster), cluster.connect()
    old, new = lease_on(store, "a"), lease_on(cluster.connect(), "b")
    await taken(old)
    losing.next(store, "set", Fate(delay_after_s=0.9))  # written at once, answered late
    began = now()
    await asyncio.sleep(LEASE_S / 3 + 0.1)
    sent = began + LEASE_S / 3
    taking = asyncio.ensure_future(taken(new))
    await asyncio.sleep(sent + 0.95 - now())
    assert held(old), "the reply is here, and the lease not over"
    cluster.suspend(store)
    await asyncio.sleep(sent + LEASE_S + 0.01 - now())
    assert not held(old), "a lease after it was sent it is over, whenever the reply came"
    await never_both(taking, old, new)
    assert held(new)
    await new.release()


@pytest.mark.rule("S11")
@in_virtual_time
async def test_a_claim_counts_from_when_it_was_sent_too() -> None:
    cluster = MemoryCluster()
    losing, store = Losing(cluster), cluster.connect()
    lease = lease_on(store, "a")
    losing.next(store, "create", Fate(delay_after_s=1.5))
    began = now()
    await lease.acquire(LeaseEntry.TAKE_OVER)
    assert now() > began + LEASE_S
    assert not held(lease), "it ran out before the reply came"
    await lease.wait_until_held()
    assert held(lease)
    await lease.release()


@pytest.mark.rule("S11", "M8")
@in_virtual_time
async def test_one_that_had_it_once_and_takes_it_without_knowing_waits_again() -> None:
    """It remembered only that it had waited, not for which claim: when the reply to a later take-over was lost, the
    second look found its own name there, it skipped the wait, and answered beside the owner whom it had replaced."""
    cluster = MemoryCluster()
    store, others = cluster.connect(), cluster.connect()
    again, old = lease_on(store, "a"), lease_on(others, "b")
    await taken(again)
    await taken(old)  # from the first, which stands by now
    await again.lost()
    cluster.suspend(others)  # it cannot see that it is replaced, and answers for what is left of its lease
    reply_is_lost(store)
    taking = asyncio.ensure_future(taken(again))
    await never_both(taking, old, again)
    assert held(again)
    assert again.epoch == old.epoch + 2
    cluster.resume(others)
    await again.release()


@pytest.mark.rule("S11")
@in_virtual_time
async def test_one_whose_journal_failed_takes_its_own_lease_again_without_waiting() -> None:
    lease = lease_on(MemoryCluster().connect(), "a")
    await taken(lease)
    began = now()
    await taken(lease, LeaseEntry.WHEN_VACANT)
    assert now() - began < 0.1
    await lease.release()


@pytest.mark.rule("S11")
@pytest.mark.parametrize("seed", range(24))
def test_at_no_moment_do_two_hold_it_whatever_is_lost_late_or_dead(seed: int) -> None:
    """Three gateways whose clocks run apart by a tenth; requests and replies are late or lost, gateways are paused,
    die and come again under another name, and take the lease in every way."""

    @in_virtual_time
    async def story() -> None:
        rng = random.Random(seed)
        cluster = MemoryCluster()

        class Weather:
            def fate(self, session: int, kind: str, path: str) -> Fate:
                if rng.random() < 0.85:
                    return Fate()
                late, later = rng.choice([0, 0.1, 0.7]), rng.choice([0, 0.1, 0.9])
                return Fate(late, rng.random() < 0.1, rng.random() < 0.2, later)

        cluster.interference = Weather()
        dead: set[int] = set()
        living: dict[int, StoreLease] = {}
        stores: dict[int, MemoryStore] = {}
        tasks: dict[int, asyncio.Task[None]] = {}

        class Rated(LoopClock):
            def __init__(self, rate: float) -> None:
                super().__init__()
                self.rate = rate

            def monotonic(self) -> float:
                return super().monotonic() * self.rate

        async def live(lease: StoreLease) -> None:
            while True:
                try:
                    await lease.acquire(rng.choice([*LeaseEntry, LeaseEntry.WHEN_VACANT]))
                    await lease.wait_until_held()
                    async with asyncio.timeout(rng.choice([0.5, 3, 8])):
                        await lease.lost()
                except (LeaseLostError, NamespaceOwnedError, TimeoutError):
                    if rng.random() < 0.5:
                        await lease.release()

        def created_txn(number: int) -> None:
            clock = Rated(1 + rng.random() / 10)
            stores[number] = cluster.connect()
            living[number] = lease_on(stores[number], f"g{number}", clock, here(number, dead, f"h:{number % 2}"))
            tasks[number] = asyncio.ensure_future(live(living[number]))

        for number in (1, 2, 3):
            created_txn(number)
        held_for = 0
        for tick in range(6000):
            await asyncio.sleep(0.01)
            holding = [number for number, lease in living.items() if lease.is_held]
            assert len(holding) < 2, f"after {tick / 100} s {holding} hold it"
            held_for += len(holding)
            if rng.random() < 0.004:
                victim = rng.choice(list(living))
                tasks.pop(victim).cancel()
                del living[victim]
                dead.add(victim)  # it answers nothing any more, and writes nothing that is not on its way
                cluster.suspend(stores[victim])
                created_txn(max(stores) + 1)
        assert all(not task.done() for task in tasks.values()), [
            task.exception() for task in tasks.values() if task.done()
        ]
        assert held_for > 600, "hardly anybody ever held it"
        for task in tasks.values():
            task.cancel()

    story()


@pytest.mark.rule("S12")
@in_virtual_time
async def test_a_living_owner_is_left_alone_and_named() -> None:
    cluster = MemoryCluster()
    owner, other = lease_on(cluster.connect(), "a"), lease_on(cluster.connect(), "b")
    await taken(owner)
    began = now()
    with pytest.raises(NamespaceOwnedError, match="the gateway at a:1 owns this namespace") as raised:
        await other.acquire(LeaseEntry.IF_VACANT)
    assert raised.value.address == other.other == "a:1"
    assert now() - began < LEASE_S
    assert held(owner)
    await owner.release()


@pytest.mark.rule("S12")
@in_virtual_time
async def test_on_the_address_of_the_owner_it_is_taken_after_one_lease() -> None:
    cluster = MemoryCluster()
    store = cluster.connect()
    await taken(lease_on(store, "a", here=here(1, set(), "h:9870")))
    cluster.suspend(store)
    began = now()
    elsewhere = lease_on(cluster.connect(), "c", here=here(3, set(), "h:9871"))
    waiting = asyncio.ensure_future(taken(elsewhere, LeaseEntry.IF_VACANT))
    await taken(lease_on(cluster.connect(), "b", here=here(2, set(), "h:9870")), LeaseEntry.IF_VACANT)
    assert LEASE_S * DRIFT <= now() - began < LEASE_S * VACANT_AFTER
    with pytest.raises(NamespaceOwnedError, match="b:1"):
        await waiting


@pytest.mark.rule("S12")
@in_virtual_time
async def test_on_its_address_an_owner_that_renews_is_left_alone_until_it_has_ended() -> None:
    """It has stopped accepting, and lets its uploads come to their end."""
    cluster = MemoryCluster()
    ending = lease_on(cluster.connect(), "a", here=here(1, set(), "h:9870"))
    await taken(ending)
    successor = lease_on(cluster.connect(), "b", here=here(2, set(), "h:9870"))
    waiting = asyncio.ensure_future(taken(successor, LeaseEntry.WHEN_VACANT))
    await asyncio.sleep(5)
    assert held(ending) and not waiting.done()
    await ending.release()
    await asyncio.wait_for(waiting, LEASE_S / 2)
    await successor.release()


@pytest.mark.rule("S11", "S12")
@in_virtual_time
async def test_a_dead_owner_is_not_waited_for_but_who_was_before_it_is() -> None:
    """A successor waited a whole lease for a process that the kernel knew to be dead."""
    cluster, dead = MemoryCluster(), set[int]()
    first_store, second_store = cluster.connect(), cluster.connect()
    first = lease_on(first_store, "a", here=here(1, dead))
    await taken(first)
    cluster.suspend(first_store)  # alive, and answers for what is left of its lease
    second = lease_on(second_store, "b", here=here(2, dead))
    await second.acquire(LeaseEntry.TAKE_OVER)
    cluster.suspend(second_store)
    dead.add(2)  # before it ever held the lease
    third_store = cluster.connect()
    third = lease_on(third_store, "c", here=here(3, dead))
    await never_both(asyncio.ensure_future(taken(third, LeaseEntry.IF_VACANT)), first, third)
    assert held(third)
    cluster.suspend(third_store)
    dead.add(3)
    began = now()
    await taken(lease_on(cluster.connect(), "d", here=here(4, dead)), LeaseEntry.IF_VACANT)
    assert now() - began < 0.1, "the third held it alone, and is dead"


@pytest.mark.rule("S12")
@in_virtual_time
async def test_a_store_that_is_slow_for_who_stands_by_does_not_make_the_lease_vacant() -> None:
    """Both ask the same store: while it answers one after three seconds, the other cannot renew faster."""
    cluster = MemoryCluster()
    losing, ours, theirs = Losing(cluster), cluster.connect(), cluster.connect()
    owner, standby = lease_on(ours, "a"), lease_on(theirs, "b")
    await taken(owner)
    waiting = asyncio.ensure_future(taken(standby, LeaseEntry.WHEN_VACANT))
    await asyncio.sleep(2)
    for number in range(8):
        losing.next(ours, "set", Fate(delay_before_s=3.5))
        losing.next(theirs, "get", Fate(delay_before_s=3), Fate(delay_before_s=0.2))
        await asyncio.sleep(6 + number * 0.03)
    assert held(owner) and not waiting.done()
    waiting.cancel()
    await owner.release()


@pytest.mark.rule("S12")
@in_virtual_time
async def test_who_takes_it_from_a_living_owner_says_so(caplog: pytest.LogCaptureFixture) -> None:
    cluster = MemoryCluster()
    owner, other = lease_on(cluster.connect(), "a"), lease_on(cluster.connect(), "b")
    await taken(owner)
    await taken(other)
    assert "this gateway took the namespace over from the gateway at a:1" in caplog.text
    await owner.lost()
    with pytest.raises(LeaseLostError, match="the gateway at b:1 took the lease over"):
        await owner.wait_until_held()
    await other.release()


@pytest.mark.rule("S12")
@in_virtual_time
async def test_whoever_has_it_again_names_no_other_any_more() -> None:
    cluster = MemoryCluster()
    again, other = lease_on(cluster.connect(), "a"), lease_on(cluster.connect(), "b")
    await taken(again)
    await taken(other)
    await again.lost()
    named = [again.other]
    await taken(again)
    assert [*named, again.other] == ["b:1", None]
    await again.release()


@pytest.mark.rule("S11", "X29")
@in_virtual_time
async def test_a_dead_owner_that_does_not_say_that_it_was_alone_is_waited_for() -> None:
    """Whoever had the lease before it may hold it still."""
    store = MemoryCluster().connect()
    fields = json.loads(LeaseValue(3, "x", "x:1", 1000, held=True, place=place(7)).encode())
    del fields["alone"]
    await store.create(PATH, json.dumps(fields).encode(), parents=True)
    began = now()
    await taken(lease_on(store, "a", here=here(1, {7})), LeaseEntry.IF_VACANT)
    assert now() - began >= LEASE_S * DRIFT


@pytest.mark.rule("X29")
@pytest.mark.parametrize("data", [b"", b"{}", b"[1]", b'{"epoch": "x", "owner": "a", "address": "b", "lease_ms": 1}'])
def test_what_is_no_lease_is_told_by_its_place(data: bytes) -> None:
    @in_virtual_time
    async def story() -> None:
        store = MemoryCluster().connect()
        await store.create(PATH, data, parents=True)
        with pytest.raises(MetadataFormatError, match=PATH):
            await lease_on(store, "a").acquire(LeaseEntry.IF_VACANT)

    story()


@pytest.mark.parametrize("more", [b"", b', "place": {"process": "as a later version says it"}'])
def test_a_lease_of_a_gateway_that_did_not_say_where_it_runs_is_waited_for(more: bytes) -> None:
    @in_virtual_time
    async def story() -> None:
        store = MemoryCluster().connect()
        old = b'{"epoch": 3, "owner": "x", "address": "x:1", "lease_ms": 1000, "released": false' + more + b"}"
        await store.create(PATH, old, parents=True)
        began = now()
        lease = lease_on(store, "a", here=here(1, {0}))
        await taken(lease, LeaseEntry.IF_VACANT)
        assert now() - began >= LEASE_S * VACANT_AFTER
        assert lease.epoch == 4
        await lease.release()

    story()


def test_the_value_survives_its_bytes() -> None:
    value = LeaseValue(3, "a", "host:1", 1000, released=True)
    for each in (value, replace(value, released=False, held=True, place=place(7))):
        assert LeaseValue.decode(each.encode()) == each


@in_virtual_time
async def test_a_sole_owner_is_always_sure() -> None:
    lease = SoleOwner()
    await taken(lease, LeaseEntry.WHEN_VACANT)
    assert held(lease)
    await lease.release()


@pytest.mark.rule("S3", "M10")
@in_virtual_time
async def test_a_store_that_shows_an_older_state_ends_the_lease_at_once() -> None:
    """In an older state somebody else may find a lease that was given up, and not wait for ours."""
    cluster = MemoryCluster()
    lease = lease_on(cluster.connect(), "a")
    await taken(lease)
    backup = cluster.snapshot()
    await asyncio.sleep(LEASE_S)
    assert held(lease)
    renewed = now()
    cluster.restore(backup)
    await lease.lost()
    assert now() < renewed + LEASE_S
    assert not held(lease)
