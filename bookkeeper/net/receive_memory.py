"""The memory into which connections receive: one buffer for all of them, and a bound for incomplete frames.

A connection owns no receive buffer. It borrows the shared one for one read, and copies out what it must keep: the
beginning of an incomplete frame. So idle connections cost nothing, and memory is held only for bytes that have arrived
(P12, X31).

:class:`ReceiveMemory` bounds what all connections keep together. Up to ``FREE`` bytes of each are not counted; more is
charged. When the limit is reached, a connection that needs more is not read until it gets room, and TCP slows its
sender down. It gets room for its whole frame at once, so it waits at most once per frame. One connection at a time may
exceed the limit: so of many frames that were begun together, one after the other completes. Room goes to the address
that holds least, and then to the connection that waited longest. So an address that fills the memory cannot keep the
others out.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import Final, Protocol

RECEIVE_BUFFER: Final = 512 * 1024
"""Bytes of the buffer that connections borrow. It is large because long chunks make long runs."""

FREE: Final = 8 * 1024
"""Bytes that a connection may keep without being charged, enough for the beginning of an ordinary frame."""

NO_LIMIT: Final = 1 << 62


class ReceivingConnection(Protocol):
    """What :class:`ReceiveMemory` needs of a connection."""

    account: str
    """The account that is charged for what it keeps: the peer's address."""

    def on_room(self, size: int) -> None:
        """It may use ``size`` more bytes; they are charged already."""


class ReceiveMemory:
    """The memory that connections borrow, and the account of what they keep."""

    def __init__(self, limit: int = NO_LIMIT) -> None:
        self.buffer = bytearray(RECEIVE_BUFFER)
        self.view = memoryview(self.buffer)
        self.limit = limit
        self.short = limit < RECEIVE_BUFFER
        """Whether less is left than the largest read may bring."""
        self.held = 0
        """Bytes that are charged."""
        self.peak = 0
        """The most bytes charged at a time since the owner last lowered this."""
        self._of: Counter[str] = Counter()
        self._waiting: dict[str, deque[tuple[ReceivingConnection, int]]] = {}
        """Connections that wait, with the bytes they need, by account."""
        self._beyond: ReceivingConnection | None = None

    @property
    def left(self) -> int:
        """Bytes that may still be charged. Negative if a connection exceeds the limit."""
        return self.limit - self.held

    @property
    def crowded(self) -> bool:
        """Whether a connection waits for room."""
        return bool(self._waiting)

    def charge(self, holder: ReceivingConnection, size: int, *, rest: int) -> None:
        """Charge ``holder`` with ``size`` more bytes (negative: fewer). ``rest`` is all that it keeps then."""
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
        """Charge ``holder`` with ``size`` more bytes as soon as there is room, then call ``holder.on_room(size)``."""
        self._waiting.setdefault(holder.account, deque()).append((holder, size))
        self._wake()

    def forget(self, holder: ReceivingConnection) -> None:
        """Drop ``holder``, which has ended, from those that wait. Its charge is taken back separately."""
        line = self._waiting.get(holder.account)
        if line is not None:
            rest = deque(each for each in line if each[0] is not holder)
            if rest:
                self._waiting[holder.account] = rest
            else:
                del self._waiting[holder.account]

    def validate_state(self) -> None:
        """Check what must hold between any two calls. For tests."""
        assert self.held == sum(self._of.values()) and self.peak >= self.held, "the accounts do not add up"
        assert all(size >= 0 for size in self._of.values()), "an account holds less than nothing"
        assert self.short == (self.left < RECEIVE_BUFFER)
        assert all(self._waiting.values()), "an address is listed for which no connection waits"
        assert not self._waiting or self._beyond is not None, "connections wait, and nothing will wake them"

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
