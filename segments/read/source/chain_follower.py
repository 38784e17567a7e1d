"""A stream's node as last read, shared by all readers of the stream in this process.

The node is watched while anybody reads. A watch that fires makes the value doubtful; whoever needs it next reads it.
"""

from __future__ import annotations

import asyncio
from math import inf

from bookkeeper.errors import BookKeeperError
from bookkeeper.meta.store import Watch
from segments.chain import StreamChain, StreamHead
from segments.error_translation import stream_error


class ChainFollower:
    """Knows one stream's node. It costs next to nothing while nobody reads the stream. ``known`` is the node as
    somebody else knew it, which counts until a change is reported; if it is ``pinned`` it always does."""

    __slots__ = ("_doubtful", "_node", "_pinned", "_users", "_waiters", "_watch", "known", "value")

    def __init__(self, node: StreamHead, known: StreamChain | None = None, *, pinned: bool = False) -> None:
        self._node = node
        self._pinned = pinned
        self.known = known
        self._users = 0
        self._watch: Watch | None = None
        self._waiters: dict[asyncio.Future[None], None] = {}
        self._doubtful = True
        self.value: StreamChain | None = None
        """The node as last read; None before that."""

    def use(self) -> None:
        """Follow the node until ``let_go`` was called as often as this."""
        self._users += 1
        if self._watch is None:
            self.value, self._doubtful = self.known, self.known is None
            self._watch = self._node.watch(self._on_changed)

    def let_go(self) -> None:
        """End one use."""
        self._users -= 1
        if self._users == 0 and self._watch is not None:
            self._watch.close()
            self._watch, self.value, self._doubtful = None, None, True

    @property
    def is_doubtful(self) -> bool:
        """Whether the node may have changed since it was read."""
        return self._doubtful or self._watch is None

    def doubt(self) -> None:
        """Read the node again when it is needed next, although nobody reported a change."""
        self._on_changed()

    async def current(self, *, fresh: bool = False) -> StreamChain:
        """The node: the known one if nobody reported a change, otherwise, and with ``fresh``, a new reading.

        Raises:
            StreamNotFoundError: the stream was deleted. StreamMetadataError: the store does not answer.
        """
        if self._pinned and self.known is not None:
            return self.known
        if self.value is not None and not fresh and not self.is_doubtful:
            return self.value
        self._doubtful = False
        try:
            value, _ = await self._node.read()
        except BookKeeperError as error:
            self._doubtful = True
            text = f"reading the node of stream {self._node.name}"
            raise stream_error(error, text, self._node.name) from error
        except BaseException:
            self._doubtful = True
            raise
        if self._watch is not None:
            self.value = value
        return value

    async def changed(self, until: float | None) -> None:
        """Wait until the node may have changed, or the loop's time is ``until``."""
        if self._doubtful:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        await self.changed_or(waiter, until)

    async def changed_or(self, waiter: asyncio.Future[None], until: float | None) -> None:
        """Wait until the node may have changed, somebody ends ``waiter``, or the loop's time is ``until``."""
        self._waiters[waiter] = None
        timer = None if until is None or until == inf else asyncio.get_running_loop().call_at(until, _end, waiter)
        try:
            await waiter
        finally:
            self._waiters.pop(waiter, None)
            if timer is not None:
                timer.cancel()

    def wake(self) -> None:
        """End all waits, because a reader was closed."""
        for waiter in list(self._waiters):
            _end(waiter)

    def _on_changed(self) -> None:
        self._doubtful = True
        self.wake()


def _end(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
