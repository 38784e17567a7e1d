"""What a process takes that follows many streams in which nothing happens. Prints one JSON line.

python -m benchmarks.stream_tails URI [STREAMS]
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import time
from typing import Any, Final

from benchmarks.processes import resident_mb
from bookkeeper import BookKeeper
from bookkeeper.real import run
from segments.namespace import StreamNamespace

STREAMS: Final = 2_000
"""As many as ``python -m benchmarks streams`` takes; the goal is for 10,000."""
_AT_ONCE: Final = 16
_OPENED_AT_ONCE: Final = 200
_REST_S: Final = 120.0


async def make(uri: str, count: int) -> list[str]:
    """Streams with one record each and an open segment, as dead writers leave them. Returns their names."""
    limit = asyncio.Semaphore(_AT_ONCE)
    names = [f"tail-{time.time_ns()}-{number:06}" for number in range(count)]
    async with BookKeeper.connect(uri) as client:
        namespace = StreamNamespace(client)

        async def one(name: str) -> None:
            async with limit:
                writer = await (await namespace.create(name)).writer()
                await writer.append(bytes(100))
                await writer.commit()
                await writer.flush()
                await writer.abort()

        await asyncio.gather(*map(one, names))
    return names


async def follow(uri: str, names: list[str]) -> dict[str, Any]:
    """Follow them all, each by a task that waits for its next record, until nothing is left to do but to wait."""
    async with BookKeeper.connect(uri) as client:
        namespace = StreamNamespace(client)
        seen: list[None] = []

        async def one(name: str) -> None:
            async with (await namespace.open(name)).read(follow=True) as reader:
                await reader.next()
                seen.append(None)
                await reader.next()

        tasks = [asyncio.create_task(one(names[0]))]
        await _until(seen, 1)
        gc.collect()
        before = resident_mb([os.getpid()])
        for start in range(1, len(names), _OPENED_AT_ONCE):
            tasks += [asyncio.create_task(one(name)) for name in names[start : start + _OPENED_AT_ONCE]]
            await _until(seen, len(tasks))
        deadline = time.monotonic() + _REST_S
        while len(client.quiet_ledgers) < len(names) and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.5)
        gc.collect()
        after = resident_mb([os.getpid()])
        resting = len(client.quiet_ledgers)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    each_kb = (after - before) / max(1, len(names) - 1) * 1000
    return {"streams": len(names), "resting": resting, "mb": after, "before_mb": before, "each_kb": each_kb}


async def _until(seen: list[None], count: int) -> None:
    while len(seen) < count:  # noqa: ASYNC110
        await asyncio.sleep(0.02)


def main() -> None:
    """Make them in one life of the client, follow them in the next."""
    uri, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else STREAMS
    names = run(make(uri, count))
    print(json.dumps({"tails": run(follow(uri, names))}))


if __name__ == "__main__":
    main()
