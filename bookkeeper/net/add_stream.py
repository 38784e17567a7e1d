"""A stream: the adds of one writer on one connection.

Transaction ids of protocol v3: a streamed add has ``stream.txn_base + entry_id`` with txn_base = stream id << 40;
requests count up from 1 below 2**40. So one encoded frame serves all bookies of an ensemble: the *writer* draws a
stream id (:class:`StreamIds`, one per client) and opens its streams under it on every connection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from bookkeeper.codec import STREAM_SHIFT
from bookkeeper.errors import BookieError
from bookkeeper.ids import LedgerId
from bookkeeper.net.replies.deliveries import AddRun
from bookkeeper.seams import Buffer

if TYPE_CHECKING:
    from bookkeeper.net.connection import BookieConnection

OnReplies: TypeAlias = Callable[[list[AddRun]], None]
OnLost: TypeAlias = Callable[[BookieError], None]


class StreamIds:
    """Draws stream ids: one object per client, so that a stream has one id on all its connections."""

    def __init__(self) -> None:
        self._last = 0

    def next(self) -> int:
        """A stream id of 1 .. 2**23-1; after that many they start again."""
        self._last = self._last % ((1 << 23) - 1) + 1
        return self._last


class AddStream:
    """The adds of one writer on one connection. Made by :meth:`BookieConnection.open_stream`."""

    __slots__ = ("_on_lost", "_on_replies", "closed", "connection", "ledger_id", "stream_id")

    def __init__(
        self, connection: BookieConnection, stream_id: int, ledger_id: LedgerId, on_replies: OnReplies, on_lost: OnLost
    ) -> None:
        self._on_replies = on_replies
        self._on_lost = on_lost
        self.connection = connection
        self.stream_id = stream_id
        self.ledger_id = ledger_id
        self.closed = False

    @property
    def txn_base(self) -> int:
        """The transaction id of entry e is ``txn_base + e`` (v3)."""
        return self.stream_id << STREAM_SHIFT

    def send(self, frames: Buffer, *, alone: bool = False) -> None:
        """Send whole frames; they leave at the end of this turn of the loop. They must not change any more.

        ``alone``: no other frames are expected to leave with them.
        """
        if not self.closed:
            (self.connection.write_alone if alone else self.connection.write)(frames)

    def close(self) -> None:
        """No more replies are reported, and no loss. What was sent may still be stored. Idempotent."""
        if not self.closed:
            self.closed = True
            self.connection.close_stream(self)

    def answered(self, runs: list[AddRun]) -> None:
        """For the connection: these replies came."""
        if not self.closed:
            self._on_replies(runs)

    def lost(self, error: BookieError) -> None:
        """For the connection: it has ended."""
        if not self.closed:
            self.closed = True
            self._on_lost(error)
