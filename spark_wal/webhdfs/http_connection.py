"""The HTTP library's connections, watched: who is slow loses theirs (X34), and nothing they sent is logged (X58).

aiohttp ends idle connections, and nothing else: a head may dribble in, a body may stop half way, replies may lie
unread for ever. A look at all connections every few seconds finds those (:class:`~.connection_limits.Pace`); between
two looks this costs an addition per chunk received.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from bookkeeper.seams import Clock
from spark_wal.webhdfs.connection_limits import ConnectionLimits, Owes, Pace, Sight
from spark_wal.webhdfs.seldom import SeldomLog

logger = logging.getLogger(__name__)

LINE_MAX: Final = 64 * 1024
"""Bytes of a request line: a path of HDFS's full length, every byte of it escaped, twice, and a token."""

FIELD_MAX: Final = 16 * 1024
"""Bytes of a header."""

HEAD_MAX: Final = 256 * 1024
"""Bytes of a request's head that is not complete yet. Nobody has been asked who they are by then."""

SWEEP_S: Final = 5.0
"""Between two looks."""


class HttpConnection(RequestHandler):
    """One connection."""

    def __init__(self, server: HttpConnections, number: int, **options: Any) -> None:
        super().__init__(server, **options)
        self.connections = server
        self.number = number
        self.head_bytes = 0
        """Of a head that is not complete."""
        self.stalls = 0
        """How often replies were not taken fast enough to be sent."""
        self.units = 0
        """Chunks of bodies that have come whole."""
        self.body_bytes = 0
        self.owes = Owes.NOTHING
        """While a body is being received."""
        self.pace: Pace | None = None
        self.wire: asyncio.BaseTransport | None = None
        """The transport, also when aiohttp has closed it and the other side has not let go."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.wire = transport
        self.pace = self.connections.begun(self)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        self.connections.over(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        before = self._request_count
        super().data_received(data)
        if self._request_count != before:
            self.head_bytes = 0
        elif self._waiter is not None:
            self.head_bytes += len(data)
            if self.head_bytes > HEAD_MAX:
                self.connections.end(self, "the head of a request is too large")

    def pause_writing(self) -> None:
        self.stalls += 1
        super().pause_writing()

    def sight(self) -> Sight:
        """What is to be seen of it now."""
        stalls = self.stalls if self.writing_paused else None
        if self.wire is not None and self.wire.is_closing():
            return Sight(Owes.END)
        if self._waiter is not None and not self._waiter.done() and not self._messages:
            begun = self.head_bytes > 0 or self._request_count == 0
            return Sight(Owes.HEAD if begun else Owes.NOTHING, self._request_count, stalls=stalls)
        if self._reading_paused or self._buffer_paused:
            return Sight(Owes.NOTHING, stalls=stalls)
        return Sight(self.owes, self._request_count + self.units, self.body_bytes, stalls)

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """What aiohttp says of a request that is none quotes it, in its log and to the client, tokens and all."""
        if status != 400:
            return super().handle_error(request, status, exc, message)
        self.connections.malformed(request.remote, exc)
        refusal = web.Response(status=400, text="this is no request that can be understood\n")
        refusal.force_close()
        return refusal


class HttpConnections(web.Server):
    """All of them; ``ended`` is told the number of each that is gone."""

    def __init__(
        self,
        handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        limits: ConnectionLimits,
        clock: Clock,
        ended: Callable[[int], None],
        **options: Any,
    ) -> None:
        super().__init__(handler, **options)
        self._limits = limits
        self._log = SeldomLog(logger, clock)
        self._malformed = SeldomLog(logger, clock)
        self._ended = ended
        self._open: dict[HttpConnection, None] = {}
        self._sweeper: asyncio.TimerHandle | None = None
        self.slow = 0
        """Connections that were closed because they were too slow, or sent too much of a head."""

    def connection(self, number: int) -> HttpConnection:
        """The protocol of a connection that was accepted."""
        return HttpConnection(self, number, loop=self._loop, **self._kwargs)

    def all(self) -> list[HttpConnection]:
        """Those that stand now."""
        return list(self._open)

    def begun(self, connection: HttpConnection) -> Pace:
        self._open[connection] = None
        loop = asyncio.get_running_loop()
        if self._sweeper is None:
            self._sweeper = loop.call_later(min(SWEEP_S, self._limits.slow_s / 2), self._sweep)
        return Pace(self._limits, loop.time())

    def over(self, connection: HttpConnection) -> None:
        self._open.pop(connection, None)
        self._ended(connection.number)

    def end(self, connection: HttpConnection, reason: str) -> None:
        """Hang up on one that is too slow, or sends too much."""
        self.slow += 1
        wire = connection.wire
        if wire is not None:
            name = wire.get_extra_info("peername")
            self._log.warning("the connection from %s is closed: %s (X34)", name[0] if name else "?", reason)
            wire.abort()  # type: ignore[attr-defined]

    def drop(self, is_revoked: Callable[[bytes], bool]) -> int:
        """Hang up on those whose certificate (DER) is revoked; how many they were."""
        count = 0
        for connection in self.all():
            wire = connection.wire
            encrypted = None if wire is None else wire.get_extra_info("ssl_object")
            shown = None if encrypted is None else encrypted.getpeercert(binary_form=True)
            if shown is not None and is_revoked(shown):
                count += 1
                wire.abort()  # type: ignore[union-attr]
        return count

    def malformed(self, remote: str | None, error: BaseException | None) -> None:
        """Count and say, seldom, that something came that is no request."""
        self._malformed.warning("what came from %s is no request (%s)", remote, type(error).__name__)

    def _sweep(self) -> None:
        self._sweeper = None
        now = asyncio.get_running_loop().time()
        for connection in self.all():
            assert connection.pace is not None
            late = connection.pace.look(connection.sight(), now)
            if late is not None:
                self.end(connection, late)
        if self._open:
            self._sweeper = asyncio.get_running_loop().call_later(min(SWEEP_S, self._limits.slow_s / 2), self._sweep)


async def body(request: web.BaseRequest) -> AsyncIterator[bytes]:
    """The bytes of a request's body, as they come; what is waited for is noted on the connection.

    Where a chunk has begun its rest is waited for, and where the length was said the rest of it. Before a chunk, and
    after it, the next one may take long. (A chunk of which there is nothing but its length counts as not begun.)
    """
    if not request.can_read_body:
        return
    content, connection = request.content, request.protocol
    assert isinstance(connection, HttpConnection)
    chunked = request.content_length is None
    whole = True
    try:
        while not content.at_eof():
            connection.owes = Owes.CHUNK if chunked and whole else Owes.UNIT
            data, whole = await content.readchunk()
            connection.owes = Owes.NOTHING
            connection.body_bytes += len(data)
            connection.units += whole
            if data:
                yield data
    finally:
        connection.owes = Owes.NOTHING
