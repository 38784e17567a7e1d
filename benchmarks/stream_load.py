"""Load on a stream, and the same bytes on a bare ledger in the same run, round by round. Prints one JSON line.

python -m benchmarks.stream_load URI [ROW...]
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable
from statistics import median
from typing import Any, Final

from benchmarks.ledger_load import ClosedLoop
from bookkeeper import BookKeeper
from bookkeeper.real import run
from segments.config import RollPolicy, StreamConfig
from segments.namespace import StreamNamespace
from segments.record import StoredRecord
from segments.stream import Stream
from segments.write.writer import Writer

ROUNDS: Final = 3
VALUE: Final = bytes(range(256)) * 4
SMALL: Final = bytes(100)
BATCH: Final = 1000
READ_BATCHES: Final = 200
SINGLES: Final = 5_000
CONFIG: Final = StreamConfig(roll=RollPolicy(max_bytes=0))
WINDOWS: Final = {1: 2_000, 100: 40_000, 1000: 80_000}
"""Appends in flight -> records of a round."""


async def closed_loop(
    append: Callable[[bytes], asyncio.Future[Any]], count: int, window: int, value: bytes = VALUE
) -> dict[str, float]:
    """Records a second, percentiles in microseconds, and this process's CPU time of a record."""
    loop = ClosedLoop(_Appender(append), value, count, window)  # type: ignore[arg-type]
    cpu, began = _cpu(), time.perf_counter()
    spans = await loop.run()
    wall, cpu = time.perf_counter() - began, _cpu() - cpu
    ordered = sorted(spans)
    return {
        "per_s": count / wall,
        "p50_us": ordered[count // 2] * 1e6,
        "p99_us": ordered[count * 99 // 100] * 1e6,
        "cpu_us": cpu / count * 1e6,
    }


class _Appender:
    def __init__(self, append: Callable[[bytes], asyncio.Future[Any]]) -> None:
        self.append_nowait = append


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def windows(client: BookKeeper, writer: Writer) -> dict[str, Any]:
    """1 KB records one by one, so many in flight: a bare ledger, then the stream, ROUNDS times."""
    figures: dict[str, Any] = {}
    for window, count in WINDOWS.items():
        rounds: dict[str, list[dict[str, float]]] = {"ledger": [], "stream": []}
        async with await client.create_ledger() as ledger:
            for append in (ledger.append_nowait, writer.append_nowait):
                await closed_loop(append, max(count // 10, 500), window)
            for _ in range(ROUNDS):
                rounds["ledger"].append(await closed_loop(ledger.append_nowait, count, window))
                rounds["stream"].append(await closed_loop(writer.append_nowait, count, window))
        figures[f"window {window}"] = {name: middle(each) for name, each in rounds.items()}
    return figures


async def batches(client: BookKeeper, writer: Writer) -> dict[str, Any]:
    """100-byte records by append_batch, a thousand at a time, four batches in flight."""
    values = [SMALL] * BATCH
    rounds = []
    for number in range(ROUNDS + 1):
        count = 100 if number == 0 else 600
        waiting: deque[asyncio.Future[Any]] = deque()
        cpu, began = _cpu(), time.perf_counter()
        for _ in range(count):
            waiting.append(writer.append_batch_nowait(values))
            if len(waiting) > 8:
                await waiting.popleft()
        await asyncio.gather(*waiting)
        wall = time.perf_counter() - began
        if number:
            rounds.append({"per_s": count * BATCH / wall, "cpu_us": (_cpu() - cpu) / count / BATCH * 1e6})
    return {"batches": middle(rounds)}


async def reading(client: BookKeeper, writer: Writer) -> dict[str, Any]:
    """A catch-up read of a completed segment of 1 KB records: its ledger's batches, its records, its columns."""
    stream = await StreamNamespace(client).create(f"read-{time.time_ns()}", config=CONFIG)
    async with stream.writer() as own:
        for _ in range(READ_BATCHES):
            await own.append_batch([VALUE] * 256)
    (segment,) = await stream.segments()
    figures: dict[str, list[dict[str, float]]] = {"ledger": [], "records": [], "arrow": []}
    for _ in range(ROUNDS):
        began, size = time.perf_counter(), 0
        async with await client.open_ledger(segment.ledger_id, None, recovery=False) as ledger:
            async for _, payloads in ledger.read_batches(0, ledger.last_add_confirmed):
                size += sum(map(len, payloads))
        figures["ledger"].append({"bytes_per_s": size / (time.perf_counter() - began)})
        began, records = time.perf_counter(), 0
        async with stream.read(follow=False) as reader:
            async for batch in reader.batches():
                records += len(batch.values())
        wall = time.perf_counter() - began
        figures["records"].append({"bytes_per_s": size / wall, "per_s": records / wall})
        began, records = time.perf_counter(), 0
        async with stream.read(follow=False) as reader:
            async for arrow in reader.arrow_batches():
                records += arrow.num_rows
        wall = time.perf_counter() - began
        figures["arrow"].append({"bytes_per_s": size / wall, "per_s": records / wall})
    return {f"catch-up, {name}": middle(rounds) for name, rounds in figures.items()}


async def singles(client: BookKeeper, writer: Writer) -> dict[str, Any]:
    """A catch-up read of entries that hold one record of 1 KB each, as a writer leaves them that waits for each: the
    ledger's batches; the records, iterated; the records, asked for one at a time; and these where an entry has 256."""
    stream = await StreamNamespace(client).create(f"singles-{time.time_ns()}", config=CONFIG)
    async with stream.writer() as own:
        for _ in range(SINGLES):
            await own.append(VALUE)
    full = await StreamNamespace(client).create(f"full-{time.time_ns()}", config=CONFIG)
    async with full.writer() as own:
        for _ in range(20):
            await own.append_batch([VALUE] * 256)
    (segment,) = await stream.segments()

    async def ledger() -> int:
        async with await client.open_ledger(segment.ledger_id, None, recovery=False) as ledger:
            return (
                sum([len(payloads) async for _, payloads in ledger.read_batches(0, ledger.last_add_confirmed)]) - 1
            )  # the footer

    async def iterated() -> int:
        async with stream.read(follow=False) as reader:
            return len([record.value async for record in reader if isinstance(record, StoredRecord)])

    async def one_at_a_time(read: Stream = stream) -> int:
        records = 0
        async with read.read(follow=False) as reader:
            while await reader.next() is not None:
                records += 1
        return records

    async def of_full_entries() -> int:
        return await one_at_a_time(full)

    ways = {"ledger": ledger, "iterated": iterated, "next": one_at_a_time, "next of 256": of_full_entries}
    figures: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
    for _ in range(2 * ROUNDS + 1):
        for name, way in ways.items():
            cpu, began = _cpu(), time.perf_counter()
            records = await way()
            wall = time.perf_counter() - began
            figures[name].append({"per_s": records / wall, "cpu_us": (_cpu() - cpu) / records * 1e6})
    return {f"single, {name}": middle(rounds) for name, rounds in figures.items()}


async def take_over(client: BookKeeper, writer: Writer) -> dict[str, Any]:
    """From the decision to take a stream over, whose owner is dead, to the first acknowledgement: after 20 MB."""
    rounds = []
    for _ in range(ROUNDS):
        async with BookKeeper.connect(_uri(sys.argv)) as other:
            stream = await StreamNamespace(client).create(f"over-{time.time_ns()}", config=CONFIG)
            dead = await (await StreamNamespace(other).open(stream.name)).writer()
            for _ in range(80):
                await dead.append_batch([VALUE] * 256)
        began = time.perf_counter()
        successor = await stream.writer()
        await successor.append(VALUE)
        rounds.append({"ms": (time.perf_counter() - began) * 1e3})
        await successor.close()
    return {"take-over": middle(rounds)}


def _uri(arguments: list[str]) -> str:
    return arguments[1]


def middle(rounds: list[dict[str, float]]) -> dict[str, float]:
    """The median of each figure."""
    return {name: median(each[name] for each in rounds) for name in rounds[0]}


ROWS: Final[dict[str, Callable[[BookKeeper, Writer], Awaitable[dict[str, Any]]]]] = {
    "windows": windows,
    "batches": batches,
    "reading": reading,
    "singles": singles,
    "take_over": take_over,
}


async def measure(uri: str, wanted: list[str]) -> dict[str, Any]:
    """All rows, or those wanted."""
    figures: dict[str, Any] = {}
    async with BookKeeper.connect(uri) as client:
        stream = await StreamNamespace(client).create(f"load-{time.time_ns()}", config=CONFIG)
        async with stream.writer() as writer:
            for name, row in ROWS.items():
                if not wanted or name in wanted:
                    figures |= await row(client, writer)
    return figures


if __name__ == "__main__":
    print(json.dumps(run(measure(sys.argv[1], sys.argv[2:]))))
