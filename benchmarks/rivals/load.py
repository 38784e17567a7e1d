"""A load generator on our streams. It obeys one-line JSON commands on its standard input, and answers each by a line.

Its twins are ``Rival.java`` and ``nats/main.go``: the same commands, the same shape of load. Everything but the
fail-over goes through the library; that one goes through gateways, which own streams by a lease.

python -m benchmarks.rivals.load METADATA GATEWAY,GATEWAY
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections import deque
from typing import Any, Final

from benchmarks.stream_load import closed_loop
from bookkeeper.real import run
from segments import connect
from segments.config import RollPolicy, StreamConfig
from segments.namespace import StreamNamespace
from segments.remote import connect as connect_gateway
from segments.write.writer import Writer

CONFIG: Final = StreamConfig(roll=RollPolicy(max_bytes=0))
_WARM_S: Final = 1.0
_BATCHES: Final = 8
"""Batches in flight."""


async def obey(metadata: str, gateways: str, command: dict[str, Any]) -> dict[str, Any]:
    """Carry out one command."""
    match command.pop("op"):
        case "hello":
            return {"pid": os.getpid()}
        case "append":
            return await _append(metadata, command)
        case "catch_up":
            return await _catch_up(metadata, command)
        case "end_to_end":
            async with connect(metadata) as apart:
                return await _end_to_end(metadata, command, apart)
        case "end_to_end_inside":
            return await _end_to_end(metadata, command, None)
        case "leader":
            return {"leader": await _settle(gateways, command["topic"])}
        case "failover":
            return await _failover(gateways, command["topic"], command["kill"])
        case other:
            raise ValueError(f"unknown command {other!r}")


async def _append(metadata: str, command: dict[str, Any]) -> dict[str, float]:
    async with connect(metadata) as namespace:
        stream = await namespace.create(command["topic"], config=CONFIG)
        async with stream.writer() as writer:
            if "batch" in command:
                values = [os.urandom(command["size"])] * command["batch"]
                await _batches(writer, values, _WARM_S)
                return await _batches(writer, values, command["seconds"])
            window = command["window"]
            warm = await closed_loop(writer.append_nowait, 200 * min(window, 50), window)
            warm = await closed_loop(writer.append_nowait, int(warm["per_s"] * _WARM_S) + window, window)
            seen = await closed_loop(writer.append_nowait, int(warm["per_s"] * command["seconds"]) + window, window)
            return {"per_s": seen["per_s"], "p50_ms": seen["p50_us"] / 1e3, "p99_ms": seen["p99_us"] / 1e3}


async def _batches(writer: Writer, values: list[bytes], seconds: float) -> dict[str, float]:
    waiting: deque[tuple[float, asyncio.Future[Any]]] = deque()
    spans: list[float] = []
    began = time.perf_counter()
    until = began + seconds
    while waiting or time.perf_counter() < until:
        while len(waiting) < _BATCHES and time.perf_counter() < until:
            waiting.append((time.perf_counter(), writer.append_batch_nowait(values)))
        started, future = waiting.popleft()
        await future
        spans.append(time.perf_counter() - started)
    wall = time.perf_counter() - began
    return {"per_s": len(spans) * len(values) / wall, **_percentiles(spans)}


def _percentiles(spans: list[float]) -> dict[str, float]:
    ordered = sorted(spans)
    return {"p50_ms": ordered[len(ordered) // 2] * 1e3, "p99_ms": ordered[len(ordered) * 99 // 100] * 1e3}


async def _catch_up(metadata: str, command: dict[str, Any]) -> dict[str, float]:
    """Reads a topic that is written before, twice; the second time counts."""
    records, value = command["records"], os.urandom(1024)
    async with connect(metadata) as namespace:
        stream = await namespace.create(command["topic"], config=CONFIG)
        async with stream.writer() as writer:
            await closed_loop(writer.append_nowait, records, command["window"], value)
        wall = 0.0
        for _ in range(2):
            began, seen = time.perf_counter(), 0
            async with stream.read(follow=False) as reader:
                async for batch in reader.batches():
                    seen += len(batch.values())
            wall = time.perf_counter() - began
            if seen != records:
                raise RuntimeError(f"{seen} of {records} records were read")
        return {"per_s": records / wall}


async def _end_to_end(metadata: str, command: dict[str, Any], apart: StreamNamespace | None) -> dict[str, float]:
    """Appends by schedule; a record's latency counts from the time at which it was due.

    Args:
        apart: the reader's client; None: the writer's own, which learns of a record from the writer itself.
    """
    rate = command["rate"]
    records = rate + int(rate * command["seconds"])
    spans: list[float] = []
    async with connect(metadata) as namespace:
        stream = await namespace.create(command["topic"], config=CONFIG)
        async with stream.writer() as writer:
            read = stream if apart is None else await apart.open(command["topic"])

            async def follow() -> None:
                async with read.read(follow=True) as reader:
                    while len(spans) < records:
                        batch = await reader.next_batch()
                        now = time.perf_counter()
                        for value in batch.values():
                            spans.append(now - int.from_bytes(value[:8], "big") / 1e9)

            reader = asyncio.get_running_loop().create_task(follow())
            began = time.perf_counter() + 0.5
            rest = os.urandom(1016)
            for number in range(records):
                due = began + number / rate
                if (early := due - time.perf_counter()) > 0:
                    await asyncio.sleep(early)
                writer.append_nowait(int(due * 1e9).to_bytes(8, "big") + rest)
            await reader
    return _percentiles(spans[rate:])


async def _settle(gateways: str, topic: str) -> str:
    """Make the first gateway the owner; its address."""
    first = gateways.split(",")[0]
    async with connect_gateway(f"grpc://{first}") as namespace:
        stream = await namespace.create(topic, config=CONFIG, exist_ok=True)
        async with stream.writer() as writer:
            await writer.append(b"first")
    return first


async def _failover(gateways: str, topic: str, owner: int) -> dict[str, float]:
    """Append one at a time and kill the owner; seconds from then to the next acknowledgement."""
    value = os.urandom(1024)
    async with connect_gateway(f"grpc://{gateways}") as namespace:
        stream = await namespace.open(topic)
        async with stream.producer("load") as producer:
            until = time.perf_counter() + 2.0
            while time.perf_counter() < until:
                await producer.append(value)
            os.kill(owner, signal.SIGKILL)
            killed = time.perf_counter()
            await producer.append(value)
            return {"seconds": time.perf_counter() - killed}


def main() -> None:
    """Obey until the end of input."""
    out, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        try:
            answer = run(obey(sys.argv[1], sys.argv[2], json.loads(line)))
        except Exception as error:
            answer = {"error": repr(error)}
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main()
