"""The memory into which connections receive: one buffer for all of a loop, and a bound for what has to wait.

A connection owns no receive buffer. It borrows the loop's for the length of one read; what is left then, the beginning
of a frame that is not complete, is copied out and kept. So connections that say nothing cost nothing, and memory is
held only for bytes that are there (P12, X31).

What is kept is bounded for all connections together (:class:`ReceiveMemory`): up to ``FREE`` bytes each are nobody's
concern, more is charged. Where the limit is reached a connection that needs more is not read, so its sender feels it by
TCP, and waits for room. It gets room for its whole frame at once, and never waits twice for one frame. One connection
at a time gets its room beyond the limit: however many frames were begun together, they end one after the other. Room
goes to whoever's address holds least, and then to who came first: an address that fills all of it keeps no other out.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from typing import Final, Protocol
from weakref import WeakKeyDictionary

RECEIVE_BUFFER: Final = 512 * 1024
"""Bytes of the buffer that a loop's connections borrow: long chunks make long runs."""

FREE: Final = 8 * 1024
"""Bytes that a connection may keep without being charged: the beginning of an ordinary frame."""

NO_LIMIT: Final = 1 << 62


class ReceivingConnection(Protocol):
    """A connection, as far as memory is concerned."""

    account: str
    """To whose account goes what it keeps: its peer's address."""

    def on_room(self, size: int) -> None:
        """So many bytes more are charged to it and may be used."""


class ReceiveMemory:
    """What the connections of one loop borrow and keep."""

    def __init__(self, limit: int = NO_LIMIT) -> None:
        self.buffer = bytearray(RECEIVE_BUFFER)
        self.view = memoryview(self.buffer)
        self.limit = limit
        self.short = limit < RECEIVE_BUFFER
        """There is less left than the largest read may bring."""
        self.held = 0
        """Bytes that are charged now."""
        self.peak = 0
        """The most that were charged since somebody set this back."""
        self._of: Counter[str] = Counter()
        self._waiting: dict[str, deque[tuple[ReceivingConnection, int]]] = {}
        """Who waits for how much more, by account."""
        self._beyond: ReceivingConnection | None = None

    @property
    def left(self) -> int:
        """Bytes that may still be charged."""
        return self.limit - self.held

    @property
    def crowded(self) -> bool:
        """Somebody waits."""
        return bool(self._waiting)

    def charge(self, holder: ReceivingConnection, size: int, *, rest: int) -> None:
        """``holder`` keeps so much more, or (negative) less, and ``rest`` in all."""
        self.held += size
        self.short = self.left < RECEIVE_BUFFER
        self.peak = max(self.peak, self.held)
        self._of[holder.account] += size
        if not rest and self._beyond is holder:
            self._beyond = None
        if size < 0:
            if not self._of[holder.account]:
                del self._of[holder.account]
            if self._waiting:
                self._wake()

    def wait(self, holder: ReceivingConnection, size: int) -> None:
        """``holder.on_room(size)``, now or later, when so many more bytes were charged to it."""
        self._waiting.setdefault(holder.account, deque()).append((holder, size))
        self._wake()

    def forget(self, holder: ReceivingConnection) -> None:
        """It has gone, and waits no longer; what it kept is charged off already."""
        line = self._waiting.get(holder.account)
        if line is not None:
            rest = deque(each for each in line if each[0] is not holder)
            if rest:
                self._waiting[holder.account] = rest
            else:
                del self._waiting[holder.account]

    def validate_state(self) -> None:
        """What must hold between any two calls. For tests."""
        assert self.held == sum(self._of.values()) and self.peak >= self.held, "the accounts do not add up"
        assert all(size >= 0 for size in self._of.values()), "an account holds less than nothing"
        assert self.short == (self.left < RECEIVE_BUFFER)
        assert all(self._waiting.values()), "an address is kept in which nobody waits"
        assert not self._waiting or self._beyond is not None, "they wait, and nobody's end will wake them"

    def _wake(self) -> None:
        while self._waiting:
            account = min(self._waiting, key=self._of.__getitem__)
            line = self._waiting[account]
            holder, size = line[0]
            if size > self.left:
                if self._beyond is not None:
                    return
                self._beyond = holder
            line.popleft()
            if not line:
                del self._waiting[account]
            self.charge(holder, size, rest=size)
            holder.on_room(size)


_of_loops: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, ReceiveMemory]] = WeakKeyDictionary()


def of_loop(loop: asyncio.AbstractEventLoop) -> ReceiveMemory:
    """The memory of those connections of a loop that have none of their own: without a limit, for those who connect
    know whom they trust with how large a frame."""
    memory = _of_loops.get(loop)
    if memory is None:
        memory = _of_loops[loop] = ReceiveMemory()
    return memory
