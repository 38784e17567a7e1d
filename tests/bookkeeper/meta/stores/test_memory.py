from __future__ import annotations

import asyncio

import pytest

from bookkeeper.errors import (
    MetadataRolledBackError,
    MetadataUnavailableError,
    SessionExpiredError,
)
from bookkeeper.meta.store import SessionState, Version, settled_create, settled_delete, settled_set
from bookkeeper.meta.stores.memory import Fate, MemoryCluster
from tests.bookkeeper.meta.services import REPLY_LOST, REQUEST_LOST, Losing
from tests.contracts.metadata_store import Calls


@pytest.fixture
def cluster() -> MemoryCluster:
    return MemoryCluster(lambda: 1234)


async def test_creation_times_come_from_the_services_clock(cluster: MemoryCluster) -> None:
    store = cluster.connect()
    await store.create("/a")
    assert (await store.get("/a")).created_ms == 1234


@pytest.mark.rule("M8", "Z4")
@pytest.mark.parametrize(("fate", "done"), [(REPLY_LOST, True), (REQUEST_LOST, False)])
async def test_a_write_without_answer_is_unknown_and_not_repeated(
    cluster: MemoryCluster, fate: Fate, done: bool
) -> None:
    store = cluster.connect()
    cluster.interference = hand = Losing(create=[fate])
    with pytest.raises(MetadataUnavailableError):
        await store.create("/a")
    assert (await store.exists("/a") == 0) is done
    assert hand.lost == ["create /a"]


@pytest.mark.rule("Z4")
async def test_a_read_without_answer_is_repeated(cluster: MemoryCluster) -> None:
    store = cluster.connect()
    await store.create("/a", b"x")
    cluster.interference = hand = Losing(get=[REQUEST_LOST, REPLY_LOST])
    assert (await store.get("/a")).value == b"x"
    assert len(hand.lost) == 2


@pytest.mark.rule("M8")
@pytest.mark.parametrize("fate", [REPLY_LOST, REQUEST_LOST])
async def test_settled_writes_know_what_was_done(cluster: MemoryCluster, fate: Fate) -> None:
    store = cluster.connect()
    cluster.interference = Losing(create=[fate], set=[fate, fate], delete=[fate])
    assert await settled_create(store, "/a", b"token") == 0
    assert await settled_set(store, "/a", b"1", Version(0)) == 1
    assert await settled_set(store, "/a", b"2", Version(1)) == 2
    await settled_delete(store, "/a", Version(2))
    assert await store.exists("/a") is None


@pytest.mark.rule("Z1")
async def test_a_session_that_is_cut_off_says_so_and_waits(cluster: MemoryCluster) -> None:
    store = cluster.connect()
    states: list[SessionState] = []
    store.on_session(states.append)
    await store.create("/a")
    cluster.suspend(store)
    assert store.session is SessionState.SUSPENDED
    reading = asyncio.create_task(store.get("/a"))
    writing = asyncio.create_task(store.set("/a", b"x", None))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not reading.done()
    cluster.resume(store)
    assert (await reading).version in (0, 1)
    assert await writing == 1
    assert states == [SessionState.SUSPENDED, SessionState.CONNECTED]


async def test_an_outage_ends_waiting_calls_after_their_time(
    cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bookkeeper.meta.stores.memory.OPERATION_TIMEOUT_S", 0.001)
    store = cluster.connect()
    cluster.begin_outage()
    later = cluster.connect()
    for each in (store, later):
        with pytest.raises(MetadataUnavailableError):
            await each.exists("/a")
    cluster.end_outage()
    assert await store.exists("/a") is None
    assert await later.exists("/a") is None


@pytest.mark.rule("Z1")
async def test_a_session_that_ended_unseen_is_lost_at_the_next_contact(cluster: MemoryCluster) -> None:
    store, states = cluster.connect(), list[SessionState]()
    store.on_session(states.append)
    await store.create("/e", ephemeral=True)
    cluster.suspend(store)
    cluster.expire(store)
    assert cluster.dump().keys() == {"/"}
    writing = asyncio.create_task(store.create("/e", ephemeral=True))
    await asyncio.sleep(0)
    cluster.resume(store)
    with pytest.raises(SessionExpiredError):
        await writing
    assert states == [SessionState.SUSPENDED, SessionState.LOST, SessionState.CONNECTED]


async def test_a_write_that_was_on_its_way_when_the_session_ended_is_not_done(cluster: MemoryCluster) -> None:
    store = cluster.connect()
    cluster.interference = Losing(create=[Fate(delay_before_s=0.001)])
    writing = asyncio.create_task(store.create("/e", ephemeral=True))
    await asyncio.sleep(0)
    cluster.expire(store)
    with pytest.raises(SessionExpiredError):
        await writing
    assert "/e" not in cluster.dump()


@pytest.mark.rule("M8", "Z1")
@pytest.mark.parametrize("at_once", [True, False])
async def test_a_session_may_end_when_a_write_was_done(cluster: MemoryCluster, at_once: bool) -> None:
    store = cluster.connect()
    await store.create("/a", b"one")
    session, fate = store.session_id, Fate(session_ends=at_once, delay_after_s=0.001)
    cluster.interference = Losing(set=[fate, fate], create=[fate])
    writing = asyncio.create_task(store.set("/a", b"two", Version(0)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    if not at_once:
        cluster.expire(store)
    with pytest.raises(SessionExpiredError, match="no answer"):
        await writing
    assert (await store.get("/a")).value == b"two" and store.session_id > session
    if at_once:
        assert await settled_set(store, "/a", b"three", Version(1)) == 2
        with pytest.raises(SessionExpiredError):
            await store.create("/e", ephemeral=True)
        assert await store.exists("/e") is None


@pytest.mark.rule("Z5")
async def test_what_changed_while_cut_off_is_told_on_return(cluster: MemoryCluster) -> None:
    store, other, calls = cluster.connect(), cluster.connect(), Calls()
    store.watch("/a", calls)
    cluster.suspend(store)
    await asyncio.sleep(0)
    calls.reset()
    await other.create("/a")
    await asyncio.sleep(0)
    assert calls.count == 0
    cluster.resume(store)
    await calls.wait()


@pytest.mark.rule("M10", "Z14")
async def test_a_service_restored_from_a_backup_is_noticed_and_not_written(cluster: MemoryCluster) -> None:
    store = cluster.connect()
    await store.create("/a", b"old")
    backup = cluster.snapshot()
    await store.set("/a", b"new", None)
    cluster.restore(backup)
    assert (await store.get("/a")).value == b"old"
    with pytest.raises(MetadataRolledBackError):
        await store.set("/a", b"x", None)
    with pytest.raises(MetadataRolledBackError):
        await store.check_not_rolled_back(store.last_transaction)
    assert (await cluster.connect().get("/a")).version == 0


@pytest.mark.rule("M10")
async def test_a_new_session_compares_with_what_the_old_one_saw(cluster: MemoryCluster) -> None:
    store = cluster.connect()
    backup = cluster.snapshot()
    await store.create("/a")
    cluster.suspend(store)
    cluster.restore(backup)
    cluster.end_session(store.session_id)
    cluster.transaction = 0
    cluster.resume(store)
    with pytest.raises(MetadataRolledBackError):
        await store.create("/b")


@pytest.mark.rule("Z6", "Z5")
async def test_who_lags_sees_the_past_until_it_syncs_and_is_told_when_it_has_caught_up(cluster: MemoryCluster) -> None:
    """A reply that came after others' writes was taken for the state that it had been written into, and the past that
    was read next for a rolled back store."""
    behind, other = cluster.connect(), cluster.connect()
    await other.create("/a", b"1")
    behind.lag()
    await other.set("/a", b"2", None)
    assert (await behind.get("/a")).value == b"1"
    await behind.sync("/a")
    assert (await behind.get("/a")).value == b"2"
    told = asyncio.Event()
    behind.watch("/a", told.set)
    await other.set("/a", b"3", None)
    await asyncio.wait_for(told.wait(), 5)
    told.clear()
    assert (await behind.get("/a")).value == b"2"
    behind.catch_up()
    await asyncio.wait_for(told.wait(), 5)
    assert (await behind.get("/a")).value == b"3"

    class Slow:
        def fate(self, session: int, kind: str, path: str) -> Fate:
            return Fate(delay_after_s=0.05 if kind == "create" else 0.0)

    behind.lag()
    cluster.interference = Slow()
    made = asyncio.create_task(behind.create("/b"))
    await asyncio.sleep(0.01)
    await other.set("/a", b"4", None)
    await made
    assert (await behind.get("/a")).value == b"3"
    assert behind.rolled_back is None
