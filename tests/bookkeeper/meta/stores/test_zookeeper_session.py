"""Contact with ZooKeeper: silence, loss, refusal, close, and servers that were put back to an older state."""

from __future__ import annotations

import asyncio
import logging
import shutil
import threading
from pathlib import Path

import pytest

from bookkeeper.errors import (
    ClientClosedError,
    MetadataError,
    MetadataRolledBackError,
    MetadataUnavailableError,
    SessionExpiredError,
)
from bookkeeper.launchers.zookeeper import ZooKeeperServer, free_port
from bookkeeper.meta.store import SessionState
from bookkeeper.meta.stores.zookeeper import ZooKeeperStore
from bookkeeper.meta.stores.zookeeper_session import PATIENCE_S, PROBE_S
from tests.bookkeeper.meta.services import ZooKeeperService, seams
from tests.bookkeeper.meta.stores.conftest import in_thread
from tests.contracts.metadata_store import Calls, until

pytestmark = pytest.mark.zookeeper


async def test_where_nobody_listens_is_said_so_once_long_before_the_time_is_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    first, second = free_port(), free_port()
    with pytest.raises(MetadataUnavailableError) as caught:
        async with asyncio.timeout(PATIENCE_S + PROBE_S + 5):
            hosts = f"127.0.0.1:{first},127.0.0.1:{second}"
            await ZooKeeperStore.open(hosts, seams(), connect_timeout_s=3600)
    for port in (first, second):
        assert f"127.0.0.1:{port}: " in str(caught.value)
    assert "no ZooKeeper server answers" in str(caught.value)
    assert caplog.messages == []  # the error says it, and the client would say it in four more lines


async def test_a_server_that_listens_and_says_nothing_is_waited_for(server: ZooKeeperServer) -> None:
    server.pause()
    with pytest.raises(MetadataUnavailableError, match=f"no ZooKeeper server answers at {server.address}"):
        await ZooKeeperStore.open(
            str(server.address), seams(), session_timeout_s=1.0, connect_timeout_s=PATIENCE_S + 0.2
        )
    server.resume()


@pytest.mark.rule("Z1", "Z5")
async def test_a_server_that_falls_silent_suspends_and_its_return_is_told(
    server: ZooKeeperServer, fragile: ZooKeeperStore
) -> None:
    states, calls = list[SessionState](), Calls()
    fragile.on_session(states.append)
    fragile.watch("/a", calls)
    await fragile.create("/a")
    session = fragile.session_id
    server.pause()
    await until(lambda: SessionState.SUSPENDED in states)
    assert fragile.session is SessionState.SUSPENDED
    calls.reset()
    server.resume()
    await until(lambda: fragile.session is SessionState.CONNECTED)
    await calls.wait()
    assert (await fragile.get("/a")).version == 0
    if fragile.session_id == session:
        assert SessionState.LOST not in states


async def test_a_restarted_server_is_found_again(tmp_path: Path) -> None:
    port = free_port()
    with ZooKeeperServer(tmp_path, port=port, tick_ms=200) as server:
        store = await ZooKeeperStore.open(str(server.address), seams(), session_timeout_s=4.0)
        await store.create("/a", b"x")
        await store.create("/e", ephemeral=True)
        await in_thread(lambda: server.stop(kill=True))
        await until(lambda: store.session is SessionState.SUSPENDED)
        await in_thread(server.start)
        await until(lambda: store.session is SessionState.CONNECTED)
        await store.sync("/")
        assert (await store.get("/a")).value == b"x"
        await store.close()


async def test_close_frees_those_who_wait(zookeeper_service: ZooKeeperService) -> None:
    store = await zookeeper_service.connect()
    waiting = asyncio.create_task(store.get("/"))
    await asyncio.sleep(0)
    await store.close()
    with pytest.raises(ClientClosedError):
        await waiting


async def test_no_thread_is_left_behind(zookeeper_service: ZooKeeperService) -> None:
    before = set(threading.enumerate())
    store = await zookeeper_service.connect()
    started = set(threading.enumerate()) - before
    assert started
    await store.close()
    await until(lambda: not any(thread.is_alive() for thread in started))


@pytest.mark.rule("Z1")
async def test_a_write_that_waited_into_another_session_is_not_sent(zookeeper_service: ZooKeeperService) -> None:
    """It may have been meant to be ephemeral in the session that is gone."""
    store = await zookeeper_service.connect()
    store._session.states.change(SessionState.SUSPENDED)
    waiting = asyncio.create_task(store.create("/e", ephemeral=True))
    await asyncio.sleep(0)
    store._session.session_id += 1
    store._session.states.change(SessionState.CONNECTED)
    with pytest.raises(SessionExpiredError):
        await waiting
    assert await store.exists("/e") is None


@pytest.mark.rule("Z1")
async def test_a_write_that_waited_for_the_check_of_a_session_is_not_sent_in_another_one(
    zookeeper_service: ZooKeeperService,
) -> None:
    store, checked = await zookeeper_service.connect(), asyncio.Event()

    async def check() -> None:
        await checked.wait()

    store._session._verifying = asyncio.create_task(check())
    waiting = asyncio.create_task(store.create("/e", ephemeral=True))
    for _ in range(10):  # the turns that a write takes to get there
        await asyncio.sleep(0)
    store._session.session_id += 1
    checked.set()
    with pytest.raises(SessionExpiredError):
        await waiting
    assert await store.exists("/e") is None


@pytest.mark.rule("Z13")
async def test_a_client_that_was_refused_is_not_asked_again(zookeeper_service: ZooKeeperService) -> None:
    store = await zookeeper_service.connect()
    store._session._on_state(SessionState.LOST, 0, "AUTH_FAILED")
    for _ in range(2):
        with pytest.raises(MetadataError, match="AUTH_FAILED"):
            await store.get("/")
        with pytest.raises(MetadataError, match="AUTH_FAILED"):
            await store.create("/a")


@pytest.mark.rule("M10", "Z14")
async def test_a_new_session_that_sees_less_stops_writing(
    zookeeper_service: ZooKeeperService, caplog: pytest.LogCaptureFixture
) -> None:
    store = await zookeeper_service.connect()
    await store.create("/a")
    store._session.last_transaction = 2**62
    with caplog.at_level(logging.CRITICAL):
        await zookeeper_service.expire(store)
        await until(lambda: "this process writes nothing more" in caplog.text)
    with pytest.raises(MetadataRolledBackError):
        await store.set("/a", b"", None)
    assert (await store.get("/a")).version == 0


async def _write_at_once(store: ZooKeeperStore, path: str) -> asyncio.Future[object]:
    """What comes of a write that is asked for in the very turn in which a new session is told. A connection that comes
    back within the session before is none: on a slow machine there is one until the session is ended."""
    outcome: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    before = store.session_id

    async def write() -> None:
        try:
            outcome.set_result(await store.create(path))
        except MetadataError as error:
            outcome.set_result(error)

    def told(state: SessionState) -> None:
        if state is SessionState.CONNECTED and store.session_id != before:
            watch.close()
            tasks.append(asyncio.ensure_future(write()))

    tasks: list[asyncio.Task[None]] = []
    watch = store.on_session(told)
    outcome.add_done_callback(lambda _: tasks.clear())
    return outcome


@pytest.mark.rule("M10")
async def test_no_write_of_a_new_session_goes_out_before_the_look_at_what_it_shows(
    zookeeper_service: ZooKeeperService,
) -> None:
    store, other = [await zookeeper_service.connect() for _ in range(2)]
    outcome = await _write_at_once(store, "/in good faith")
    await zookeeper_service.expire(store)
    assert await asyncio.wait_for(outcome, 20) == ("/in good faith", 0)
    store._session.last_transaction = 2**62
    outcome = await _write_at_once(store, "/too early")
    await zookeeper_service.expire(store)
    assert isinstance(await asyncio.wait_for(outcome, 20), MetadataRolledBackError)
    await other.sync("/")
    assert await other.exists("/too early") is None


@pytest.mark.rule("M10")
async def test_after_a_server_came_back_without_its_data_nothing_is_written_there(
    server: ZooKeeperServer, fragile: ZooKeeperStore
) -> None:
    """A real restart, on an empty disk; it refuses clients that saw more, so this one forgets what it saw."""
    for number in range(30):
        await fragile.create(f"/{number}")
    outcome = await _write_at_once(fragile, "/too early")
    await in_thread(server.stop)
    shutil.rmtree(server.directory / "data")
    fragile._client.last_zxid = 0
    await in_thread(server.start)
    assert isinstance(await asyncio.wait_for(outcome, 30), MetadataRolledBackError)
    fresh = await ZooKeeperStore.open(str(server.address), seams())
    assert await fresh.children("/") == ["zookeeper"]
    await fresh.close()


@pytest.mark.rule("M10", "Z14")
async def test_servers_that_were_put_back_and_send_us_away_for_it_are_found_out(
    server: ZooKeeperServer, fragile: ZooKeeperStore
) -> None:
    """A server that knows fewer transactions than a client has seen ends its connection without a word. To the client
    that looked like an outage, through which a writer may go on; so it did, into a ledger that was gone."""
    for number in range(60):
        await fragile.create(f"/{number}")
    await in_thread(server.stop)
    shutil.rmtree(server.directory / "data")
    await in_thread(server.start)
    async with asyncio.timeout(30):
        while fragile.rolled_back is None:  # noqa: ASYNC110 (what is waited for happens in threads)
            await asyncio.sleep(0.05)
    with pytest.raises(MetadataRolledBackError):
        await fragile.get("/1")
    with pytest.raises(MetadataRolledBackError):
        await fragile.create("/more")


@pytest.mark.rule("M10")
async def test_the_look_at_a_new_session_is_repeated_until_there_is_an_answer(
    zookeeper_service: ZooKeeperService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look without an answer is none: the writes go on waiting, for as long as one may take."""
    store = await zookeeper_service.connect()
    await store.create("/a")
    look, looks, go_on = store._session.check_not_rolled_back, list[int](), asyncio.Event()

    async def silent_at_first(transaction: int) -> None:
        looks.append(transaction)
        if not go_on.is_set():
            raise MetadataUnavailableError("no answer")
        await look(transaction)

    monkeypatch.setattr(store._session, "check_not_rolled_back", silent_at_first)
    outcome = await _write_at_once(store, "/b")
    await zookeeper_service.expire(store)
    await until(lambda: len(looks) >= 3)
    assert not outcome.done() and await store.exists("/b") is None
    go_on.set()
    assert await asyncio.wait_for(outcome, 20) == ("/b", 0)
    go_on.clear()
    store._session.timeout_s = 0.2
    outcome = await _write_at_once(store, "/c")
    await zookeeper_service.expire(store)
    error = await asyncio.wait_for(outcome, 20)
    assert isinstance(error, MetadataUnavailableError) and "not sent" in str(error)
    go_on.set()
    assert await store.exists("/c") is None
