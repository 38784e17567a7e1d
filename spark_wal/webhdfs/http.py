"""The HTTP shell: aiohttp on one side, ``operations`` on the other.

Besides ``/webhdfs/v1`` there are ``/events`` (a line of JSON for each durable change, as it happens; ``?prefix=/a``
for a part of the tree), ``/health`` and ``/metrics``, and, where there are tokens, ``/oauth2/token``. Where anybody is
asked who they are, everybody is, but for ``/health``, which then says no more than the role (X48).

What Hadoop's Java client asks of a server, and gets here
    no Content-Type     its bundled JSON reader fails over any (a class is missing in Spark 4.2 and 4.3)
    307, Content-Length: 0, same host      it keeps the connection, also across the two steps
    keep-alive          longer than its pool keeps a connection (5 s), or a chunked PUT meets a dead socket
    no idle limit       a state store keeps its upload open for a whole task
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from html import escape
from typing import Any, Final

from aiohttp import ClientError, web
from aiohttp.http_exceptions import HttpProcessingError

from bookkeeper.errors import BookKeeperError
from bookkeeper.ids import Address
from bookkeeper.net.tls import HANDSHAKE_S
from bookkeeper.seams import Clock
from journal_manager import JournalError
from spark_wal.webhdfs import oauth2, operations
from spark_wal.webhdfs.access import Access
from spark_wal.webhdfs.authentication import Credentials, UnauthenticatedError
from spark_wal.webhdfs.file_system import Opened
from spark_wal.webhdfs.gateway import Gateway
from spark_wal.webhdfs.operations import Reply, Request
from spark_wal.webhdfs.owner import NotOwnerError
from spark_wal.webhdfs.parameters import Query
from spark_wal.webhdfs.paths import PREFIX, BadTargetError, decode_path
from spark_wal.webhdfs.refusals import PlainIOError, Refusal
from spark_wal.webhdfs.request_metrics import RequestMetrics
from spark_wal.webhdfs.tokens import Principal

logger = logging.getLogger(__name__)

KEEP_ALIVE_S: Final = 75.0
"""How long an idle connection stays open."""

HEARTBEAT_S: Final = 10.0
"""An empty line goes out on a feed of events that is quiet for so long."""

DRAIN_S: Final = 5.0
"""How long uploads may go on when the gateway is asked to stop."""

_BAD_REQUEST: Final = "<h1>Bad Message 400</h1><pre>reason: Bad Request</pre>"


class HttpServer:
    """Serves one gateway."""

    def __init__(
        self, gateway: Gateway, clock: Clock, *, advertise: str | None = None, access: Access | None = None
    ) -> None:
        self._gateway = gateway
        self._clock = clock
        self._advertise = advertise
        self._access = access
        self._tls = None if access is None or access.certificates is None else access.certificates.context
        self._scheme = "https" if self._tls is not None else "http"
        self._listening: asyncio.Server | None = None
        self.metrics = RequestMetrics()
        self._pages = {"/events": self._events, "/health": self._health, "/metrics": self._metrics}
        self._runner: web.ServerRunner | None = None
        self.address: Address | None = None
        """Where it listens (port 0 resolved)."""

    async def start(self, listen: Address) -> Address:
        """Accept requests; returns where."""
        server = web.Server(
            self._handle,
            request_factory=_request,
            access_log=None,
            keepalive_timeout=KEEP_ALIVE_S,
            max_line_size=64 * 1024,
            max_field_size=64 * 1024,
        )
        self._runner = web.ServerRunner(server, shutdown_timeout=DRAIN_S)
        await self._runner.setup()
        self._listening = await asyncio.get_running_loop().create_server(
            server,
            listen.host,
            listen.port,
            backlog=1024,
            ssl=self._tls,
            ssl_handshake_timeout=HANDSHAKE_S if self._tls is not None else None,
        )
        host, port = self._listening.sockets[0].getsockname()[:2]
        self.address = Address(host, port)
        return self.address

    async def close(self) -> None:
        """Let uploads finish for a moment, then stop. Idempotent."""
        listening, self._listening = self._listening, None
        if listening is not None:
            listening.close()
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        raw_path = request.raw_path.partition("?")[0]
        principal: Principal | None = None
        if self._access is not None and not self._access.authenticator.is_open:
            if raw_path == oauth2.ENDPOINT:
                return await self._access_token(request)
            if raw_path != "/health":
                try:
                    principal = self._authenticate(request)
                except UnauthenticatedError as error:
                    return await self._unauthenticated(request, str(error))
        page = self._pages.get(raw_path)
        if page is not None and request.method in ("GET", "HEAD"):
            if raw_path == "/events" and principal is not None and not principal.holds(_events_root(request)):
                return web.Response(status=403, text="not these events: give ?prefix=/PATH/ of your own\n")
            return await page(request)
        if request.headers.get("Expect"):
            await _expect(request)
        return await self._webhdfs(request, principal)

    # -- who asks --------------------------------------------------------------------------------------

    def _authenticate(self, request: web.BaseRequest) -> Principal | None:
        assert self._access is not None
        transport = request.transport
        shown = Credentials(
            certificate=None if transport is None else transport.get_extra_info("peercert"),
            authorization=request.headers.get("Authorization"),
            delegation=Query(request.raw_path.partition("?")[2]).text("delegation"),
        )
        now_ms = self._clock.wall_ms()  # the end of an access token means the same to every gateway
        try:
            return self._access.authenticator.principal(shown, now_ms)
        except UnauthenticatedError:
            if not self._access.look_for_new_token():
                raise
            return self._access.authenticator.principal(shown, now_ms)

    def _is_still_good(self, request: web.BaseRequest) -> bool:
        """Whether what was shown with a request that goes on for long would be taken again (X15)."""
        if self._access is None or self._access.authenticator.is_open:
            return True
        try:
            self._authenticate(request)
        except UnauthenticatedError:
            return False
        return True

    async def _unauthenticated(self, request: web.BaseRequest, reason: str) -> web.Response:
        """401, a little later, and the connection ends (X11). The reason phrase is what Hadoop's client shows."""
        assert self._access is not None
        address = request.remote or "?"
        delay_s = self._access.failures.delay_s(address)
        logger.warning("%s from %s is not authenticated", request.method, address)
        await asyncio.sleep(delay_s)
        headers = {"WWW-Authenticate": "Bearer", "Connection": "close"}
        reply = web.Response(status=401, reason=reason, text=reason + "\n", headers=headers)
        reply.force_close()
        return reply

    async def _access_token(self, request: web.BaseRequest) -> web.Response:
        assert self._access is not None
        if request.method != "POST":
            return web.Response(status=405, headers={"Allow": "POST"})
        form = b""
        while len(form) <= oauth2.FORM_MAX and (data := await request.content.readany()):
            form += data
        shown, now_ms = request.headers.get("Authorization"), self._clock.wall_ms()
        given = oauth2.grant(self._access.book(), form, shown, now_ms)
        if given.status == 401 and self._access.look_for_new_token():
            given = oauth2.grant(self._access.book(), form, shown, now_ms)
        if given.status == 401:
            logger.warning("a request for an access token from %s is not authenticated", request.remote)
            await asyncio.sleep(self._access.failures.delay_s(request.remote or "?"))
        reply = web.json_response(given.fields, status=given.status, headers={"Cache-Control": "no-store"})
        if given.status != 200:
            reply.force_close()
        return reply

    # -- WebHDFS ---------------------------------------------------------------------------------------

    async def _webhdfs(self, request: web.BaseRequest, principal: Principal | None) -> web.StreamResponse:
        started = self._clock.monotonic()
        raw_path, _, raw_query = request.raw_path.partition("?")
        if raw_path != PREFIX and not raw_path.startswith(PREFIX + "/"):
            return _not_found(raw_path)
        try:
            path = decode_path(raw_path[len(PREFIX) :])
        except BadTargetError:
            return web.Response(status=400, text=_BAD_REQUEST, content_type="text/html")
        query, authority = Query(raw_query), self._authority(request)
        asked = Request(request.method, path, query, authority, _body(request), self._scheme, principal)
        name = operations.operation_name(asked)
        try:
            reply = await operations.perform(self._gateway, asked)
            response = await self._respond(request, reply)
        except NotOwnerError as error:
            logger.warning("%s %s has no answer: %s", name, path, error)
            self.metrics.count(name, self._clock.monotonic() - started, ok=False)
            return _hang_up(request)
        except Refusal as error:
            response = await self._respond(request, operations.refusal_reply(error))
        except (HttpProcessingError, ClientError, ConnectionError) as error:
            logger.info("%s %s: the client went away: %s", name, path, error)
            return _hang_up(request)
        except (BookKeeperError, JournalError, OSError) as error:
            logger.warning("%s %s: %s", name, path, error)
            response = await self._respond(request, operations.refusal_reply(PlainIOError(str(error))))
        self.metrics.count(name, self._clock.monotonic() - started, ok=response.status < 400)
        return response

    def _authority(self, request: web.BaseRequest) -> str:
        return request.headers.get("Host") or self._advertise or str(self.address)

    async def _respond(self, request: web.BaseRequest, reply: Reply) -> web.StreamResponse:
        headers = {"Cache-Control": "no-cache"}
        if reply.location is not None:
            headers["Location"] = reply.location
        if reply.content is not None:
            return await self._stream(request, reply.content, headers)
        kind = "application/json" if reply.is_json else "application/octet-stream"
        return web.Response(status=reply.status, body=reply.body, headers=headers, content_type=kind)

    async def _stream(self, request: web.BaseRequest, content: Opened, headers: dict[str, str]) -> web.StreamResponse:
        """Bytes of a file. The first are fetched before the status is sent, so that a failure can still be told."""
        parts = aiter(content)
        first = await anext(parts, b"")
        if len(first) == content.length:
            return web.Response(body=first, headers=headers, content_type="application/octet-stream")
        response = web.StreamResponse(headers=headers)
        response.content_type = "application/octet-stream"
        response.content_length = content.length
        await response.prepare(request)
        try:
            await response.write(first)
            async for data in parts:
                await response.write(data)
            await response.write_eof()
        except (Refusal, BookKeeperError, OSError) as error:
            logger.warning("%s: %s", request.path, error)
            return _hang_up(request)  # fewer bytes than announced: the client sees an error, not a short file
        return response

    # -- everything else -------------------------------------------------------------------------------

    async def _events(self, request: web.BaseRequest) -> web.StreamResponse:
        prefix = request.query.get("prefix", "")
        subscription = self._gateway.events.subscribe()
        response = web.StreamResponse(headers={"Cache-Control": "no-cache"})
        response.content_type = "application/x-ndjson"
        try:
            await response.prepare(request)
            await response.write(b'{"op":"subscribed"}\n')
            looked = self._clock.monotonic()
            while True:
                if self._clock.monotonic() - looked >= HEARTBEAT_S:
                    looked = self._clock.monotonic()
                    if not self._is_still_good(request):
                        break
                try:
                    async with asyncio.timeout(HEARTBEAT_S):
                        event = await subscription.next()
                except TimeoutError:
                    await response.write(b"\n")
                    continue
                if event is None:
                    break
                if event.path.startswith(prefix):
                    await response.write(event.line())
        except ConnectionError:
            pass
        finally:
            subscription.close()
        return response

    async def _health(self, request: web.BaseRequest) -> web.Response:
        gateway, session = self._gateway, self._gateway.session
        fields: dict[str, object] = {"role": gateway.role.value, "sure": bool(session and session.is_sure)}
        if self._access is not None and not self._access.authenticator.is_open:
            return web.json_response(fields, status=200 if session else 503)
        if session is not None:
            fields |= {"epoch": session.epoch, "txid": session.durable_txid, "temporary_files": len(session.temps)}
            fields["upload_bytes_in_memory"] = session.uploads.in_memory
        if gateway.problem is not None:
            fields["problem"] = str(gateway.problem)
        return web.json_response(fields, status=200 if session else 503)

    async def _metrics(self, request: web.BaseRequest) -> web.Response:
        access = "" if self._access is None else self._access.metrics()
        return web.Response(text=self.metrics.text() + access, content_type="text/plain")


async def _body(request: web.BaseRequest) -> AsyncIterator[bytes]:
    if request.can_read_body:
        async for data in request.content.iter_any():
            yield data


class _Request(web.BaseRequest):
    """aiohttp's plain request. Its applications, with a router and signals, took a sixth of the gateway's CPU."""

    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        """aiohttp calls this when the headers stand, for an application's signals: its default comes before."""
        if self.headers.get("User-Agent", "").startswith("Java/"):
            response.headers.popall("Content-Type", None)


def _request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> _Request:
    return _Request(message, payload, protocol, writer, task, asyncio.get_running_loop())


async def _expect(request: web.BaseRequest) -> None:
    """100 Continue, but only where a body is wanted: the first step redirects without it."""
    if "namenoderpcaddress" in request.raw_path.lower() and request.transport is not None:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")


def _events_root(request: web.BaseRequest) -> str:
    """The directory that a feed is limited to: a prefix without a slash at its end is not one directory."""
    prefix = request.query.get("prefix", "")
    return prefix.rstrip("/") or "/" if prefix.endswith("/") else prefix.rpartition("/")[0] or "/"


def _hang_up(request: web.BaseRequest) -> web.Response:
    """End the connection without an answer: the outcome is not known, and the client must not read one."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=503)


def _not_found(path: str) -> web.Response:
    text = f"<html><head><title>Error 404 Not Found</title></head><body>{escape(path)} is not here</body></html>"
    return web.Response(status=404, text=text, content_type="text/html")
