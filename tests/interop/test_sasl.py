"""SASL DIGEST-MD5 between the languages, both ways, in both protocols: over TLS, with Java's own JAAS files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

import pytest

from bookkeeper.auth.config import AuthConfig
from bookkeeper.auth.sasl.users import user_line
from bookkeeper.client.config import ClientConfig
from bookkeeper.errors import AddTimeoutError
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.launchers.zookeeper import ZooKeeperServer, free_port
from bookkeeper.net.tls import TlsConfig
from bookkeeper.secret import Secret
from bookkeeper.sync import BookKeeper
from examples.apache_servers import QUICK_ADDS, QUICK_START, ApacheBookie, whats_missing
from examples.certificates import Authority
from tests.integration.processes import Process, until
from tests.interop.apache_shell import apache_init
from tests.interop.java_client import Java, JavaClient, JavaError
from tests.interop.test_security import ONE, give_up_after, java_tls

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]

if (_missing := whats_missing()) is not None:
    pytest.skip(f"SASL between both languages is not tried: {_missing}", allow_module_level=True)

MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule required"
JAAS = f"""
Bookie {{ {MODULE} user_etl="wonder land" user_müller="schlüssel"; }};
BookKeeper {{ {MODULE} username="etl" password="wonder land"; }};
Other {{ {MODULE} username="müller" password="schlüssel"; }};
Wrong {{ {MODULE} username="etl" password="guess"; }};
Removed {{ {MODULE} username="goes" password="soon"; }};
"""
SASL_CLIENT = "org.apache.bookkeeper.sasl.SASLClientProviderFactory"
SASL_BOOKIE = "org.apache.bookkeeper.sasl.SASLBookieAuthProviderFactory"
REFRESH_S = 1.0
PAYLOADS = [b"%d" % number for number in range(300)]


@dataclass(frozen=True)
class Stage:
    """One bookie of each language in a cluster of its own; both know etl and müller."""

    authority: Authority
    ours: str
    javas: str
    java: Java
    users: Path
    pages: str
    """Where our bookie shows its metrics."""


def private(path: Path, text: str) -> Path:
    """Put a new private file in its place."""
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(text)
    fresh.chmod(0o600)
    return fresh.rename(path)


def users_of(*more: str) -> str:
    known = user_line("etl", Secret("wonder land")) + user_line("müller", Secret("schlüssel"))
    return known + "".join(more)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    directory = tmp_path_factory.mktemp("sasl")
    authority = Authority(directory / "certificates")
    made = authority.server()
    jaas = directory / "jaas.conf"
    jaas.write_text(JAAS, encoding="utf-8")
    login = (f"-Djava.security.auth.login.config={jaas}", "-Dfile.encoding=UTF-8")
    users = private(directory / "users", users_of())
    with ExitStack() as stack:
        zookeeper = stack.enter_context(ZooKeeperServer(directory / "zookeeper"))
        ours, javas = (f"zk://{zookeeper.address}{root}" for root in ("/ledgers", "/java-ledgers"))
        apache_init(ours)
        apache_init(javas)
        settings: dict[str, object] = {
            **QUICK_ADDS,
            **java_tls(authority, made, "PEM", "OpenSSL"),
            "tlsClientAuthentication": False,
            "bookieAuthProviderFactoryClass": SASL_BOOKIE,
            "saslJaasClientAllowedIds": ".*",
        }
        bookie = ApacheBookie(directory / "java", javas, settings=settings, options=(*QUICK_START, *login)).launch()
        stack.callback(bookie.kill)
        toml = directory / "bookie.toml"
        toml.write_text(
            f'[tls]\ncert = "{made.cert}"\nkey = "{made.key}"\nreload_interval_s = {REFRESH_S}\n'
            f'[auth]\nprovider = "sasl"\n[auth.options]\nfile = "{users}"\n'
            "[storage]\njournal_file_bytes = 8388608\nreserve_bytes = 1048576\n"
        )
        where = ("--metadata", ours, "--dir", str(directory / "ours"), "--config", str(toml), "--verbose")
        pages = f"127.0.0.1:{free_port()}"
        process = Process("ours", directory, "bookie", *where, "--http", pages)
        process.start()
        stack.callback(process.kill)
        java = Java(directory / "java-client", more_options=login)
        stack.callback(java.stop)
        process.until_said(r"serves at \S+")
        bookie.await_serving()
        yield Stage(authority, ours, javas, java, users, pages)


def java_client(stage: Stage, uri: str, protocol: str, section: str | None, patience_s: float = 3) -> JavaClient:
    settings = {**give_up_after(patience_s), **java_tls(stage.authority, None, "PEM", "OpenSSL")}
    if section is not None:
        settings |= {"clientAuthProviderFactoryClass": SASL_CLIENT, "saslJaasClientSectionName": section}
    return JavaClient(stage.java, uri, protocol, settings)


def our_config(stage: Stage, protocol: str, directory: Path, user: str, password: str) -> ClientConfig:
    options = {"file": str(private(directory / "me", f"{user}\n{password}\n"))}
    auth = AuthConfig(provider="sasl", options=options, required=True)
    return ClientConfig(
        protocol=protocol, tls=TlsConfig(ca=stage.authority.ca), auth=auth, add_timeout_ms=int(3_000 * stretch())
    )


@pytest.mark.rule("X9")
@pytest.mark.parametrize("protocol", ["v2", "v3"])
@pytest.mark.parametrize("section", ["BookKeeper", "Other"])
def test_javas_client_shows_our_bookie_its_password(stage: Stage, protocol: str, section: str) -> None:
    client = java_client(stage, stage.ours, protocol, section, patience_s=60)
    writer = client.create(ONE)
    writer.append_many(PAYLOADS)
    writer.close()
    assert client.open(writer.id).read(0, 299) == PAYLOADS
    client.close()


@pytest.mark.rule("X9", "X11")
@pytest.mark.parametrize("protocol", ["v2", "v3"])
@pytest.mark.parametrize("section", ["Wrong", "Removed", None])
def test_our_bookie_serves_no_java_client_that_it_does_not_know(
    stage: Stage, protocol: str, section: str | None
) -> None:
    client = java_client(stage, stage.ours, protocol, section)
    with pytest.raises(JavaError):
        client.create(ONE).append_many([b"secret"])
    client.close()


@pytest.mark.rule("X9", "X10a")
@pytest.mark.parametrize("protocol", ["v2", "v3"])
@pytest.mark.parametrize("bookie", ["ours", "java's"])
@pytest.mark.parametrize(("user", "password"), [("etl", "wonder land"), ("müller", "schlüssel")])
def test_our_client_and_both_bookies_know_each_other(
    stage: Stage, tmp_path: Path, protocol: str, bookie: str, user: str, password: str
) -> None:
    uri = stage.ours if bookie == "ours" else stage.javas
    with BookKeeper.connect(uri, config=our_config(stage, protocol, tmp_path, user, password)) as client:
        with client.create_ledger(ensemble=1, write_quorum=1, ack_quorum=1) as ledger:
            ledger.append_many(PAYLOADS)
        with client.open_ledger(ledger.id) as reader:
            assert [entry.payload for entry in reader.read(0, reader.last_add_confirmed)] == PAYLOADS


@pytest.mark.rule("X9")
@pytest.mark.parametrize("bookie", ["ours", "java's"])
def test_a_wrong_password_opens_no_bookie(
    stage: Stage, tmp_path: Path, bookie: str, caplog: pytest.LogCaptureFixture
) -> None:
    uri = stage.ours if bookie == "ours" else stage.javas
    with BookKeeper.connect(uri, config=our_config(stage, "v3", tmp_path, "etl", "guess")) as client:
        ledger = client.create_ledger(ensemble=1, write_quorum=1, ack_quorum=1)
        with pytest.raises(AddTimeoutError):
            ledger.append(b"secret")
        if bookie == "ours":  # Java's says nothing, and leaves the client waiting
            until(lambda: "refuses this client's authentication (sasl)" in caplog.text, what="the reason in the log")


@pytest.mark.rule("X15")
@pytest.mark.parametrize("protocol", ["v2", "v3"])
def test_javas_client_of_a_removed_user_is_ended_and_comes_back_with_him(stage: Stage, protocol: str) -> None:
    line = user_line("goes", Secret("soon"))
    private(stage.users, users_of(line))
    client = java_client(stage, stage.ours, protocol, "Removed")
    (ledger_id,) = until(lambda: written_if_served(client), what="the bookie's reading of the users")
    before = ended(stage)
    private(stage.users, users_of())
    until(lambda: ended(stage) > before, what="the end of its connection")
    with pytest.raises(JavaError):
        client.create(ONE).append(b"never")
    private(stage.users, users_of(line))
    assert until(lambda: read_if_served(client, ledger_id)) == [b"0"], "what was answered stays, and the client is back"
    before = ended(stage)
    private(stage.users, users_of())
    until(lambda: ended(stage) > before, what="the end of its connection, so that no other test finds him served")
    client.close()


def written_if_served(client: JavaClient) -> list[int]:
    """The id of a new ledger with one entry; empty while the client is refused.

    A bookie looks for a name that it does not know at most once a second.
    """
    try:
        writer = client.create(ONE)
        assert writer.append(b"0") == 0
    except JavaError:
        return []
    return [writer.id]


def read_if_served(client: JavaClient, ledger_id: int) -> list[bytes] | None:
    """The first entry; None while the client is refused."""
    try:
        return client.open(ledger_id).read(0, 0)
    except JavaError:
        return None


def ended(stage: Stage) -> int:
    """How many connections our bookie has ended because of what their clients had shown."""
    with urlopen(f"http://{stage.pages}/metrics") as page:
        found = re.search(r"^bookie_ended_credentials_total (\d+)", page.read().decode(), re.MULTILINE)
    assert found is not None
    return int(found[1])
