"""A stream: the adds of one writer on one connection.

In protocol v3 a streamed add has the transaction id ``stream.txn_base + entry_id``, where txn_base = stream id << 40.
Other requests count up from 1 and stay below 2**40. The *writer* draws one stream id (:class:`StreamIds`, one per
client) for its streams on all connections, so one encoded frame serves all bookies of an ensemble.
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
    """Draws stream ids. A client has one such object, so a stream has the same id on all its connections."""

    def __init__(self) -> None:
        self._last = 0

    def next(self) -> int:
        """Draw a stream id from 1 to 2**23-1. After the last one it begins again at 1."""
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
        """In v3 the transaction id of entry e is ``txn_base + e``."""
        return self.stream_id << STREAM_SHIFT

    def send(self, frames: Buffer, *, alone: bool = False) -> None:
        """Send whole frames at the end of this turn of the loop. The caller must not change them any more.

        ``alone`` says that no other frames are expected in this turn.
        """
        if not self.closed:
            (self.connection.write_alone if alone else self.connection.write)(frames)

    def close(self) -> None:
        """Report no more replies, and no loss. What was sent may still be stored. Idempotent."""
        if not self.closed:
            self.closed = True
            self.connection.close_stream(self)

    def answered(self, runs: list[AddRun]) -> None:
        """Called by the connection when replies have come."""
        if not self.closed:
            self._on_replies(runs)

    def lost(self, error: BookieError) -> None:
        """Called by the connection when it has ended."""
        if not self.closed:
            self.closed = True
            self._on_lost(error)
