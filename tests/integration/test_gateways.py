"""Two gateways on one namespace: a lease tells whom to ask, the journal's fence keeps it safe."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bookkeeper.launchers.machine_speed import stretch
from examples.demo_kit.pause import pause
from tests.integration.processes import Bookies, Process, bookies, free_port, until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]


class Gateway:
    """``bk gateway webhdfs`` as a process, asked over HTTP."""

    def __init__(self, cluster: Bookies, name: str, *more: str, port: int = 0) -> None:
        self.port = port or free_port()
        words = ("gateway", "webhdfs", "--metadata", cluster.uri, "--listen", f"127.0.0.1:{self.port}", *more)
        self.process = Process(name, cluster.home, *words).start()

    def ask(self, path: str, op: str, method: str = "GET", timeout_s: float = 10.0) -> tuple[int, bytes]:
        """Status and body; status 0: no answer at all."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_s * stretch())
        try:
            connection.request(method, f"/webhdfs/v1{path}?op={op}")
            reply = connection.getresponse()
            return reply.status, reply.read()
        except OSError:
            return 0, b""
        finally:
            connection.close()

    def make(self, path: str) -> bool:
        status, body = self.ask(path, "MKDIRS", "PUT")
        return status == 200 and json.loads(body)["boolean"] is True

    def names(self, path: str = "/") -> list[str] | None:
        """What lies in a directory; None: it does not answer that now."""
        status, body = self.ask(path, "LISTSTATUS")
        if status != 200:
            return None
        return [entry["pathSuffix"] for entry in json.loads(body)["FileStatuses"]["FileStatus"]]

    def health(self) -> dict[str, Any]:
        """What /health says of it; nothing if it does not answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10 * stretch())
        try:
            connection.request("GET", "/health")
            fields: dict[str, Any] = json.loads(connection.getresponse().read())
            return fields
        except OSError:
            return {}
        finally:
            connection.close()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Bookies]:
    with bookies(tmp_path) as found:
        yield found


@pytest.mark.rule("Z2", "S3")
def test_a_gateway_that_slept_through_its_lease_shows_and_changes_nothing_old(cluster: Bookies) -> None:
    first = Gateway(cluster, "first")
    try:
        until(lambda: first.make("/a"), 30, lambda: first.process.said)
        asyncio.run(pause(first.process.pause, first.process.resume, cluster.uri))
        second = Gateway(cluster, "second")
        try:
            until(lambda: second.make("/b"), 60, lambda: second.process.said)
            assert until(second.names, 30) == ["a", "b"]
            first.process.resume()
            seen = first.names()
            assert seen in (None, ["a", "b"]), "an old picture was shown"
            status, body = first.ask("/c", "MKDIRS", "PUT")
            assert second.process.running
            found = until(lambda: second.names() or first.names(), 30)
            if status == 200:
                assert json.loads(body)["boolean"] is True
                assert found == ["a", "b", "c"]
            else:  # refused; or not answered in time, and nobody knows
                assert found == ["a", "b"] or (status == 0 and found == ["a", "b", "c"])
        finally:
            second.process.kill()
        names = until(first.names, 60, lambda: first.process.said)
        assert names is not None and names[:2] == ["a", "b"], "the one that is left takes over with all of it"
    finally:
        first.process.resume()
        first.process.kill()
