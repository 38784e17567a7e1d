"""Wait for a cluster that is starting, append one entry, print how long ago it was begun.

python -m benchmarks.first_append URI
"""

from __future__ import annotations

import asyncio
import os
import sys
import time

from bookkeeper import BookKeeper
from bookkeeper.errors import BookKeeperError
from bookkeeper.real import run

PATIENCE_S = 30.0


async def append(uri: str) -> float:
    """Seconds from ``BK_BENCH_BEGAN`` (a monotonic time) to the first durable append."""
    began = float(os.environ["BK_BENCH_BEGAN"])
    while True:
        try:
            async with BookKeeper.connect(uri) as bk, await bk.create_ledger() as writer:
                await writer.append(b"first")
                return time.monotonic() - began
        except (BookKeeperError, OSError):
            if time.monotonic() - began > PATIENCE_S:
                raise
            await asyncio.sleep(0.02)


if __name__ == "__main__":
    print(run(append(sys.argv[1])))
