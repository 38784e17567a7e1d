"""Watches the HTTP library's connections: a slow client loses its connection, and nothing that it sent is logged.

aiohttp limits the size of a head, and ends idle connections. This module limits how long each step may take. It sees
what a client must send next from outside: from received bytes, from requests that started and were answered, and from
what :func:`body` waits for. It reads no private state of aiohttp, which may be behind: a task that was woken may not
have run when the next bytes arrive. Between two checks this costs one addition per received piece.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from html import escape
from typing import Any, Final

from aiohttp import ClientError, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import HttpProcessingError, StreamWriter

from bookkeeper.auth.client_trust import ClientTrust
from bookkeeper.gateways.config import ConnectionLimits
from bookkeeper.gateways.connection_limits import ConnectionWatch, Observation, ObservedTime, OverdueClock
from bookkeeper.rate_limited_log import RateLimitedLogger, one_line
from bookkeeper.seams import Clock
from spark_wal.webhdfs.http.head_size import HeadSize
from spark_wal.webhdfs.http.request import STEP_TWO

logger = logging.getLogger(__name__)

LINE_MAX: Final = 64 * 1024
"""Bytes of a request line: a path of HDFS's full length, every byte of it escaped, twice, and a token."""

FIELD_MAX: Final = 16 * 1024
"""The longest header, in bytes."""

HEADERS_MAX: Final = 48
"""Headers of a request. Hadoop's client sends eight, a browser behind two proxies some thirty. All lines together have
a limit, too: :data:`~spark_wal.webhdfs.http.head_size.HEAD_MAX`."""

_TOO_LARGE: Final = b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

SWEEP_S: Final = 5.0
"""Seconds between two checks."""

BROKEN_OFF: Final = (HttpProcessingError, ClientError, ConnectionError, web.RequestPayloadError)
"""The errors that mean that the client is gone, or has sent a malformed body."""

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class HeadTooLargeError(Exception):
    """The head of a request is too large, or a client sends too much before it was answered."""


class HttpConnection(web.RequestHandler):
    """One watched connection."""

    def __init__(self, server: HttpConnections, number: int, **options: Any) -> None:
        super().__init__(server, **options)
        self.connections = server
        self.number = number
        self.watch = ConnectionWatch()
        self.head = HeadSize()
        self.trust = server.trust()
        """By what its client is admitted: a connection is made when its handshake begins."""
        self.pace: OverdueClock | None = None
        self.wire: asyncio.BaseTransport | None = None
        """The transport, also while aiohttp has closed it and the other side has not."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.wire = transport
        self.pace = self.connections.begun(self)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Tell aiohttp a turn of the loop later. Its task may have been woken for a request without having run;
        otherwise it would find no server any more, and end with a useless traceback."""
        self.connections.over(self)
        asyncio.get_running_loop().call_soon(super().connection_lost, exc)

    def data_received(self, data: bytes) -> None:
        if data:  # aiohttp calls this without data when it resumes reading
            in_body, is_handled = self.watch.is_in_body, self.watch.is_handled
            self.watch.came(len(data))
            if self.head.came(data, in_body=in_body, is_handled=is_handled):
                self._refuse_head(is_handled)
                return
        super().data_received(data)

    def _refuse_head(self, is_handled: bool) -> None:
        """Answer, and close; if an answer is due already, only close."""
        wire = self.wire
        if wire is None or wire.is_closing():
            return
        self.connections.malformed(_host_of(wire), HeadTooLargeError())
        if not is_handled:
            wire.write(_TOO_LARGE)  # type: ignore[attr-defined]
        wire.close()

    def pause_writing(self) -> None:
        self.watch.stalls += 1
        super().pause_writing()

    def observe(self) -> Observation:
        """What a check of the connection shows."""
        return self.watch.observe(
            is_closing=self.wire is not None and self.wire.is_closing(), is_stalled=self.writing_paused
        )

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """Answer a malformed request. aiohttp itself would quote it, with its tokens, to the log and to the client."""
        if status != 400:
            return super().handle_error(request, status, exc, message)
        self.connections.malformed(request.remote, exc)
        refusal = web.Response(status=400, text="this request cannot be understood\n", headers=AS_IT_SAYS)
        refusal.force_close()
        return refusal


class HttpConnections(web.Server):
    """All connections. ``ended`` is called with the number of each connection that has ended."""

    def __init__(
        self,
        handler: Handler,
        limits: ConnectionLimits,
        clock: Clock,
        ended: Callable[[int], None],
        trust: Callable[[], ClientTrust] = ClientTrust,
        **options: Any,
    ) -> None:
        """``trust`` returns by what clients are admitted now. ``options`` are those of aiohttp's RequestHandler."""
        super().__init__(_watched(handler), request_factory=_taken_up)
        self._options = {
            "max_line_size": LINE_MAX,
            "max_field_size": FIELD_MAX,
            "max_headers": HEADERS_MAX,
            **options,
        }
        self._limits = limits
        self._log = RateLimitedLogger(logger, clock.monotonic)
        self._malformed = RateLimitedLogger(logger, clock.monotonic)
        self._ended = ended
        self.trust = trust
        self._open: dict[HttpConnection, None] = {}
        self._attention = ObservedTime(min(SWEEP_S, limits.slow_s / 2))
        self._sweeper: asyncio.TimerHandle | None = None
        self.slow = 0
        """Connections that were closed because the client was too slow."""

    def connection(self, number: int) -> HttpConnection:
        """Make the protocol of an accepted connection."""
        return HttpConnection(self, number, loop=asyncio.get_running_loop(), **self._options)

    def all(self) -> list[HttpConnection]:
        """The connections that are open now."""
        return list(self._open)

    def begun(self, connection: HttpConnection) -> OverdueClock:
        self._open[connection] = None
        loop = asyncio.get_running_loop()
        if self._sweeper is None:
            self._attention.resume(loop.time())
            self._sweeper = loop.call_later(self._attention.interval_s, self._sweep)
        return OverdueClock(self._limits, self._attention.seconds)

    def over(self, connection: HttpConnection) -> None:
        self._open.pop(connection, None)
        self._ended(connection.number)

    def end(self, connection: HttpConnection, reason: str) -> None:
        """Close a connection that is too slow."""
        self.slow += 1
        wire = connection.wire
        if wire is not None:
            name = wire.get_extra_info("peername")
            self._log.warning("the connection from %s is closed: %s", name[0] if name else "?", reason)
            wire.abort()  # type: ignore[attr-defined]

    def drop(self, why: Callable[[bytes, ClientTrust], str | None]) -> list[tuple[str, str]]:
        """Close the connections for whose certificate (DER) there is a reason. Returns their addresses and reasons.
        ``why`` also gets by what a client was admitted, and is asked once for each certificate."""
        dropped = []
        verdicts: dict[tuple[bytes, int], str | None] = {}
        for connection in self.all():
            wire = connection.wire
            encrypted = None if wire is None else wire.get_extra_info("ssl_object")
            shown = None if encrypted is None else encrypted.getpeercert(binary_form=True)
            if wire is None or shown is None:
                continue
            key = (shown, id(connection.trust))
            if key not in verdicts:
                verdicts[key] = why(shown, connection.trust)
            if (reason := verdicts[key]) is not None:
                dropped.append((_host_of(wire), reason))
                wire.abort()  # type: ignore[attr-defined]
        return dropped

    def malformed(self, remote: str | None, error: BaseException | None) -> None:
        """Count and log, with a limited rate, bytes that are no request."""
        self._malformed.warning(
            "what %s sent is no HTTP request (%s), so its connection is closed", remote, type(error).__name__
        )

    def _sweep(self) -> None:
        self._sweeper = None
        loop = asyncio.get_running_loop()
        now = self._attention.check(loop.time())
        for connection in self.all():
            assert connection.pace is not None
            late = connection.pace.check(connection.observe(), now)
            if late is not None:
                self.end(connection, late)
        if self._open:
            self._sweeper = loop.call_later(self._attention.interval_s, self._sweep)


AS_IT_SAYS: Final = {"X-Content-Type-Options": "nosniff"}
"""In every reply: a browser takes it for what its type says, and no file or name that somebody has made for a page."""


class _JavaWriter(StreamWriter):
    """Omits the Content-Type, which aiohttp would add to every reply."""

    async def write_headers(self, status_line: str, headers: Any) -> None:
        headers.popall("Content-Type", None)
        await super().write_headers(status_line, headers)


def _taken_up(message: Any, payload: Any, protocol: Any, writer: AbstractStreamWriter, task: Any) -> web.BaseRequest:
    """Handle a request without aiohttp's applications: their router and signals took a sixth of the CPU."""
    loop = asyncio.get_running_loop()
    protocol.watch.taken_up(payload.is_eof)
    protocol.head.taken_up()
    if message.headers.get("User-Agent", "").startswith("Java/"):
        writer = _JavaWriter(protocol, loop)
    return web.BaseRequest(message, payload, protocol, writer, task, loop)


def _watched(handler: Handler) -> Handler:
    """Handle a request whose connection may end, without a traceback."""

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        if request.transport is None:
            return hang_up(request)  # before anything begins: nothing would wake a wait for the body
        try:
            response = await handler(request)
            if not response.prepared:
                response.headers.update(AS_IT_SAYS)
                if _connection(request).watch.is_in_body:
                    response.force_close()  # else nobody could tell where the head of a next request begins
            return response
        except BROKEN_OFF as error:
            logger.info("%s: the client went away: %s", request.method, one_line(error))
            return hang_up(request)
        finally:
            _connection(request).watch.answered()

    return handle


def hang_up(request: web.BaseRequest) -> web.Response:
    """End the connection without an answer: the outcome is unknown, and the client must not read one."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=503)


def refused(status: int, reason: str) -> web.Response:
    """Refuse with only a reason phrase, which Hadoop's client shows, and end the connection."""
    reply = web.Response(status=status, reason=reason, text=reason + "\n", headers={"Connection": "close"})
    reply.force_close()
    return reply


def not_found(path: str) -> web.Response:
    """Answer that there is nothing at this address: it is not one of a file."""
    text = f"<html><head><title>Error 404 Not Found</title></head><body>{escape(path)} is not here</body></html>"
    return web.Response(status=404, text=text, content_type="text/html")


async def send_continue(request: web.BaseRequest) -> None:
    """Send 100 Continue, but only if a body is needed: the first step redirects without it."""
    if STEP_TWO in request.raw_path.lower() and request.transport is not None:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")


def _host_of(wire: asyncio.BaseTransport) -> str:
    name = wire.get_extra_info("peername")
    return name[0] if name else "?"


def _connection(request: web.BaseRequest) -> HttpConnection:
    connection = request.protocol
    assert isinstance(connection, HttpConnection)
    return connection


def take_any_time(request: web.BaseRequest) -> None:
    """Let the client of this request pause between two chunks for as long as it wants."""
    _connection(request).watch.takes_any_time()


async def body(request: web.BaseRequest) -> AsyncIterator[bytes]:
    """The bytes of a request's body, as they arrive. The connection notes what this waits for.

    The rest of a chunk, or of a body with a given length, must come soon. The next chunk may take long.
    """
    if not request.can_read_body:
        return
    content, watch = request.content, _connection(request).watch
    chunked = request.content_length is None
    whole = True
    while not content.at_eof():
        watch.waits(between_chunks=chunked and whole)
        try:
            data, whole = await content.readchunk()
        finally:
            watch.goes_on()
        watch.units += whole
        if data:
            yield data
