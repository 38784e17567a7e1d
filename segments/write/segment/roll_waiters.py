"""Those who asked for a roll, and wait until the segment is completed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from segments.chain import StreamSegment
from segments.errors import StreamError


class RollWaiters:
    """Futures of one writer. Each gets the segment that ended, or why none did."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[StreamSegment]] = []

    def add(self, roller: asyncio.Future[StreamSegment]) -> None:
        """One more."""
        self._waiting.append(roller)

    def done(self, segment: StreamSegment) -> None:
        """The segment ended."""
        for roller in self._taken():
            roller.set_result(segment)

    def fail(self, error: Callable[[], StreamError]) -> None:
        """It goes on, or nobody knows; each gets an error of its own."""
        for roller in self._taken():
            roller.set_exception(error())

    def _taken(self) -> list[asyncio.Future[StreamSegment]]:
        waiting, self._waiting = self._waiting, []
        return [roller for roller in waiting if not roller.done()]
