"""Bounds how many bytes of files' tails are copied at a time while they move to blobs: a tail that moves is in memory
twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


class TailMoves:
    """The moves of one owner. Those who wait longest come first."""

    def __init__(self, bytes_max: int) -> None:
        """``bytes_max``: of all moves at a time; a single one may have more."""
        self.bytes_max = bytes_max
        self.bytes = 0
        """Of the moves that go on."""
        self._turn = asyncio.Lock()
        self._ended = asyncio.Event()

    @asynccontextmanager
    async def room(self, size: Callable[[], int]) -> AsyncIterator[None]:
        """Wait until a move of so many bytes may begin. ``size`` is asked again: a tail grows while it waits."""
        async with self._turn:
            while self.bytes and self.bytes + size() > self.bytes_max:
                self._ended.clear()
                await self._ended.wait()
            taken = size()
            self.bytes += taken
        try:
            yield
        finally:
            self.bytes -= taken
            self._ended.set()
