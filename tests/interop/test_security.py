"""Mutual TLS and roles between the languages: both TLS libraries of Java's, PEM and PKCS12, both protocols."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from urllib.request import urlopen

import pytest

from bookkeeper.client.config import ClientConfig
from bookkeeper.errors import AddTimeoutError
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.launchers.zookeeper import ZooKeeperServer, free_port
from bookkeeper.net.tls import TlsConfig
from bookkeeper.sync import BookKeeper
from examples.apache_servers import QUICK_ADDS, ApacheBookie, whats_missing
from examples.certificates import Authority, Certificate
from tests.integration.processes import Process
from tests.interop.apache_shell import apache_init
from tests.interop.clients import Shape
from tests.interop.java_client import Java, JavaClient, JavaError

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]

if (_missing := whats_missing()) is not None:
    pytest.skip(f"security between both languages is not tried: {_missing}", allow_module_level=True)

FACTORY = "org.apache.bookkeeper.tls.TLSContextFactory"
ONE = Shape(ensemble=1, write_quorum=1, ack_quorum=1)
IDLE_S = 2.0
"""Our bookie closes connections that are silent for so long; an hour would be too long for a test."""


def give_up_after(seconds: float) -> dict[str, object]:
    """When Java's client gives up, on a machine of the reference's speed: one that is refused should do so soon, one
    that is served has its first handshake to come, which takes a busy machine seconds."""
    limit = math.ceil(seconds * stretch())
    return {"addEntryTimeoutSec": limit, "addEntryQuorumTimeoutSec": limit, "readEntryTimeoutSec": limit}


def java_tls(authority: Authority, made: Certificate | None, form: str, provider: str) -> dict[str, object]:
    """Java's settings, the same words on both sides."""
    settings: dict[str, object] = {
        "tlsProviderFactoryClass": FACTORY,
        "tlsProvider": provider,
        "tlsHostnameVerificationEnabled": True,
        "tlsTrustStoreType": form,
        "tlsTrustStore": authority.ca if form == "PEM" else authority.truststore,
    }
    if form == "PKCS12":
        settings["tlsTrustStorePasswordPath"] = authority.password_file
    if made is not None:
        settings["tlsClientAuthentication"] = True
        settings["tlsKeyStoreType"] = form
        if form == "PEM":
            settings |= {"tlsKeyStore": made.key, "tlsCertificatePath": made.cert}
        else:
            settings |= {"tlsKeyStore": made.pkcs12, "tlsKeyStorePasswordPath": made.password_file}
    return settings


@dataclass(frozen=True)
class Stage:
    """One bookie of each language in a cluster of its own, both serve only the role ``writer``."""

    authority: Authority
    ours: str
    javas: str
    java: Java
    writer: Certificate
    reader: Certificate
    pages: str
    """Where our bookie shows its metrics."""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    directory = tmp_path_factory.mktemp("security")
    authority = Authority(directory / "certificates")
    made = authority.server()
    writer, reader = authority.client("writer", units=["0:writer"]), authority.client("reader", units=["0:reader"])
    with ExitStack() as stack:
        zookeeper = stack.enter_context(ZooKeeperServer(directory / "zookeeper"))
        ours, javas = (f"zk://{zookeeper.address}{root}" for root in ("/ledgers", "/java-ledgers"))
        apache_init(ours)
        apache_init(javas)
        settings: Mapping[str, object] = {
            **QUICK_ADDS,
            **java_tls(authority, made, "PEM", "OpenSSL"),
            "bookieAuthProviderFactoryClass": "org.apache.bookkeeper.tls.BookieAuthZFactory",
            "authorizedRoles": "writer",
        }
        bookie = ApacheBookie(directory / "java", javas, settings=settings).launch()
        stack.callback(bookie.kill)
        toml = directory / "bookie.toml"
        toml.write_text(
            f"connection_idle_s = {IDLE_S}\n"
            f'[tls]\ncert = "{made.cert}"\nkey = "{made.key}"\nclient_ca = "{authority.ca}"\nroles = ["writer"]\n'
            "[storage]\njournal_file_bytes = 8388608\nreserve_bytes = 1048576\n"
        )
        where = ("--metadata", ours, "--dir", str(directory / "ours"), "--config", str(toml), "--verbose")
        pages = f"127.0.0.1:{free_port()}"
        process = Process("ours", directory, "bookie", *where, "--http", pages)
        process.start()
        stack.callback(process.kill)
        java = Java(directory / "java-client")
        stack.callback(java.stop)
        process.until_said(r"serves at \S+")
        bookie.await_serving()
        yield Stage(authority, ours, javas, java, writer, reader, pages)


@pytest.mark.rule("X5")
@pytest.mark.parametrize("protocol", ["v2", "v3"])
@pytest.mark.parametrize(("form", "provider"), [("PEM", "OpenSSL"), ("PEM", "JDK"), ("PKCS12", "JDK")])
def test_javas_client_shows_our_bookie_its_certificate(stage: Stage, protocol: str, form: str, provider: str) -> None:
    settings = java_tls(stage.authority, stage.writer, form, provider)
    client = JavaClient(stage.java, stage.ours, protocol, settings)
    writer = client.create(ONE)
    writer.append_many([b"%d" % number for number in range(300)])
    writer.close()
    reader = client.open(writer.id)
    assert reader.read(0, 299) == [b"%d" % number for number in range(300)]
    client.close()


@pytest.mark.rule("X34", "X21a")
@pytest.mark.parametrize("protocol", ["v2", "v3"])
def test_javas_pooled_client_goes_on_after_its_silent_connections_were_closed(stage: Stage, protocol: str) -> None:
    """In an ensemble of one: had it counted as a failure of the bookie, there would be no other to go on with."""
    settings = java_tls(stage.authority, stage.writer, "PEM", "OpenSSL")
    client = JavaClient(stage.java, stage.ours, protocol, settings)
    writer = client.create(ONE)
    for number in range(3):
        assert writer.append(b"%d" % number) == number
        before = closed_for_silence(stage)
        while closed_for_silence(stage) == before:  # within the test's time
            time.sleep(0.1)
    writer.close()
    assert client.open(writer.id).read(0, 2) == [b"0", b"1", b"2"]
    client.close()


def closed_for_silence(stage: Stage) -> int:
    with urlopen(f"http://{stage.pages}/metrics") as page:
        found = re.search(r"^bookie_idle_connections_total (\d+)", page.read().decode(), re.MULTILINE)
    assert found is not None
    return int(found[1])


@pytest.mark.rule("X2", "X5")
@pytest.mark.parametrize("protocol", ["v2", "v3"])
@pytest.mark.parametrize("what", ["clear", "another role", "no certificate"])
def test_our_bookie_serves_no_java_client_but_a_writer(stage: Stage, protocol: str, what: str) -> None:
    settings = give_up_after(3)
    if what != "clear":
        made = stage.reader if what == "another role" else None
        settings |= java_tls(stage.authority, made, "PEM", "OpenSSL")
    client = JavaClient(stage.java, stage.ours, protocol, settings)
    with pytest.raises(JavaError):
        client.create(ONE).append_many([b"secret"])
    client.close()


@pytest.mark.rule("X5")
@pytest.mark.parametrize("protocol", ["v2", "v3"])
def test_our_client_shows_javas_bookie_its_certificate(stage: Stage, protocol: str) -> None:
    tls = TlsConfig(ca=stage.authority.ca, cert=stage.writer.cert, key=stage.writer.key)
    payloads = [b"%d" % number for number in range(300)] + [bytes(range(256)) * 4_000]
    with BookKeeper.connect(stage.javas, config=ClientConfig(protocol=protocol, tls=tls)) as client:
        with client.create_ledger(ensemble=1, write_quorum=1, ack_quorum=1) as ledger:
            ledger.append_many(payloads)
        with client.open_ledger(ledger.id) as reader:
            assert [entry.payload for entry in reader.read(0, reader.last_add_confirmed)] == payloads


@pytest.mark.rule("X5")
@pytest.mark.parametrize("what", ["clear", "another role", "no certificate"])
def test_javas_bookie_serves_us_only_as_a_writer(stage: Stage, what: str, caplog: pytest.LogCaptureFixture) -> None:
    """And the log says why."""
    tls = {
        "clear": None,
        "another role": TlsConfig(ca=stage.authority.ca, cert=stage.reader.cert, key=stage.reader.key),
        "no certificate": TlsConfig(ca=stage.authority.ca),
    }
    config = ClientConfig(tls=tls[what], add_timeout_ms=3_000)
    with BookKeeper.connect(stage.javas, config=config) as client:
        ledger = client.create_ledger(ensemble=1, write_quorum=1, ack_quorum=1)
        with pytest.raises(AddTimeoutError):
            ledger.append(b"secret")
    assert "requires TLS or authentication" in caplog.text or "TLS" in caplog.text
