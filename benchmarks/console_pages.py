"""``python -m benchmarks.console_pages [LEDGERS] [--zookeeper]``: how long pages of the console take with many ledgers.

The metadata of 100,000 ledgers are in a store inside this process, or in a ZooKeeper that is started for it. The
console reads them over and over, and another thread asks for pages over HTTP, a hundred times each. A page takes
what it takes from the request to its last byte; its processor time is that of the whole process, with the client in it.
"""

from __future__ import annotations

import asyncio
import resource
import statistics
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from http.client import HTTPConnection
from pathlib import Path
from typing import Final

from bookkeeper import BookKeeper
from bookkeeper.audit import NO_AUDIT
from bookkeeper.console.config import ConsoleConfig
from bookkeeper.console.service import ConsoleServer
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.launchers.zookeeper import ZooKeeperServer
from bookkeeper.ledger import LedgerMetadata, QuorumSpec
from bookkeeper.meta import Metadata, init_cluster, init_cluster_in
from bookkeeper.meta.stores.memory import MemoryCluster
from bookkeeper.metrics import Metrics
from bookkeeper.real import run, system_seams
from bookkeeper.replication.repairs.bookie_client import BorrowedCluster
from bookkeeper.seams import Seams

LEDGERS: Final = 100_000
ROUNDS: Final = 100
AT_ONCE: Final = 2000
"""Ledgers that are made side by side."""
PAGES: Final = (
    "/",
    "/ledgers",
    "/ledgers?state=closed&rows=500",
    "/ledgers?state=open&health=lost&bookie=b3",
    "/repair",
)
SPEC: Final = QuorumSpec(ensemble_size=3, write_quorum=3, ack_quorum=2)


async def _metadata(held: AsyncExitStack, seams: Seams, in_zookeeper: bool) -> Metadata:
    """A new cluster's metadata."""
    if not in_zookeeper:
        store = MemoryCluster()
        await init_cluster_in(store.connect(), seams)
        return await Metadata.over(store.connect(), seams)
    directory = held.enter_context(tempfile.TemporaryDirectory(prefix="bk-console-"))
    server = held.enter_context(ZooKeeperServer(Path(directory) / "zookeeper"))
    uri = f"zk://{server.address}/ledgers"
    await init_cluster(uri, seams)
    metadata = await Metadata.connect(uri, seams)
    held.push_async_callback(metadata.close)
    return metadata


async def main(count: int, in_zookeeper: bool) -> None:
    """Fill the store, serve, ask."""
    seams = system_seams()
    async with AsyncExitStack() as held:
        metadata = await _metadata(held, seams, in_zookeeper)

        async def make(number: int) -> None:
            names = [BookieId(f"b{1 + (number + at) % 9}") for at in range(3)]
            made = LedgerMetadata.create(SPEC, names, ctime_ms=1_700_000_000_000 + number)
            await metadata.ledgers.create(made if number % 10 == 0 else made.close(99, 100_000), LedgerId(number))

        for first in range(0, count, AT_ONCE):
            await asyncio.gather(*(make(number) for number in range(first, min(count, first + AT_ONCE))))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        client = await BookKeeper.over(BorrowedCluster(metadata, seams.net), seams=seams)
        held.push_async_callback(client.close)
        console = ConsoleServer(
            ConsoleConfig(listen="127.0.0.1:0"),
            client,
            name="benchmark",
            metadata_uri="memory:",
            metrics=Metrics(),
            audit=NO_AUDIT,
        )
        held.push_async_callback(console.close)
        await console.start()
        reading = await asyncio.to_thread(_ask_all, console.address.port, ROUNDS // 5)
        print("while the ledgers are read for the first time")
        _print(reading)
        ledgers = console._ledgers
        while ledgers.kept.value is None:  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0.1)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        print(f"\n{count} ledgers were read in {ledgers.kept.took_s:.1f} s; memory grew by {grown:.0f} MiB\n\nthen")
        _print(await asyncio.to_thread(_ask_all, console.address.port, ROUNDS))


def _ask_all(port: int, rounds: int) -> dict[str, list[tuple[float, float]]]:
    took: dict[str, list[tuple[float, float]]] = {path: [] for path in PAGES}
    for _ in range(rounds):
        for path in PAGES:
            began, used = time.perf_counter(), time.process_time()
            connection = HTTPConnection("127.0.0.1", port)
            connection.request("GET", path)
            reply = connection.getresponse()
            body = reply.read()
            assert reply.status == 200, body
            connection.close()
            took[path].append((time.perf_counter() - began, time.process_time() - used))
    return took


def _print(took: dict[str, list[tuple[float, float]]]) -> None:
    for path, pairs in took.items():
        times, used = zip(*pairs, strict=True)
        median, most, processor = (
            1000 * each for each in (statistics.median(times), max(times), statistics.median(used))
        )
        print(f"  {path:45} median {median:6.1f} ms   most {most:6.1f} ms   processor {processor:5.1f} ms")


if __name__ == "__main__":
    given = [word for word in sys.argv[1:] if word != "--zookeeper"]
    run(main(int(given[0]) if given else LEDGERS, "--zookeeper" in sys.argv))
