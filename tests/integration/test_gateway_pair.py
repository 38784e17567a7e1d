"""A pair of gateways: who serves, who stands by, and Hadoop's own client that knows both."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import spark_wal
from bookkeeper.leases.lease import NamespaceOwnedError
from spark_wal.service import spark_conf
from tests.integration.processes import Bookies, bookies, free_port, until
from tests.integration.test_gateways import Gateway

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bookies]:
    with bookies(tmp_path_factory.mktemp("pair")) as found:
        yield found


@contextmanager
def pair(cluster: Bookies, namespace: str) -> Iterator[tuple[Gateway, Gateway]]:
    """One that serves, one that stands by."""
    both: list[Gateway] = []
    try:
        for name, told in (("first", "serves namespace"), ("second", "stands by")):
            both.append(Gateway(cluster, f"{namespace}-{name}", "--namespace", namespace))
            both[-1].process.until_said(told)
        yield both[0], both[1]
    finally:
        for gateway in both:
            gateway.process.kill()


def role(gateway: Gateway) -> str:
    fields = gateway.health()
    return str(fields["role"]) if fields else "gone"


@pytest.mark.rule("S12")
def test_one_crash_is_one_switch(cluster: Bookies) -> None:
    """A gateway that came back took the namespace from the one that stood in for it: two switches for one crash."""
    with pair(cluster, "crash") as (first, second):
        assert first.make("/a")
        first.process.kill()
        assert second.make("/b"), "held until it had taken over, then done"
        epoch = second.health()["epoch"]
        first.process.start()
        first.process.until_said(re.escape(f"which the gateway at 127.0.0.1:{second.port} owns"))
        assert role(first) == "standby"
        assert first.ask("/c", "MKDIRS", "PUT")[0] == 403
        assert second.names() == ["a", "b"]
        assert second.health()["epoch"] == epoch
        second.process.stop()
        assert first.make("/c")
        assert first.names() == ["a", "b", "c"]


@pytest.mark.rule("S12")
def test_who_cannot_listen_takes_nothing_from_who_can(cluster: Bookies) -> None:
    """The namespace was claimed before the port was bound: a second gateway on a port in use ended the session of the
    first, and then itself."""
    with pair(cluster, "port") as (first, second):
        before = first.health()["epoch"]
        third = Gateway(cluster, "port-third", "--namespace", "port", "--take-over", port=second.port)
        assert third.process.wait() == 1
        assert f"cannot listen at 127.0.0.1:{second.port}: Address already in use; " in third.process.said
        assert "Errno" not in third.process.said
        assert first.make("/a")
        assert (first.health()["epoch"], role(second)) == (before, "standby")


@pytest.mark.rule("S11", "S12")
def test_in_a_script_a_living_owner_is_named_and_taken_over_only_when_told(cluster: Bookies) -> None:
    with pair(cluster, "script") as (first, second):
        listen = f"127.0.0.1:{free_port()}"
        told = f"the gateway at 127.0.0.1:{first.port} owns this namespace"
        service = spark_wal.checkpoint_service(cluster.uri, namespace="script", listen=listen)
        with pytest.raises(NamespaceOwnedError, match=told), service:
            pass
        assert first.make("/a")
        with spark_wal.checkpoint_service(cluster.uri, namespace="script", listen=listen, take_over=True) as wal:
            assert wal.address == listen
            first.process.until_said(re.escape(f"the gateway at {listen} took the namespace over"))
            assert first.ask("/b", "MKDIRS", "PUT")[0] == 403
        assert until(lambda: first.make("/b") or second.make("/b"), 30)


# -- Hadoop's client ---------------------------------------------------------------------------------------

pyspark = importlib.util.find_spec("pyspark")


@contextmanager
def hadoop(settings: dict[str, str]) -> Iterator[tuple[Any, Any]]:
    """A JVM with PySpark's jars: (its classes, a configuration)."""
    from py4j.java_gateway import GatewayParameters, JavaGateway

    from bookkeeper.launchers.java import find_java

    assert pyspark is not None and pyspark.origin is not None
    jars = Path(pyspark.origin).parent / "jars"
    flags = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{jars}/*"]
    command = [find_java().executable, *flags, "py4j.GatewayServer", "--die-on-broken-pipe", "0"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert process.stdout is not None
        java = JavaGateway(gateway_parameters=GatewayParameters(port=int(process.stdout.readline())))
        configuration = java.jvm.org.apache.hadoop.conf.Configuration(False)
        for name, value in settings.items():
            configuration.set(name, value)
        yield java.jvm, configuration
        java.shutdown()
    finally:
        process.kill()
        process.communicate()


@pytest.mark.spark
@pytest.mark.skipif(pyspark is None, reason="no PySpark")
@pytest.mark.rule("S12")
def test_hadoops_client_that_knows_a_pair_creates_through_every_fail_over(cluster: Bookies) -> None:
    """None of 850 creates came through: the gateway that stood by answered the first step with a redirect to itself.
    And after a kill the client was sent back and forth between the dead one and the other until it gave up."""
    from py4j.protocol import Py4JJavaError

    with pair(cluster, "hadoop") as gateways:
        addresses = [f"127.0.0.1:{gateway.port}" for gateway in reversed(gateways)]  # who stands by is asked first
        settings = spark_conf("webhdfs://ckpt/", gateways=addresses)
        with hadoop({name.removeprefix("spark.hadoop."): value for name, value in settings.items()}) as (jvm, conf):
            uri = jvm.java.net.URI("webhdfs://ckpt/")
            open_files = jvm.org.apache.hadoop.fs.FileSystem.newInstance
            old = open_files(uri, conf)  # asks the one that answered it last; a new one begins with the first
            failed: dict[int, str] = {}

            def create(number: int, files: Any) -> None:
                try:
                    stream = files.create(jvm.org.apache.hadoop.fs.Path(f"/d/{number}"), False)
                    stream.write(bytearray(b"bytes"))
                    stream.close()
                except Py4JJavaError as error:
                    failed[number] = str(error.java_exception)

            for first in (0, 9):
                for number, files in enumerate([old] * 5 + [open_files(uri, conf)] * 3, first):
                    create(number, files)
                owner = next(gateway for gateway in gateways if role(gateway) == "owner")
                owner.process.kill()
                create(first + 8, old)  # in the middle of the fail-over
                owner.process.start().until_said("stands by")
        assert failed == {}
        final = [gateway.names("/d") for gateway in gateways if role(gateway) == "owner"]
    assert final == [sorted(str(number) for number in range(18))]
