"""Two tenants with Apache's client and one bookie of ours that enforces the access policy."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace

import pytest

from bookkeeper.access import Mode, Policy, PolicyChange
from bookkeeper.launchers.zookeeper import ZooKeeperServer
from bookkeeper.meta import Metadata
from bookkeeper.real import system_seams
from examples.apache_servers import whats_missing
from examples.certificates import Authority
from tests.integration.processes import Process
from tests.interop.apache_shell import apache_init
from tests.interop.clients import Shape
from tests.interop.java_client import Java, JavaClient, JavaError
from tests.interop.test_security import java_tls

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]

if (_missing := whats_missing()) is not None:
    pytest.skip(f"permissions of Apache's client are not tried: {_missing}", allow_module_level=True)

UNAUTHORIZED, READ, RECOVERY = -102, -1, -10
"""BKException's codes: no access; and those that Java makes of whatever refuses it while a ledger is opened."""

ONE = Shape(ensemble=1, write_quorum=1, ack_quorum=1)


@dataclass(frozen=True)
class Stage:
    authority: Authority
    uri: str
    java: Java

    def client(self, name: str, protocol: str) -> JavaClient:
        """Apache's client with the certificate of ``name``."""
        made = self.authority.client(name)
        return JavaClient(self.java, self.uri, protocol, java_tls(self.authority, made, "PEM", "OpenSSL"))


async def enforce(uri: str) -> None:
    metadata = await Metadata.connect(uri, system_seams())
    try:
        note = PolicyChange(0, "an operator", "enforced")
        await metadata.access.change(lambda old: Policy(Mode.ENFORCE).with_change(note), note)
    finally:
        await metadata.store.close()


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    directory = tmp_path_factory.mktemp("access")
    authority = Authority(directory / "certificates")
    made = authority.server()
    with ExitStack() as stack:
        zookeeper = stack.enter_context(ZooKeeperServer(directory / "zookeeper"))
        uri = f"zk://{zookeeper.address}/ledgers"
        apache_init(uri)
        asyncio.run(enforce(uri))
        toml = directory / "bookie.toml"
        toml.write_text(
            f'[tls]\ncert = "{made.cert}"\nkey = "{made.key}"\nclient_ca = "{authority.ca}"\n'
            "[storage]\njournal_file_bytes = 8388608\nreserve_bytes = 1048576\n"
        )
        where = ("--metadata", uri, "--dir", str(directory / "ours"), "--config", str(toml), "--verbose")
        process = Process("ours", directory, "bookie", *where)
        process.start()
        stack.callback(process.kill)
        java = Java(directory / "java-client")
        stack.callback(java.stop)
        process.until_said(r"serves at \S+")
        yield Stage(authority, uri, java)


@pytest.mark.rule("X12", "X22")
@pytest.mark.parametrize("protocol", ["v2", "v3"])
def test_apaches_client_has_its_own_ledgers_and_no_others(stage: Stage, protocol: str) -> None:
    """Its ledgers name no owner: whoever writes them first owns them. Its own are written, closed, read and recovered;
    those of another tenant are neither read nor recovered, and their writer goes on."""
    a, b = stage.client("tenant-a", protocol), stage.client("tenant-b", protocol)
    closed = a.create(ONE)
    closed.append_many([b"%d" % number for number in range(100)])
    closed.close()
    assert a.open(closed.id).read(0, 99) == [b"%d" % number for number in range(100)]
    going_on = a.create(ONE)
    going_on.append(b"one")
    with pytest.raises(JavaError, match=r"(?i)unauthori[sz]ed|recover"):
        b.open(going_on.id)
    with pytest.raises(JavaError):
        b.open(closed.id).read(0, 0)
    going_on.append(b"two")  # it was not fenced
    left = a.create(ONE)
    left.append(b"left")
    assert a.open(left.id).read(0, 0) == [b"left"]
    never_written = a.create(ONE)
    assert a.open(never_written.id).confirmed == -1
    a.close()
    b.close()


@pytest.mark.rule("X12", "X13")
@pytest.mark.parametrize("protocol", ["v2", "v3"])
def test_apaches_client_hears_what_it_may_not_do_and_tries_it_no_more(stage: Stage, protocol: str) -> None:
    """Each refusal is one that Java has a word for, and ends the operation: no call here waits for its time-out."""
    a, b = stage.client("tenant-a", protocol), stage.client("tenant-b", protocol)
    named = b.create(replace(ONE, custom={"bookkeeper.owner": b"ledgers:tenant-a"}))
    assert refused(lambda: named.append(b"squatted")) == UNAUTHORIZED, "an add"
    writer = a.create(ONE)
    writer.append_many([b"0", b"1"])
    assert refused(lambda: b.open(writer.id, recovery=False)) in (UNAUTHORIZED, READ), "its last add confirmed"
    assert refused(lambda: b.open(writer.id)) in (UNAUTHORIZED, RECOVERY), "a fence"
    writer.append(b"2")
    writer.close()
    again = b.open(writer.id, recovery=False)
    assert refused(lambda: again.read(0, 2)) == UNAUTHORIZED, "closed, so that its end is in the metadata"
    if protocol == "v2":  # Java has no batches in the other one
        assert refused(lambda: again.read_batch(0, 3, 1 << 20)) == UNAUTHORIZED, "a batch"
    assert a.open(writer.id).read(0, 2) == [b"0", b"1", b"2"]
    a.close()
    b.close()


def refused(work: Callable[[], object]) -> int | None:
    """The code of the BKException that a call ends with."""
    with pytest.raises(JavaError) as error:
        work()
    return error.value.code
