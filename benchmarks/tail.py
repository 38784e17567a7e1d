"""How soon a long-polling reader sees an entry of a writer that then falls silent.

python -m benchmarks.tail URI
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from statistics import median

from bookkeeper import BookKeeper
from bookkeeper.real import run

ENTRIES = 300
PAUSE_S = 0.01


async def measure(uri: str) -> dict[str, float]:
    """Medians in microseconds: of the add, and from the add's call to the entry in the reader's hand."""
    seen: list[float] = []
    async with BookKeeper.connect(uri) as bk, BookKeeper.connect(uri) as other:
        writer = await bk.create_ledger()
        await writer.append(bytes(8))
        async with await other.open_ledger(writer.id, recovery=False) as reader:

            async def follow() -> None:
                async for entry in reader.tail():
                    began = float(entry.payload.decode() or 0) if entry.payload[:1] != b"\0" else 0.0
                    if began:
                        seen.append(time.perf_counter() - began)

            follower = asyncio.create_task(follow())
            adds = []
            for _ in range(ENTRIES):
                await asyncio.sleep(PAUSE_S)
                began = time.perf_counter()
                await writer.append(repr(began).encode())
                adds.append(time.perf_counter() - began)
            await asyncio.sleep(PAUSE_S)
            await writer.close()
            await follower
    return {"add_us": median(adds) * 1e6, "seen_us": median(seen) * 1e6, "entries": len(seen)}


if __name__ == "__main__":
    print(json.dumps(run(measure(sys.argv[1]))))
