"""The callers of a roll, which wait until the segment is completed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from segments.chain import StreamSegment
from segments.errors import StreamError, StreamNotReadyError


class RollWaiters:
    """Futures of one writer. Each gets the segment that ended, or why none did."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[StreamSegment]] = []

    def add(self, roller: asyncio.Future[StreamSegment]) -> None:
        """Add a caller."""
        self._waiting.append(roller)

    def done(self, segment: StreamSegment) -> None:
        """The segment ended."""
        for roller in self._taken():
            roller.set_result(segment)

    def fail(self, error: Callable[[], StreamError]) -> None:
        """The roll has failed; each caller gets an error object of its own."""
        for roller in self._taken():
            roller.set_exception(error())

    def on_segment_ended(self, stream: str, number: int, ended: StreamSegment | None, goes_on_in: int) -> None:
        """A segment ended. One without a durable record is not listed (None): its records were sent again."""
        if ended is not None:
            self.done(ended)
            return
        text = (
            f"segment {number} of stream {stream} ended, and is not listed: it had no durable record, or was "
            f"truncated; the stream goes on in segment {goes_on_in}"
        )
        self.fail(lambda: StreamNotReadyError(text, stream=stream))

    def put_off(self, stream: str, number: int, again_s: float, error: StreamError) -> None:
        """The roll was postponed; the next attempt comes in ``again_s`` seconds."""
        text = (
            f"stream {stream} was not rolled, and goes on in segment {number}; the next attempt comes in "
            f"{again_s:.1f} s: {error}"
        )
        self.fail(lambda: StreamNotReadyError(text, stream=stream))

    def _taken(self) -> list[asyncio.Future[StreamSegment]]:
        waiting, self._waiting = self._waiting, []
        return [roller for roller in waiting if not roller.done()]
