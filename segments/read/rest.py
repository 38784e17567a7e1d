"""A reader at a stream's end, where nothing happens: it has no ledger open, and waits for a hint to open it again.

What remains is one long poll at one bookie, and two watches of metadata. So ten thousand streams can be followed by one
process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final

from segments.read.segment_feed import SegmentFeed
from segments.read.stream_source import StreamSource

REST_LOOKS: Final = 10
"""A resting reader looks at its ledger by itself ten times less often than one that waits at an open one."""


class Rest:
    """One rest, from the moment at which ``feed`` was read to its confirmed end. Close it."""

    __slots__ = ("_chain", "_quiet", "_told", "_waiter")

    def __init__(self, source: StreamSource, feed: SegmentFeed, look_s: float) -> None:
        self._chain = source.chain
        self._told = False
        self._waiter: asyncio.Future[None] | None = None
        """Of the present wait. A wait that ends by time or cancellation cancels it, so each has its own."""
        handle = feed.handle
        self._quiet = source.client.quiet_ledgers.watch(
            handle.id,
            handle.metadata,
            feed.next_entry - 1,
            self._tell,
            asyncio.get_running_loop().time() + REST_LOOKS * look_s,
        )

    @property
    def is_over(self) -> bool:
        """Whether there is a reason to open the ledger again."""
        return self._told or self._chain.is_doubtful

    def wait(self, until: float) -> Awaitable[None]:
        """Wait until the rest is over, or the loop's time is ``until``."""
        self._waiter = asyncio.get_running_loop().create_future()
        return self._chain.changed_or(self._waiter, until)

    def close(self) -> None:
        """End the rest. Idempotent."""
        self._quiet.close()

    def _tell(self) -> None:
        self._told = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
