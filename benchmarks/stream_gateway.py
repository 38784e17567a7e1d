"""Appends through a gateway beside appends by the library, in turns. Prints one JSON line.

python -m benchmarks.stream_gateway URI HOST:PORT
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import deque
from collections.abc import Callable
from statistics import median
from typing import Any, Final

from benchmarks.stream_load import VALUE
from bookkeeper.real import run
from segments import connect
from segments.config import RollPolicy, StreamConfig
from segments.remote import connect as connect_gateway

BATCH: Final = 64
"""Records of 1 KB in each append."""
IN_FLIGHT: Final = 16
BATCHES: Final = 800
ROUNDS: Final = 3
_CONFIG: Final = StreamConfig(roll=RollPolicy(max_bytes=0))

Append = Callable[[list[bytes]], asyncio.Future[Any]]


async def batches(append: Append, count: int) -> float:
    """Append batches, so many in flight; records a second."""
    values = [VALUE] * BATCH
    waiting: deque[asyncio.Future[Any]] = deque()
    began = time.perf_counter()
    for _ in range(count):
        waiting.append(append(values))
        if len(waiting) >= IN_FLIGHT:
            await waiting.popleft()
    await asyncio.gather(*waiting)
    return count * BATCH / (time.perf_counter() - began)


async def measure(uri: str, gateway: str, count: int = BATCHES) -> dict[str, float]:
    """Medians of records a second: ``library`` and ``gateway``."""
    seen: dict[str, list[float]] = {"library": [], "gateway": []}
    name = f"gateway-{time.time_ns()}"
    async with connect(uri) as here, connect_gateway(f"grpc://{gateway}") as there:
        own = await here.create(f"{name}-own", config=_CONFIG)
        other = await there.create(name, config=_CONFIG, exist_ok=True)  # repeated until the gateway is up
        async with own.writer() as writer, other.writer() as remote:
            ways: dict[str, Append] = {
                "library": writer.append_batch_nowait,
                "gateway": remote.append_batch_nowait,
            }
            for append in ways.values():
                await batches(append, max(1, count // 5))
            for _ in range(ROUNDS):
                for way, append in ways.items():
                    seen[way].append(await batches(append, count))
    return {way: median(rates) for way, rates in seen.items()}


if __name__ == "__main__":
    print(json.dumps({"through a gateway": run(measure(sys.argv[1], sys.argv[2]))}))
