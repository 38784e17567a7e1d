"""A cluster under load, with autorecovery and gateways, and a Prometheus that scrapes it as ``deploy/`` says."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import signal
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from bookkeeper import BookKeeper, BookKeeperError
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.launchers.zookeeper import free_port
from examples.demo_kit.cluster import DemoCluster, listens
from examples.demo_kit.slow_machine import client_config
from examples.processes import Child, Children
from segments import StreamConfig, StreamError, remote
from tests.boards.deployed import PROMETHEUS, read_yaml
from tests.boards.prometheus import PrometheusClient

BOOKIES: Final = ("b1", "b2", "b3")
SCRAPE_S: Final = 1
_PAGE: Final = re.compile(r"http://(\S+:\d+)")


class LiveCluster:
    """Bookies, autorecovery, a gateway of each kind, and clients that use them all the time."""

    def __init__(self, directory: Path, children: Children) -> None:
        self.parts = DemoCluster(directory, children, "sqlite")
        self._directory = directory
        self._children = children
        self._ports = {name: free_port() for name in ("autorecovery", "streams", "streams-page", "spark", "prometheus")}
        self._prometheus: Child | None = None
        self.problems: list[str] = []
        """What went wrong with the load; it goes on."""

    async def start(self) -> None:
        """Start everything but the load and Prometheus. Raises: DemoError."""
        parts, ports = self.parts, self._ports
        await parts.start_metadata()
        for name in BOOKIES:
            await self.start_bookie(name)
        page = f"127.0.0.1:{ports['autorecovery']}"
        healer = await parts.start_bk("autorecovery", "autorecovery", "run", "--name", "healer", "--http", page)
        shown = f"127.0.0.1:{ports['streams-page']}"
        streams = await parts.start_gateway("streams", "grpc", ports["streams"], "--http", shown)
        spark = await parts.start_gateway("spark", "webhdfs", ports["spark"])
        for child, port in ((healer, ports["autorecovery"]), (streams, ports["streams-page"]), (spark, ports["spark"])):
            await parts.until(partial(listens, port), child.name, child)

    async def start_bookie(self, name: str) -> None:
        """Start a bookie, for the first time or again."""
        child = await self.parts.start_bookie(name)
        await child.until_said(r"serves at .*http://", f"{name} serves")

    def page_of(self, name: str) -> str:
        """HOST:PORT of a bookie's pages."""
        return str(_PAGE.findall(self.parts.bookies[name].said)[-1])

    # -- Prometheus ---------------------------------------------------------------------------------------

    def scrape_configs(self) -> list[dict[str, Any]]:
        """Those of the example, with this cluster's addresses."""
        pages = {
            "bookies": [self.page_of(name) for name in BOOKIES],
            "autorecovery": [f"127.0.0.1:{self._ports['autorecovery']}"],
            "spark-gateways": [f"127.0.0.1:{self._ports['spark']}"],
            "stream-gateways": [f"127.0.0.1:{self._ports['streams-page']}"],
        }
        found: list[dict[str, Any]] = read_yaml(PROMETHEUS / "prometheus.yml")["scrape_configs"]
        for each in found:
            each["static_configs"][0]["targets"] = pages[each["job_name"]]
        return found

    async def start_prometheus(self, program: Path) -> PrometheusClient:
        """Start it with the rules of ``deploy/``, which fire sooner here. Raises: DemoError."""
        place = self._directory / "prometheus"
        place.mkdir(exist_ok=True)
        rules = read_yaml(PROMETHEUS / "alerts.yml")
        for group in rules["groups"]:
            for rule in group["rules"]:
                rule["for"] = f"{SCRAPE_S}s"
        # JSON is YAML.
        (place / "alerts.yml").write_text(json.dumps(rules))
        self._write_config()
        address = f"127.0.0.1:{self._ports['prometheus']}"
        command = [str(program), f"--config.file={place}/prometheus.yml", f"--storage.tsdb.path={place}/data"]
        self._prometheus = child = await self._children.start(
            "prometheus", [*command, f"--web.listen-address={address}"]
        )
        await self.parts.until(lambda: listens(self._ports["prometheus"]), "Prometheus", child)
        return PrometheusClient(self._ports["prometheus"])

    def _write_config(self) -> None:
        times = {"scrape_interval": f"{SCRAPE_S}s", "evaluation_interval": f"{SCRAPE_S}s"}
        config = {"global": times, "rule_files": ["alerts.yml"], "scrape_configs": self.scrape_configs()}
        (self._directory / "prometheus/prometheus.yml").write_text(json.dumps(config))

    def scrape_again(self) -> None:
        """Have Prometheus look for the bookies where they are now."""
        assert self._prometheus is not None
        self._write_config()
        self._prometheus.signal(signal.SIGHUP)

    # -- load ---------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def load(self) -> AsyncIterator[None]:
        """Entries, files and records are written, read and deleted meanwhile."""
        async with BookKeeper.connect(self.parts.uri, config=client_config()) as bk:
            lanes: list[Callable[[], Awaitable[None]]] = [
                lambda: self._ledgers(bk),
                self._files,
                self._records,
            ]
            tasks = [asyncio.create_task(self._again(lane)) for lane in lanes]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _again(self, lane: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await lane()
            except (BookKeeperError, StreamError, OSError) as error:
                self.problems.append(f"{type(error).__name__}: {error}")
                await asyncio.sleep(0.2 * stretch())

    async def _ledgers(self, bk: BookKeeper) -> None:
        async with await bk.create_ledger(password=b"pw", ensemble=2, write_quorum=2, ack_quorum=2) as ledger:
            for _ in range(20):
                await asyncio.gather(*(ledger.append(bytes(2000)) for _ in range(20)))
                await asyncio.sleep(0.05)
        reader = await bk.open_ledger(ledger.id, password=b"pw")
        async with reader:
            for entry in range(0, 400, 4):
                await reader.read_entry(entry)
        await bk.delete_ledger(ledger.id, grace_s=0)

    async def _files(self) -> None:
        base = f"http://127.0.0.1:{self._ports['spark']}/webhdfs/v1"
        await asyncio.to_thread(_put, f"{base}/load/file?op=CREATE&overwrite=true&user.name=load", b"x" * 5000)
        await asyncio.to_thread(_get, f"{base}/load/file?op=OPEN&user.name=load")
        with contextlib.suppress(urllib.error.HTTPError):  # what is not there is refused, and counted
            await asyncio.to_thread(_get, f"{base}/load/none?op=GETFILESTATUS&user.name=load")
        await asyncio.sleep(0.2)

    async def _records(self) -> None:
        config = StreamConfig(ensemble=2, write_quorum=2, ack_quorum=2)
        async with remote.connect(f"grpc://127.0.0.1:{self._ports['streams']}") as namespace:
            with contextlib.suppress(StreamError):
                await namespace.create("load", config=config)
            stream = await namespace.open("load")
            async with stream.writer() as writer, asyncio.TaskGroup() as group:
                following = group.create_task(_follow(stream))
                for _ in range(100):
                    await writer.append_batch([b"record" * 20] * 10)
                    with contextlib.suppress(StreamError):
                        await namespace.open("nothing of that name")
                    await asyncio.sleep(0.1)
                following.cancel()


async def _follow(stream: Any) -> None:
    async with stream.read(follow=True, on_gap="yield") as reader:
        while True:
            await reader.next()


def _put(address: str, body: bytes) -> None:
    """Both steps: the first is answered by a redirect."""
    try:
        urllib.request.urlopen(urllib.request.Request(address, data=b"", method="PUT"))
    except urllib.error.HTTPError as redirect:
        if redirect.code != HTTPStatus.TEMPORARY_REDIRECT:
            raise
        address = redirect.headers["Location"]
    with urllib.request.urlopen(urllib.request.Request(address, data=body, method="PUT")) as reply:
        reply.read()


def _get(address: str) -> bytes:
    with urllib.request.urlopen(address) as reply:
        return bytes(reply.read())
