"""Sends one writer's adds to one bookie, over a stream on a connection. Adds wait here until the connection is open.

A channel keeps nothing per entry. It reports replies and, once, its failure, but never inside a call made to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from bookkeeper.client.bookies.bookie_pool import BookiePool, ConnectionPurpose
from bookkeeper.client.tasks import Tasks
from bookkeeper.errors import BookieError, BookieUnavailableError, BookKeeperError
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.ledger import QuorumSpec
from bookkeeper.net.connection import AddRun, AddStream, BookieConnection
from bookkeeper.seams import Buffer
from bookkeeper.wire import Reply, Request

OnReplies = Callable[["AddChannel", list[AddRun]], None]
Callback = Callable[["Reply | BookieError"], None]
OnFailed = Callable[["AddChannel", BookKeeperError], None]


def _ignore(channel: AddChannel, news: object) -> None:
    """Replaces the writer's callbacks after ``detach``, so that the writer can be freed before the channel."""


class AddChannel:
    """Made by a writer for each bookie of its ensemble; dropped when the bookie fails or leaves."""

    def __init__(
        self,
        pool: BookiePool,
        tasks: Tasks,
        bookie: BookieId,
        position: int,
        stream_id: int,
        ledger_id: LedgerId,
        spec: QuorumSpec,
        on_replies: OnReplies,
        on_failed: OnFailed,
    ) -> None:
        self.bookie = bookie
        self.position = position
        self.closed = False
        self.request_ids = ""
        """What the bookie's log calls the adds: this side's address, and the stream. Empty as long as there is no
        connection."""
        self._pool = pool
        self._tasks = tasks
        self._stream_id = stream_id
        self._ledger_id = ledger_id
        self._spec = spec
        self._striped = spec.is_striped
        self._on_replies = on_replies
        self._on_failed = on_failed
        self._stream: AddStream | None = None
        self._queued: list[Buffer] = []
        self._requests: list[tuple[Request, float, Callback]] = []
        self._connecting: asyncio.Task[None] | None = None

    def open(self, connection: BookieConnection | None = None) -> None:
        """Use ``connection``, or the pool's, which makes one if there is none."""
        connection = connection or self._pool.ready(self.bookie)
        if connection is not None:
            self._attach(connection)
        else:
            self._connecting = self._tasks.start(self._connect(), f"connect to {self.bookie} for adds")

    def send(self, frames: Buffer, *, alone: bool = False) -> None:
        """Send whole frames, at once or when the connection stands. ``alone``: nothing else is in flight."""
        if self._stream is not None:
            self._stream.send(frames, alone=alone)
        elif not self.closed:
            self._queued.append(frames)

    def request(self, request: Request, timeout_s: float, answered: Callback) -> None:
        """Send a request after the adds, on the same connection; forget it if the channel is left before that."""
        if self._stream is not None:
            self._stream.connection.request_nowait(request, timeout_s, answered)
        elif not self.closed:
            self._requests.append((request, timeout_s, answered))

    def drop(self) -> None:
        """Stop reporting, whatever was sent. A later channel to this bookie gets another connection.

        A connection that still has unsent bytes is ended, which frees its buffers.
        """
        if (connection := self.detach()) is not None:
            if connection.unsent:
                connection.abort(BookieUnavailableError(f"{self.bookie} takes no more bytes"))
            self._pool.retire(self.bookie, connection)

    def detach(self) -> BookieConnection | None:
        """Stop reporting, and leave the connection to its other users. Returns it, if there is one."""
        self.closed = True
        self._on_replies, self._on_failed = _ignore, _ignore
        self._queued.clear()
        self._requests.clear()
        if self._connecting is not None:
            self._connecting.cancel()
            self._connecting = None
        stream, self._stream = self._stream, None
        if stream is None:
            return None
        stream.close()
        self._pool.dismiss(stream.connection)
        return stream.connection

    async def _connect(self) -> None:
        try:
            connection = await self._pool.get(self.bookie, ConnectionPurpose.MAIN)
        except BookKeeperError as error:
            self._connecting = None
            if not self.closed:
                self._on_failed(self, error)
            return
        self._connecting = None
        if not self.closed:
            self._attach(connection)

    def _attach(self, connection: BookieConnection) -> None:
        self._stream = connection.open_stream(self._stream_id, self._ledger_id, self._replies, self._lost)
        self.request_ids = f"{connection.local}/{self._stream_id}"
        self._pool.enlist(connection)
        queued, self._queued = self._queued, []
        for frames in queued:
            self._stream.send(frames)
        questions, self._requests = self._requests, []
        for question in questions:
            connection.request_nowait(*question)

    def _replies(self, batch: list[AddRun]) -> None:
        self._on_replies(self, self._spec.joined(self.position, batch) if self._striped and len(batch) > 1 else batch)

    def _lost(self, error: BookieError) -> None:
        if not self.closed:
            self._on_failed(self, error)
