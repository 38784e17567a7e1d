"""What is particular to the store in ZooKeeper; the rest is the contract, in test_store.py."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest

from bookkeeper.errors import (
    KeyExistsError,
    MetadataError,
    MetadataForbiddenError,
    MetadataUnavailableError,
    SessionExpiredError,
)
from bookkeeper.launchers.zookeeper import ZooKeeperServer, free_port
from bookkeeper.meta.cluster import Metadata, init_cluster
from bookkeeper.meta.store import Check, Create, Delete, SessionState, Set, Version, settled_create, settled_set
from bookkeeper.meta.stores.credentials import Credentials, ZooKeeperTls
from bookkeeper.meta.stores.zookeeper import ZooKeeperStore
from bookkeeper.meta.stores.zookeeper_session import PATIENCE_S
from bookkeeper.secret import Secret
from examples.certificates import PASSWORD, Authority, Certificate
from tests.bookkeeper.meta.services import ZooKeeperService, seams
from tests.contracts.metadata_store import until

pytestmark = pytest.mark.zookeeper


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
async def test_credentials_for_which_the_server_is_not_set_up_refuse_the_start(
    zookeeper_server: ZooKeeperServer,
) -> None:
    with pytest.raises(MetadataError, match="sasl user bk"):
        await ZooKeeperStore.open(str(zookeeper_server.address), seams(), credentials=sasl("pw"))


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
    original = store._session._request

    async def ask(what: str, send: object, deadline: float) -> object:
        asked.append(what)
        return await original(what, send, deadline)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store._session, "_request", ask)
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
        store._session.session_id += 1
        stale = store._batcher.put((Create("/stale", b"", True), store.session_id - 1))
        with pytest.raises(SessionExpiredError):
            await stale
    assert await store.exists("/stale") is None


async def test_transactions_and_single_writes_of_one_turn_go_together_and_each_gets_its_answer(
    zookeeper_service: ZooKeeperService,
) -> None:
    store = await zookeeper_service.connect()
    await store.create("/taken")
    before = store.last_transaction
    answers = await asyncio.gather(
        store.multi([Create("/a"), Set("/a", b"1", Version(0)), Create("/b"), Delete("/b", Version(0))]),
        store.create("/c"),
        store.multi([Check("/taken", Version(0)), Set("/taken", b"1", None)]),
    )
    assert list(answers) == [[0, 1, 0, None], ("/c", 0), [None, 1]]
    assert store.last_transaction == before + 1, "one request"
    mixed = await asyncio.gather(
        store.multi([Create("/d"), Create("/taken")]), store.create("/e"), store.multi([]), return_exceptions=True
    )
    assert isinstance(mixed[0], KeyExistsError)
    assert list(mixed[1:]) == [("/e", 0), []]
    assert await store.exists("/d") is None


async def test_paths_are_put_under_the_chroot(zookeeper_service: ZooKeeperService) -> None:
    inside = await zookeeper_service.connect()
    outside = await ZooKeeperStore.open(str(zookeeper_service.server.address), seams())
    assert (await inside.create("/a/ID-", sequential=True, parents=True))[0] == "/a/ID-0000000000"
    await inside.multi([])
    assert await outside.children(f"{zookeeper_service.chroot}/a") == ["ID-0000000000"]
    await outside.close()


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
    asked = store._session._request
    lose = ["create /x", "set /x"]

    async def ask(what: str, send: object, deadline: float) -> object:
        result = await asked(what, send, deadline)  # type: ignore[arg-type]
        if what in lose:
            lose.remove(what)
            raise MetadataUnavailableError(what)
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store._session, "_request", ask)
        assert await settled_create(store, "/x", b"token") == 0
        assert await settled_set(store, "/x", b"1", Version(0)) == 1
    assert lose == []
    assert (await store.get("/x")).version == 1


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
