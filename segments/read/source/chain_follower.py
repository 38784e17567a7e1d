"""A stream's node as last read, shared by all readers of the stream in this process.

The node is watched while there are readers. A reported change makes the value stale; its next user reads it again.
"""

from __future__ import annotations

import asyncio
from math import inf

from bookkeeper.errors import BookKeeperError
from bookkeeper.meta.store import Watch
from segments.chain import StreamChain, StreamHead
from segments.error_translation import stream_error


class ChainFollower:
    """A cache of one stream's node. Without users it has no watch. ``known`` is the node as another process read it; it
    is valid until a change is reported, and always if it is ``pinned``."""

    __slots__ = ("_node", "_pinned", "_stale", "_users", "_waiters", "_watch", "known", "value")

    def __init__(self, node: StreamHead, known: StreamChain | None = None, *, pinned: bool = False) -> None:
        self._node = node
        self._pinned = pinned
        self.known = known
        self._users = 0
        self._watch: Watch | None = None
        self._waiters: dict[asyncio.Future[None], None] = {}
        self._stale = True
        self.value: StreamChain | None = None
        """The node as last read; None before that."""

    def acquire(self) -> None:
        """Begin to follow the node. Each call needs one :meth:`release`."""
        self._users += 1
        if self._watch is None:
            self.value, self._stale = self.known, self.known is None
            self._watch = self._node.watch(self._on_changed)

    def release(self) -> None:
        """End one use."""
        self._users -= 1
        if self._users == 0 and self._watch is not None:
            self._watch.close()
            self._watch, self.value, self._stale = None, None, True

    @property
    def is_stale(self) -> bool:
        """Whether the node may have changed since it was read."""
        return self._stale or self._watch is None

    def invalidate(self) -> None:
        """Have the next user read the node again."""
        self._on_changed()

    async def current(self, *, fresh: bool = False) -> StreamChain:
        """The node: the cached one if no change was reported; otherwise, and with ``fresh``, it is read.

        Raises:
            StreamNotFoundError: the stream was deleted. StreamMetadataError: the store does not answer.
        """
        if self._pinned and self.known is not None:
            return self.known
        if self.value is not None and not fresh and not self.is_stale:
            return self.value
        self._stale = False
        try:
            value, _ = await self._node.read()
        except BookKeeperError as error:
            self._stale = True
            text = f"reading the node of stream {self._node.name}"
            raise stream_error(error, text, self._node.name) from error
        except BaseException:
            self._stale = True
            raise
        if self._watch is not None:
            self.value = value
        return value

    async def changed(self, until: float | None) -> None:
        """Wait until the node may have changed, or the loop's time is ``until``."""
        if self._stale:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        await self.changed_or(waiter, until)

    async def changed_or(self, waiter: asyncio.Future[None], until: float | None) -> None:
        """Wait until the node may have changed, ``waiter`` is done, or the loop's time is ``until``."""
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
        self._stale = True
        self.wake()


def _end(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
