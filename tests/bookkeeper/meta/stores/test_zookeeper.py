"""What is particular to the store in ZooKeeper; the rest is the contract, in test_store.py."""

from __future__ import annotations

import asyncio
import gc
import logging
import shutil
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from bookkeeper.errors import (
    ClientClosedError,
    KeyExistsError,
    MetadataError,
    MetadataForbiddenError,
    MetadataRolledBackError,
    MetadataUnavailableError,
    SessionExpiredError,
)
from bookkeeper.launchers.zookeeper import ZooKeeperServer, free_port
from bookkeeper.meta.cluster import Metadata, init_cluster
from bookkeeper.meta.store import Create, SessionState, Version, settled_create, settled_set
from bookkeeper.meta.stores.credentials import Credentials, ZooKeeperTls
from bookkeeper.meta.stores.zookeeper import PATIENCE_S, PROBE_S, ZooKeeperStore
from bookkeeper.secret import Secret
from bookkeeper.testing.certificates import PASSWORD, Authority, Certificate
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


async def test_where_nobody_listens_is_said_so_long_before_the_time_is_up() -> None:
    first, second = free_port(), free_port()
    with pytest.raises(MetadataUnavailableError) as caught:
        async with asyncio.timeout(PATIENCE_S + PROBE_S + 5):
            hosts = f"127.0.0.1:{first},127.0.0.1:{second}"
            await ZooKeeperStore.open(hosts, seams(), connect_timeout_s=3600)
    for port in (first, second):
        assert f"127.0.0.1:{port}: " in str(caught.value)
    assert "no ZooKeeper server answers" in str(caught.value)


async def test_a_server_that_listens_and_says_nothing_is_waited_for(server: ZooKeeperServer) -> None:
    server.pause()
    with pytest.raises(MetadataUnavailableError, match=f"no ZooKeeper server answers at {server.address}"):
        await ZooKeeperStore.open(
            str(server.address), seams(), session_timeout_s=1.0, connect_timeout_s=PATIENCE_S + 0.2
        )
    server.resume()


def identified(password: str = "pw") -> Credentials:
    return Credentials(user="bk", password=Secret(password), readers=(("digest", "monitor:aGFzaA=="),))


@pytest.mark.rule("X26")
async def test_what_an_identified_session_creates_belongs_to_it(zookeeper_server: ZooKeeperServer) -> None:
    address = str(zookeeper_server.address)
    us = await ZooKeeperStore.open(address, seams(), credentials=identified())
    other = await ZooKeeperStore.open(address, seams())
    await us.create("/ours/deep/a", b"secret", parents=True)
    await asyncio.gather(*(us.create(f"/ours/{number}") for number in range(3)))
    await us.create("/ours/ID-", ephemeral=True, sequential=True)
    await us.multi([Create("/ours/m", b"")])
    for path in ("/ours", "/ours/deep", "/ours/deep/a", "/ours/0", "/ours/2", "/ours/ID-0000000004", "/ours/m"):
        listed = await us.access(path)
        assert [(entry.scheme, entry.may) for entry in listed] == [("digest", "cdrwa"), ("digest", "r")], path
        for refused in (other.get(path), other.set(path, b"", None), other.create(f"{path}/x")):
            with pytest.raises(MetadataForbiddenError, match="access list"):
                await refused
    await us.set("/ours/deep/a", b"2", Version(0))
    again = await ZooKeeperStore.open(address, seams(), credentials=identified())
    assert (await again.get("/ours/deep/a")).value == b"2"
    stranger = await ZooKeeperStore.open(address, seams(), credentials=identified("another"))
    with pytest.raises(MetadataForbiddenError, match="digest user bk"):
        await stranger.get("/ours/deep/a")
    for store in (us, other, again, stranger):
        await store.close()


def sasl(password: str) -> Credentials:
    return Credentials(user="bk", password=Secret(password), scheme="sasl")


@pytest.mark.rule("X25")
async def test_credentials_for_which_the_server_is_not_set_up_refuse_the_start(server: ZooKeeperServer) -> None:
    with pytest.raises(MetadataError, match="sasl user bk"):
        await ZooKeeperStore.open(str(server.address), seams(), credentials=sasl("pw"), session_timeout_s=2.0)


@pytest.mark.rule("X25", "X26", "Z13")
async def test_sasl_as_java_does_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    login = tmp_path / "jaas.conf"
    login.write_text('Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_bk="planted"; };\n')
    provider = "-Dzookeeper.authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.auth.login.config={login} {provider}")
    with ZooKeeperServer(tmp_path / "zk", tick_ms=200) as server:
        monkeypatch.delenv("JAVA_TOOL_OPTIONS")
        address = str(server.address)
        store = await ZooKeeperStore.open(address, seams(), credentials=sasl("planted"))
        await store.create("/a", b"x")
        assert [str(entry) for entry in await store.access("/a")] == ["sasl:bk:cdrwa"]
        with pytest.raises(MetadataForbiddenError, match="sasl user bk") as caught:
            await ZooKeeperStore.open(address, seams(), credentials=sasl("wrong"))
        assert "wrong" not in str(caught.value)
        await store.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.rule("X25", "X26")
async def test_tls_and_a_certificate_as_identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = Authority(tmp_path / "ours"), Authority(tmp_path / "theirs")
    shown, client, stranger = ours.server("zookeeper"), ours.client("bk"), theirs.client("bk")
    secure = free_port()
    settings = {
        "secureClientPort": str(secure),
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "authProvider.x509": "org.apache.zookeeper.server.auth.X509AuthenticationProvider",
        "ssl.keyStore.location": shown.pkcs12,
        "ssl.keyStore.password": PASSWORD,
        "ssl.trustStore.location": ours.truststore,
        "ssl.trustStore.password": PASSWORD,
    }

    async def connect(ca: str, certificate: Certificate, timeout_s: float) -> ZooKeeperStore:
        tls = ZooKeeperTls(ca=ca, certificate=certificate.cert, key=certificate.key)
        credentials = Credentials(tls=tls)
        return await ZooKeeperStore.open(
            f"127.0.0.1:{secure}", seams(), credentials=credentials, connect_timeout_s=timeout_s
        )

    with ZooKeeperServer(tmp_path / "zk", tick_ms=200, settings=settings):
        store = await connect(ours.ca, client, 30)
        await store.create("/a", b"x")
        assert [(entry.scheme, entry.name, entry.may) for entry in await store.access("/a")] == [
            ("x509", "CN=bk", "cdrwa")
        ]
        await store.close()
        for ca, certificate in ((theirs.ca, client), (ours.ca, stranger)):
            with pytest.raises(MetadataUnavailableError, match="no ZooKeeper server answers"):
                await connect(ca, certificate, PATIENCE_S)
    gc.collect()  # the client forgets sockets whose handshake failed


@pytest.mark.rule("X25")
async def test_a_session_without_identity_is_told_from_one_that_has_one(zookeeper_server: ZooKeeperServer) -> None:
    store = await ZooKeeperStore.open(str(zookeeper_server.address), seams(), credentials=identified())
    store._client.auth_data.clear()
    first = store.session_id
    await ZooKeeperService(zookeeper_server, "").expire(store)
    await until(lambda: store.session is SessionState.CONNECTED and store.session_id != first)
    with pytest.raises(MetadataForbiddenError, match="does not know this session"):
        await store._check_identity()
    with pytest.raises(MetadataForbiddenError, match="nothing was created"):
        await store.create("/never-open")
    assert await store.exists("/never-open") is None
    await store.close()


@pytest.mark.rule("M6", "Z1")
async def test_concurrent_writes_travel_together(zookeeper_service: ZooKeeperService) -> None:
    store = await zookeeper_service.connect()
    asked: list[str] = []
    original = store._ask

    async def ask(what: str, send: object, deadline: float) -> object:
        asked.append(what)
        return await original(what, send, deadline)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "_ask", ask)
        paths = await asyncio.gather(*(store.create("/n-", sequential=True, ephemeral=True) for _ in range(50)))
        assert [path for path, _ in paths] == [f"/n-{number:010d}" for number in range(50)]
        assert asked == ["create /n- and 49 more"]
        asked.clear()
        results = await asyncio.gather(
            store.create("/a", b"1"), store.create("/n-0000000007"), store.create("/b"), return_exceptions=True
        )
        assert (results[0], results[2]) == (("/a", 0), ("/b", 0))
        assert isinstance(results[1], KeyExistsError)
        assert asked == ["create /a and 2 more", "create /a", "create /n-0000000007", "create /b"]
        store.session_id += 1
        stale = store._batcher.put((Create("/stale", b"", True), store.session_id - 1))
        with pytest.raises(SessionExpiredError):
            await stale
    assert await store.exists("/stale") is None


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
        await until(lambda: "this process writes nothing more" in caplog.text)
    with pytest.raises(MetadataRolledBackError):
        await store.set("/a", b"", None)
    assert (await store.get("/a")).version == 0


async def _write_at_once(store: ZooKeeperStore, path: str) -> asyncio.Future[object]:
    """What comes of a write that is asked for in the very turn in which a new session is told."""
    outcome: asyncio.Future[object] = asyncio.get_running_loop().create_future()

    async def write() -> None:
        try:
            outcome.set_result(await store.create(path))
        except MetadataError as error:
            outcome.set_result(error)

    def told(state: SessionState) -> None:
        if state is SessionState.CONNECTED:
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
    store.last_transaction = 2**62
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
    async with asyncio.timeout(10):
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
    look, looks, go_on = store.check_not_rolled_back, list[int](), asyncio.Event()

    async def silent_at_first(transaction: int) -> None:
        looks.append(transaction)
        if not go_on.is_set():
            raise MetadataUnavailableError("no answer")
        await look(transaction)

    monkeypatch.setattr(store, "check_not_rolled_back", silent_at_first)
    outcome = await _write_at_once(store, "/b")
    await zookeeper_service.expire(store)
    await until(lambda: len(looks) >= 3)
    assert not outcome.done() and await store.exists("/b") is None
    go_on.set()
    assert await asyncio.wait_for(outcome, 20) == ("/b", 0)
    go_on.clear()
    store._timeout_s = 0.2
    outcome = await _write_at_once(store, "/c")
    await zookeeper_service.expire(store)
    error = await asyncio.wait_for(outcome, 20)
    assert isinstance(error, MetadataUnavailableError) and "not sent" in str(error)
    go_on.set()
    assert await store.exists("/c") is None


@pytest.mark.rule("A2a")
async def test_a_life_that_began_between_the_look_and_the_write_is_reported(
    zookeeper_service: ZooKeeperService, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = [await zookeeper_service.connect() for _ in range(2)]
    await store.create("/a", b"old")
    created_txn = (await store.get("/a")).created_txn
    look = store._check_creation

    async def then_somebody_is_fast(path: str, expected: int) -> None:
        await look(path, expected)
        await other.delete(path, None)
        await other.create(path, b"new")

    monkeypatch.setattr(store, "_check_creation", then_somebody_is_fast)
    with pytest.raises(MetadataError, match=r"/a was deleted and created anew between .* replaced version 0"):
        await store.set("/a", b"for the old one", Version(0), created_txn=created_txn)
    assert "created anew just before a write" in caplog.text


async def test_a_cluster_by_its_address(zookeeper_service: ZooKeeperService) -> None:
    host, port = zookeeper_service.server.address
    uri = f"zk+longhierarchical://{host}:{port};{host}:{port}{zookeeper_service.chroot}/x/ledgers"
    instance_id = await init_cluster(uri, seams())
    metadata = await Metadata.connect(uri, seams())
    assert metadata.instance_id == instance_id
    assert metadata.layout.name == "LONG_HIERARCHICAL"
    await metadata.close()
