from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bookkeeper.errors import ConfigError, MetadataUnavailableError, Outcome
from bookkeeper.meta import Metadata, init_cluster, service_uri
from bookkeeper.meta.service_uri import SESSION_S, ServiceUri, open_store, parse, sqlite_uri
from bookkeeper.meta.store import MetadataStore
from bookkeeper.meta.stores.sqlite import SqliteStore
from bookkeeper.meta.stores.zookeeper import ZooKeeperStore
from bookkeeper.seams import Seams
from tests.bookkeeper.meta.services import MemoryService, seams


@pytest.mark.parametrize(
    ("uri", "parsed"),
    [
        ("memory:x", ServiceUri("memory", "x")),
        ("memory:a%20b", ServiceUri("memory", "a b")),
        ("sqlite:///tmp/a.db", ServiceUri("sqlite", "/tmp/a.db")),
        ("sqlite:///tmp/a b.db", ServiceUri("sqlite", "/tmp/a b.db")),
        ("sqlite:///q%3Fx", ServiceUri("sqlite", "/q?x", undecoded="/q%3Fx")),
        ("zk://h:2181", ServiceUri("zk", "h:2181")),
        ("zk://h:2181/", ServiceUri("zk", "h:2181")),
        ("zk://h:1,i:2;j:3/a/ledgers", ServiceUri("zk", "h:1,i:2,j:3", "/a/ledgers")),
        ("zk://[::1]:1/l", ServiceUri("zk", "[::1]:1", "/l")),
        ("zk://h:1/a%20b", ServiceUri("zk", "h:1", "/a b")),
        ("zk+null://h:1/l", ServiceUri("zk", "h:1", "/l")),
        ("zk+hierarchical://h:1/l", ServiceUri("zk", "h:1", "/l", "hierarchical")),
        ("zk+longhierarchical://h:1/l", ServiceUri("zk", "h:1", "/l", "longhierarchical")),
        ("zk+flat://h:1/l", ServiceUri("zk", "h:1", "/l", "flat")),
    ],
)
def test_addresses(uri: str, parsed: ServiceUri) -> None:
    assert parse(uri) == parsed


@pytest.mark.parametrize(
    "uri",
    ["", "h:2181", "zk://", "zk:///ledgers", "zk://a b:1/l", "zk://h:1/a//b", "zk+tree://h:1/l", "sqlite://x", "sqlite:///",
     "etcd://h:1/l"],
)  # fmt: skip
def test_what_is_no_address_is_refused(uri: str) -> None:
    with pytest.raises(ConfigError):
        parse(uri)


@pytest.mark.parametrize("port", ["0", "65536", "99999"])
@pytest.mark.parametrize("host", ["h", "[::1]"])
def test_a_port_that_cannot_be_is_refused_by_name(host: str, port: str) -> None:
    with pytest.raises(ConfigError, match=f"has the port {port}, but ports go from 1 to 65535"):
        parse(f"zk://h:2181,{host}:{port}/ledgers")


def test_an_unknown_kind_of_store_is_answered_with_the_known_ones() -> None:
    with pytest.raises(
        ConfigError, match=r"it knows embedded, (\w+, )*memory, (\w+, )*sqlite, zk, and for streams grpc and grpcs"
    ):
        parse("zookeeper://h:2181/ledgers")


@pytest.mark.parametrize("uri", ["sqlite:///a?bookies=3", "sqlite:///a#b"])
def test_a_file_has_no_options_and_a_name_with_such_characters_is_escaped(uri: str) -> None:
    with pytest.raises(ConfigError, match="%3F, and a # is written %23"):
        parse(uri)


@pytest.mark.parametrize("file", ["/a/b.db", "/a b/c.db", "/a%20b/c.db", "/a%2520b/c.db", "/q?x#y/c.db", "/ä/100%.db"])
def test_the_address_of_a_file_leads_to_this_file(file: str) -> None:
    """The cause: sqlite:///FILE was literal here and decoded behind ``bk+``, and addresses were pasted together from
    paths that were decoded already. So one address named two files, and some files had no address."""
    assert parse(sqlite_uri(file)).target == file


async def test_a_store_that_an_earlier_version_kept_under_an_undecoded_name_is_not_replaced_by_an_empty_one(
    tmp_path: Path,
) -> None:
    """The cause: earlier versions took sqlite:///a%20b for the file ``a%20b``. The same address names ``a b`` now."""
    old = f"{tmp_path}/a%20b.db"
    store = await open_store(sqlite_uri(old), seams())
    await store.create("/kept")
    await store.close()
    assert service_uri.may_exist(parse(f"sqlite://{old}"), seams()), "there is something to speak of"
    with pytest.raises(ConfigError, match=r"names the file .*a b\.db, .*write sqlite://.*a%2520b\.db to go on with it"):
        await open_store(f"sqlite://{old}", seams())
    assert not (tmp_path / "a b.db").exists()
    store = await open_store(sqlite_uri(old), seams())
    assert await store.exists("/kept") == 0
    await store.close()


async def test_sqlite_and_memory_stores_are_opened_by_address(tmp_path: Path) -> None:
    for uri in (f"sqlite://{tmp_path}/m.db", "memory:by-address"):
        first, second = await open_store(uri, seams()), await open_store(uri, seams())
        await first.create("/a")
        assert await second.exists("/a") == 0
        await first.close()
        await second.close()


@pytest.mark.rule("Z9")
@pytest.mark.parametrize("kind", ["sqlite", pytest.param("zk", marks=pytest.mark.zookeeper)])
async def test_a_session_lasts_as_long_as_was_asked_for(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    uri = f"sqlite://{tmp_path}/m.db"
    if kind == "zk":
        uri = f"zk://{request.getfixturevalue('zookeeper_server').address}/session-length"
    await init_cluster(uri, seams())
    metadata = await Metadata.connect(uri, seams(), session_s=33)
    store = metadata.store
    if isinstance(store, SqliteStore):
        assert store._file._lease_s == 33
    else:
        assert isinstance(store, ZooKeeperStore)
        assert store._client._session_timeout == 33_000
        assert store._session.timeout_s == SESSION_S, "an operation does not wait longer for that"
    await metadata.close()


async def test_a_higher_floor_adds_its_scheme(memory_service: MemoryService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_uri, "_OPENERS", dict(service_uri._OPENERS))
    with pytest.raises(ConfigError):
        parse("embedded:///d")

    async def opener(address: ServiceUri, given: Seams) -> MetadataStore:
        assert address == ServiceUri("embedded", "/d")
        return await memory_service.connect()

    service_uri.register("embedded", opener)
    assert await (await open_store("embedded:///d", seams())).exists("/") == 0


@pytest.mark.rule("X58")
def test_credentials_in_an_address_are_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError, match=r"must not contain credentials.*BK_ZOOKEEPER") as caught:
        parse("zk://bk:planted@127.0.0.1:2181/ledgers")
    assert "planted" not in str(caught.value)


@pytest.mark.rule("X58")
@pytest.mark.parametrize(
    "uri",
    [
        "zookeeper://bk:planted@127.0.0.1:2181/ledgers",
        "zk://bk:planted/word@127.0.0.1:2181/ledgers",
        "zk+nothing://bk:pl@nted@127.0.0.1/planted@ledgers",
        "planted@127.0.0.1",
        "sqlite://bk:planted@h/file",
    ],
)
def test_what_may_be_a_password_in_what_is_no_address_is_not_repeated(uri: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(uri)
    assert "planted" not in str(caught.value)
    assert "pl@nted" not in str(caught.value)


async def test_a_store_that_could_not_be_opened_was_asked_nothing(tmp_path: Path) -> None:
    with pytest.raises(MetadataUnavailableError) as caught:
        await open_store(f"sqlite://{tmp_path}", seams())
    assert caught.value.outcome is Outcome.REJECTED


@pytest.mark.parametrize(
    "uri", ["sqlite:///tmp/a%zz", "sqlite:///tmp/a%", "sqlite:///tmp/a%ff", "memory:a%2", "zk://h:1/ledgers%zz"]
)
def test_a_wrong_escape_is_refused(uri: str) -> None:
    """Cause: the library that decodes leaves what is no escape as it is, and puts another character for bytes that are
    no text: a misspelt address was that of another, empty store."""
    with pytest.raises(ConfigError, match="write %25 for a % that is meant as such"):
        parse(uri)
    assert parse("sqlite:///tmp/a%25zz").target == "/tmp/a%zz"


@pytest.mark.parametrize("uri", [None, 5, b"sqlite:///x"])
def test_an_address_of_another_type_is_refused(uri: Any) -> None:
    """Cause: nothing looked at the type, so that a caller got an AttributeError of this module's inside."""
    with pytest.raises(ConfigError, match="an address is a text such as"):
        parse(uri)
