"""Apache's HTTP server, asked what :mod:`tests.interop.http_routes.exchanges` lists.

``python -m tests.interop.http_routes.capture`` starts ZooKeeper and two of Apache's bookies, one of them with its HTTP
server, and writes the replies into ``replies/`` beside this file. Tests compare ours with these files, and
``tests/interop/test_http_routes.py`` compares the files with Apache's server anew.
"""

from __future__ import annotations

import http.client
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from bookkeeper import BookKeeper
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.launchers.zookeeper import ZooKeeperServer, free_port
from bookkeeper.real import run
from examples.apache_servers import ApacheBookie
from examples.apache_servers.jars import VERSION, cache_directory, fetch_jars
from examples.apache_servers.process import JavaProcess
from tests.integration.processes import until_async
from tests.interop.apache_shell import apache_init
from tests.interop.http_routes.exchanges import GROUPS, Exchange, Reply, as_shown

REPLIES: Final = Path(__file__).parent / "replies"
FIRST_LEDGER: Final = 70_001
NO_LEDGER: Final = 9_999_999_999
_TIMEOUT_S: Final = 60.0


def http_jars() -> str:
    """The class path of Apache's HTTP server; the first call on a machine downloads it. Raises: ConfigError."""
    pom = (Path(__file__).parent / "pom.xml").read_bytes()
    cache = cache_directory(os.environ).with_name(f"apache-http-{VERSION}")
    return fetch_jars("Apache BookKeeper's HTTP server", pom, cache, f"vertx-http-server-{VERSION}.jar", os.environ)


class ApacheHttpBookie(ApacheBookie):
    """A bookie of Apache's with its HTTP server, its auditor and its metrics."""

    def __init__(self, directory: Path, uri: str) -> None:
        self.http_port = free_port()
        settings: dict[str, object] = {
            "httpServerEnabled": True,
            "httpServerPort": self.http_port,
            "httpServerHost": "127.0.0.1",
            "httpServerClass": "org.apache.bookkeeper.http.vertx.VertxHttpServer",
            "statsProviderClass": "org.apache.bookkeeper.stats.prometheus.PrometheusMetricsProvider",
            "prometheusStatsHttpEnable": False,
            "autoRecoveryDaemonEnabled": True,
            "lostBookieRecoveryDelay": 0,
        }
        super().__init__(directory, uri, settings=settings)
        at = self.command.index("-cp") + 1
        class_path = os.pathsep.join((self.command[at], http_jars()))
        self.command = (*self.command[:at], class_path, *self.command[at + 1 :])
        self.process = JavaProcess("bookie", self.directory, self.command)

    def serves(self) -> bool:
        try:
            return super().serves() and ask(self.http_port, Exchange("GET", "/heartbeat"), {}).status == 200
        except OSError:
            return False


def ask(port: int, exchange: Exchange, names: Mapping[str, str], token: str | None = None) -> Reply:
    """Send one request to 127.0.0.1 and return what comes back."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_S * stretch())
    try:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        if exchange.body is not None:
            headers["Content-Type"] = "application/json"
        target = exchange.target
        for name, value in names.items():
            target = target.replace(f"{{{name}}}", value)
        body = None if exchange.body is None else exchange.body.encode()
        connection.request(exchange.method, target, body, headers)
        answer = connection.getresponse()
        return Reply(answer.status, answer.headers.get("Content-Type"), answer.read().decode("utf-8", "replace"))
    finally:
        connection.close()


async def furnish(bk: BookKeeper, bookies: Mapping[str, str]) -> dict[str, str]:
    """Make the ledgers that the requests name; the one that is closed is marked as under-replicated, on ``other``."""
    await until_async(lambda: set(bookies.values()) <= set(bk.services.watcher.writable), what="both bookies")
    ledgers: dict[str, str] = {}
    for at, name in enumerate(("closed", "open", "doomed")):
        writer = await bk.create_ledger(
            ensemble=2,
            write_quorum=2,
            ack_quorum=2,
            password=b"secret",
            custom_metadata={"made by": b"us"},
            advanced=True,
            ledger_id=FIRST_LEDGER + at,
        )
        for number in range(3):
            await writer.append_at(number, b"entry %d" % number)
        if name != "open":
            await writer.close()
        ledgers[name] = str(writer.id)
    return {**ledgers, "none": str(NO_LEDGER), **bookies}


async def mark(bk: BookKeeper, names: Mapping[str, str]) -> None:
    """Mark the closed ledger as under-replicated: the other bookie lacks entries."""
    marks = bk.metadata_store.under_replication
    await marks.mark(LedgerId(int(names["closed"])), [BookieId(names["other"])], 1_700_000_000_000)


@contextmanager
def apaches_server(directory: Path) -> Iterator[tuple[int, str, dict[str, str]]]:
    """Two of Apache's bookies: the port of the HTTP server, the cluster's address, and what the requests name."""
    with ZooKeeperServer(directory / "zookeeper") as zookeeper:
        uri = f"zk://{zookeeper.address}/ledgers"
        apache_init(uri)
        bookie, other = ApacheHttpBookie(directory / "bookie", uri), ApacheBookie(directory / "other", uri)
        try:
            for each in (bookie.launch(), other.launch()):
                each.await_serving()
            yield bookie.http_port, uri, {"bookie": bookie.bookie_id, "other": other.bookie_id}
        finally:
            bookie.stop()
            other.stop()


def captured(directory: Path) -> dict[str, dict[str, Any]]:
    """Ask Apache's server everything. Returns the replies by group and request."""
    with apaches_server(directory) as (port, uri, bookies):

        async def in_cluster(work: Any) -> Any:
            async with BookKeeper.connect(uri) as bk:
                return await work(bk)

        found: dict[str, dict[str, Any]] = {}
        names = run(in_cluster(lambda bk: furnish(bk, bookies))) | {"directory": str(directory)}
        for group, exchanges in GROUPS.items():
            replies = found[group] = {}
            for exchange in exchanges:
                replies[exchange.name] = as_shown(ask(port, exchange, names), names)
                if exchange.target.endswith("status?enabled=false"):
                    run(in_cluster(lambda bk: mark(bk, names)))
        return found


def main() -> None:
    """Write the files."""
    REPLIES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bookkeeper-http.") as temporary:
        for group, replies in captured(Path(temporary)).items():
            (REPLIES / f"{group}.json").write_text(json.dumps(replies, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
