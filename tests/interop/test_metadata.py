"""One tree in ZooKeeper, two languages: who makes it, who may read it, and Java's autorecovery in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from bookkeeper import BookKeeper
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.launchers.zookeeper import ZooKeeperServer
from bookkeeper.ledger.metadata import LedgerMetadata
from bookkeeper.ledger.quorum import QuorumSpec
from bookkeeper.meta import Metadata
from bookkeeper.meta.records.layout import BY_URI_NAME, Layout
from bookkeeper.real import run, system_seams
from examples.apache_servers import ApacheBookie, whats_missing
from tests.integration.processes import Process, bk, bk_json, free_port
from tests.interop.apache_shell import shell

pytestmark = [pytest.mark.interop, pytest.mark.zookeeper, pytest.mark.timeout(240)]

if (_missing := whats_missing()) is not None:
    pytest.skip(f"Apache's programs are not run: {_missing}", allow_module_level=True)

NEW = LedgerMetadata.create(QuorumSpec(ensemble_size=1, write_quorum=1, ack_quorum=1), [BookieId("b1")], password=b"")
FACTORY = "org.apache.bookkeeper.meta."


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


async def make_ledgers(uri: str, *wanted: int) -> tuple[Layout, list[LedgerId]]:
    """Ledgers of one cluster: two under new ids, and those that are wanted."""
    metadata = await Metadata.connect(uri, system_seams())
    try:
        made = [(await metadata.ledgers.create(NEW))[0] for _ in range(2)]
        made += [(await metadata.ledgers.create(NEW, LedgerId(number)))[0] for number in wanted]
        assert sorted(made) == [ledger async for ledger in metadata.ledgers.list()]
        return metadata.layout, sorted(made)
    finally:
        await metadata.close()


def listed(said: str) -> list[int]:
    """What ``listledgers`` printed."""
    lines = (line.rpartition(" ")[2] for line in said.splitlines() if "ledgerID:" in line)
    return sorted(int(line) for line in lines)


@pytest.mark.parametrize("layout", Layout)
def test_a_cluster_that_java_formatted_is_taken_as_it_is(zookeeper: ZooKeeperServer, layout: Layout) -> None:
    uri = f"zk://{zookeeper.address}/formatted-{layout.name.lower()}"
    settings = {"ledgerManagerFactoryClass": f"{FACTORY}{layout.value}"}
    shell("metaformat", "-nonInteractive", "-force", uri=uri, settings=settings)
    shared(uri, layout, settings)


@pytest.mark.parametrize("name", BY_URI_NAME)
def test_a_cluster_that_java_began_is_taken_as_it_is(zookeeper: ZooKeeperServer, name: str) -> None:
    uri = f"zk+{name}://{zookeeper.address}/begun-{name}"
    shell("initnewcluster", uri=uri)
    shared(uri.replace(f"+{name}", ""), BY_URI_NAME[name], {})


@pytest.mark.parametrize("name", BY_URI_NAME)
def test_a_cluster_that_we_began_is_taken_by_java(zookeeper: ZooKeeperServer, name: str) -> None:
    uri = f"zk+{name}://{zookeeper.address}/ours-{name}"
    run(init(uri))
    shared(uri, BY_URI_NAME[name], {})


def shared(uri: str, layout: Layout, settings: dict[str, str]) -> None:
    """Our ledgers lie where Java looks for them, also those with long ids."""
    wanted = (77, 123456) if layout in (Layout.FLAT, Layout.LEGACY_HIERARCHICAL) else (77, 2**31 - 1, 2**40)
    found, made = run(make_ledgers(uri, *wanted))
    assert found is layout
    assert listed(shell("listledgers", uri=uri, settings=settings)) == made
    assert "b1" in shell("ledgermetadata", "-ledgerid", str(made[-1]), uri=uri, settings=settings)


LOGIN = """
Server {{ org.apache.zookeeper.server.auth.DigestLoginModule required user_bk="planted"; }};
Client {{ org.apache.zookeeper.server.auth.DigestLoginModule required username="bk" password="{password}"; }};
"""
PROVIDER = "-Dzookeeper.authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
US = {"BK_ZOOKEEPER_USER": "bk", "BK_ZOOKEEPER_PASSWORD": "planted"}
SECURE = {"zkEnableSecurity": True}


@contextmanager
def environment(variables: dict[str, str]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        yield


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[str]:
    """A ZooKeeper that knows the user bk by SASL. Java and we are that user."""
    login = tmp_path / "jaas.conf"
    login.write_text(LOGIN.format(password="planted"))
    settings = tmp_path / "zookeeper.toml"
    settings.write_text('scheme = "sasl"\n')
    variables = {
        "JAVA_TOOL_OPTIONS": f"-Djava.security.auth.login.config={login} {PROVIDER}",
        "BK_ZOOKEEPER": str(settings),
        **US,
    }
    with environment(variables), ZooKeeperServer(tmp_path / "zookeeper") as server:
        yield f"zk://{server.address}/secured"


def our_bookie(directory: Path, uri: str, running: ExitStack) -> str:
    """A bookie process of ours with our credentials; its id."""
    variables = {name: os.environ[name] for name in ("BK_ZOOKEEPER", *US)}
    directory.mkdir()
    settings = directory / "bookie.toml"
    settings.write_text("[storage]\njournal_file_bytes = 8388608\nreserve_bytes = 1048576\n")
    words = ["bookie", "--metadata", uri, "--dir", str(directory / "data"), "--port", str(free_port())]
    process = Process("ours", directory, *words, "--config", str(settings), environment=variables)
    process.start()
    running.callback(process.stop)
    process.until_said(r"serves at \S+")
    return process.until_said(r"bookie (\S+) serves")[1]


async def write_and_read(uri: str, bookies: int) -> int:
    async with BookKeeper.connect(uri) as client:
        ledger = await client.create_ledger(ensemble=bookies, write_quorum=bookies, ack_quorum=bookies)
        await ledger.append_many([b"%d" % number for number in range(20)])
        await ledger.close()
        reader = await client.open_ledger(ledger.id)
        assert [bytes(entry.payload) async for entry in reader.read(0, 19)] == [b"%d" % number for number in range(20)]
        return ledger.id


@pytest.mark.rule("X25", "X26")
@pytest.mark.parametrize("maker", ["java", "ours"])
def test_a_secured_cluster_is_one_cluster_for_both(secured: str, tmp_path: Path, maker: str) -> None:
    """``zkEnableSecurity=true`` and our credentials give the same access lists, whoever comes first."""
    if maker == "java":
        shell("initnewcluster", uri=secured, settings=SECURE)
    else:
        run(init(secured))
    with ExitStack() as running:
        name = our_bookie(tmp_path / "ours", secured, running)
        java = running.enter_context(ApacheBookie(tmp_path / "java", secured, settings=SECURE))
        ledger = run(write_and_read(secured, 2))
        said = shell("listbookies", "-rw", uri=secured, settings=SECURE)
        assert name in said
        assert java.bookie_id in said
        assert ledger in listed(shell("listledgers", uri=secured, settings=SECURE))
        shell(
            "simpletest",
            "-ensemble",
            "2",
            "-writeQuorum",
            "2",
            "-ackQuorum",
            "2",
            "-numEntries",
            "10",
            uri=secured,
            settings=SECURE,
        )
        problems = run(deviations(secured))
        assert problems == {}
    for name in ("BK_ZOOKEEPER", *US):
        os.environ.pop(name)
    status, _, err = bk("bookies", "--metadata", secured)
    assert (status, "access list" in err) == (1, True)


async def init(uri: str) -> None:
    from bookkeeper.meta import init_cluster

    await init_cluster(uri, system_seams())


async def deviations(uri: str) -> dict[str, str]:
    from typing import cast

    from bookkeeper.meta.stores.access_list import AccessStore, audit

    metadata = await Metadata.connect(uri, system_seams())
    store = cast(AccessStore, metadata.store)
    found = {found.path: found.problem async for found in audit(store, metadata.paths)}
    await metadata.close()
    return found


def test_javas_switches_of_autorecovery_survive_us(zookeeper: ZooKeeperServer, tmp_path: Path) -> None:
    uri = f"zk://{zookeeper.address}/switches"
    shell("initnewcluster", uri=uri)
    shell("autorecovery", "-disable", uri=uri)
    shell("lostbookierecoverydelay", "-set", "120", uri=uri)
    assert bk("init", "--metadata", uri)[0] == 1
    _, made = run(make_ledgers(uri))
    run(mark_and_delete(uri, made))
    assert "Autorecovery is disabled" in shell("autorecovery", uri=uri)
    assert "120" in shell("lostbookierecoverydelay", "-get", uri=uri)
    assert str(made[0]) in shell("listunderreplicated", "-printmissingreplica", uri=uri)
    copied = f"sqlite://{tmp_path}/copy.db"
    assert bk_json("metadata", "copy", uri, copied)["kinds"]["underreplication"] >= 4
    back = f"zk://{zookeeper.address}/switches-back"
    assert bk("metadata", "copy", copied, back)[0] == 0
    assert "Autorecovery is disabled" in shell("autorecovery", uri=back)
    assert "120" in shell("lostbookierecoverydelay", "-get", uri=back)
    assert listed(shell("listledgers", uri=back)) == [made[0]]


async def mark_and_delete(uri: str, ledgers: list[LedgerId]) -> None:
    """Mark the first as lacking a copy, delete the others."""
    metadata = await Metadata.connect(uri, system_seams())
    await metadata.under_replication.mark(ledgers[0], [BookieId("192.0.2.1:3181")], 1_700_000_000_000)
    for ledger in ledgers[1:]:
        await metadata.ledgers.delete(ledger)
    await metadata.close()
