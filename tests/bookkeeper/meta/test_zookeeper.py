"""What is particular to the store in ZooKeeper; the rest is the contract, in test_store.py."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from kazoo import exceptions as zk

from bookkeeper.admin.zookeeper import ZooKeeperServer, free_port
from bookkeeper.errors import (
    ClientClosedError,
    KeyExistsError,
    MetadataConflictError,
    MetadataError,
    MetadataRolledBackError,
    MetadataUnavailableError,
    NoSuchKeyError,
    SessionExpiredError,
)
from bookkeeper.meta.cluster import Metadata, init_cluster
from bookkeeper.meta.store import SessionState, Version, settled_create, settled_set
from bookkeeper.meta.zookeeper import ZooKeeperStore, _translate
from tests.bookkeeper.meta.services import ZooKeeperService, seams
from tests.contracts.metadata_store import Calls, until

pytestmark = pytest.mark.zookeeper


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ZooKeeperServer]:
    """A server that a test may hurt."""
    with ZooKeeperServer(tmp_path, tick_ms=200) as server:
        yield server


@pytest.fixture
async def fragile(server: ZooKeeperServer) -> AsyncIterator[ZooKeeperStore]:
    """A session with it that notices silence soon."""
    store = await ZooKeeperStore.open(str(server.address), seams(), session_timeout_s=2.0)
    yield store
    await store.close()


async def in_thread(job: object) -> None:
    await asyncio.get_running_loop().run_in_executor(None, job)  # type: ignore[arg-type]


async def test_where_nobody_listens_is_said_so() -> None:
    with pytest.raises(MetadataUnavailableError, match="no ZooKeeper server"):
        await ZooKeeperStore.open(f"127.0.0.1:{free_port()}", seams(), connect_timeout_s=0.3)


async def test_paths_are_put_under_the_chroot(zookeeper_service: ZooKeeperService) -> None:
    inside = await zookeeper_service.connect()
    outside = await ZooKeeperStore.open(str(zookeeper_service.server.address), seams())
    assert (await inside.create("/a/ID-", sequential=True, parents=True))[0] == "/a/ID-0000000000"
    await inside.multi([])
    assert await outside.children(f"{zookeeper_service.chroot}/a") == ["ID-0000000000"]
    await outside.close()


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


@pytest.mark.rule("M8", "Z4")
async def test_a_write_that_meets_silence_is_unknown_and_then_settled(
    server: ZooKeeperServer, fragile: ZooKeeperStore
) -> None:
    """The server has it in its socket when it goes on, so it may be done or not: settling finds out."""
    await fragile.create("/a", b"0")
    server.pause()
    with pytest.raises((MetadataUnavailableError, SessionExpiredError)):
        await fragile.set("/a", b"1", Version(0))
    server.resume()
    await until(lambda: fragile.session is SessionState.CONNECTED)
    found = await fragile.get("/a")
    assert (found.version, found.value) in ((0, b"0"), (1, b"1"))
    if found.version == 0:
        assert await settled_set(fragile, "/a", b"1", Version(0)) == 1


@pytest.mark.rule("M5", "M8", "Z4")
async def test_a_reply_that_never_comes_is_settled(zookeeper_service: ZooKeeperService) -> None:
    store = await zookeeper_service.connect()
    asked = store._ask
    lose = ["create /x", "set /x"]

    async def ask(what: str, send: object, deadline: float) -> object:
        result = await asked(what, send, deadline)  # type: ignore[arg-type]
        if what in lose:
            lose.remove(what)
            raise MetadataUnavailableError(what)
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "_ask", ask)
        assert await settled_create(store, "/x", b"token") == 0
        assert await settled_set(store, "/x", b"1", Version(0)) == 1
    assert lose == []
    assert (await store.get("/x")).version == 1


async def test_a_restarted_server_is_found_again(tmp_path: Path) -> None:
    port = free_port()
    with ZooKeeperServer(tmp_path, port=port, tick_ms=200) as server:
        store = await ZooKeeperStore.open(str(server.address), seams(), session_timeout_s=4.0)
        await store.create("/a", b"x")
        await store.create("/e", ephemeral=True)
        await in_thread(lambda: server.stop(kill=True))
        await until(lambda: store.session is SessionState.SUSPENDED)
        await in_thread(server.start)
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
    before = threading.active_count()
    store = await zookeeper_service.connect()
    assert threading.active_count() > before
    await store.close()
    await until(lambda: threading.active_count() <= before)


@pytest.mark.rule("Z1")
async def test_a_write_that_waited_into_another_session_is_not_sent(zookeeper_service: ZooKeeperService) -> None:
    """It may have been meant to be ephemeral in the session that is gone."""
    store = await zookeeper_service.connect()
    store._sessions.change(SessionState.SUSPENDED)
    waiting = asyncio.create_task(store.create("/e", ephemeral=True))
    await asyncio.sleep(0)
    store.session_id += 1
    store._sessions.change(SessionState.CONNECTED)
    with pytest.raises(SessionExpiredError):
        await waiting
    assert await store.exists("/e") is None


@pytest.mark.rule("Z13")
async def test_a_client_that_was_refused_is_not_asked_again(zookeeper_service: ZooKeeperService) -> None:
    store = await zookeeper_service.connect()
    store._on_state(SessionState.LOST, 0, "AUTH_FAILED")
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
    store.last_transaction = 2**62
    with caplog.at_level(logging.CRITICAL):
        await zookeeper_service.expire(store)
        await until(lambda: "M10" in caplog.text)
    with pytest.raises(MetadataRolledBackError):
        await store.set("/a", b"", None)
    assert (await store.get("/a")).version == 0


def test_the_clients_errors_are_translated_once() -> None:
    for theirs, ours in (
        (zk.NoNodeError(), NoSuchKeyError),
        (zk.NodeExistsError(), KeyExistsError),
        (zk.BadVersionError(), MetadataConflictError),
        (zk.ConnectionLoss(), MetadataUnavailableError),
        (zk.SessionExpiredError(), SessionExpiredError),
        (zk.NoAuthError(), MetadataError),
    ):
        assert type(_translate("x", theirs)) is ours


async def test_a_cluster_by_its_address(zookeeper_service: ZooKeeperService) -> None:
    host, port = zookeeper_service.server.address
    uri = f"zk+longhierarchical://{host}:{port};{host}:{port}{zookeeper_service.chroot}/x/ledgers"
    instance_id = await init_cluster(uri, seams())
    metadata = await Metadata.connect(uri, seams())
    assert metadata.instance_id == instance_id
    assert metadata.layout.name == "LONG_HIERARCHICAL"
    await metadata.close()
