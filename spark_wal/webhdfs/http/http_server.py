"""The HTTP shell: aiohttp on one side, ``operations`` on the other.

Besides ``/webhdfs/v1`` there are ``/events`` (a line of JSON for each durable change, as it happens; ``?prefix=/a``
for a part of the tree), ``/health`` and ``/metrics``, and, with tokens, ``/oauth2/token``. If the gateway authenticates
clients, it does so everywhere except on ``/health``, which then shows only the role.

The gateway refuses changes that a browser requests for a page of another origin (``Origin``). Without authentication it
also refuses host names that are not its own. So a web page cannot use a gateway on its reader's machine.

What Hadoop's Java client needs of a server
    no Content-Type     its bundled JSON reader fails over any (a class is missing in Spark 4.2 and 4.3)
    307, Content-Length: 0, same host      it keeps the connection, also across the two steps
    keep-alive          longer than its pool keeps a connection (5 s), or a chunked PUT meets a dead socket
    long pauses         a state store keeps its upload open for a whole task (``connection_limits``)
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

from aiohttp import web

from bookkeeper.auth.certificate import not_after
from bookkeeper.auth.client_trust import ClientTrust
from bookkeeper.errors import BookKeeperError
from bookkeeper.gateways.access_control import AccessControl
from bookkeeper.gateways.authentication import RequestCredentials, UnauthenticatedError
from bookkeeper.gateways.caller import Caller, path_resource
from bookkeeper.gateways.config import ConnectionLimits
from bookkeeper.gateways.gateway_audit import GatewayAudit
from bookkeeper.gateways.listener import BoundSockets, CountedListener
from bookkeeper.gateways.long_requests import LongRequests
from bookkeeper.gateways.permissions import CallerRights
from bookkeeper.ids import Address
from bookkeeper.metrics import Metrics
from bookkeeper.rate_limited_log import RateLimitedLogger, one_line
from bookkeeper.seams import Clock
from journal_manager import JournalError
from spark_wal.webhdfs.access.authentication import token_of
from spark_wal.webhdfs.contents.upload_log import UploadLog
from spark_wal.webhdfs.errors import PlainIOError, WebHdfsError
from spark_wal.webhdfs.files.paths import PREFIX, BadTargetError, decode_path
from spark_wal.webhdfs.http import oauth2, operations, origins
from spark_wal.webhdfs.http.http_connection import (
    AS_IT_SAYS,
    BROKEN_OFF,
    HttpConnections,
    body,
    hang_up,
    not_found,
    refused,
    send_continue,
    take_any_time,
)
from spark_wal.webhdfs.http.parameters import Query
from spark_wal.webhdfs.http.request import Reply, Request, is_step_one, refusal_reply
from spark_wal.webhdfs.http.request_audit import RequestAudit
from spark_wal.webhdfs.http.request_metrics import RequestMetrics
from spark_wal.webhdfs.http.two_steps import UPLOADS
from spark_wal.webhdfs.ownership.events import common_directory
from spark_wal.webhdfs.ownership.file_system import FileContents
from spark_wal.webhdfs.ownership.gateway import Gateway
from spark_wal.webhdfs.ownership.namespace_owner import NotOwnerError

logger = logging.getLogger(__name__)

KEEP_ALIVE_S: Final = 75.0
"""Seconds that an idle connection stays open."""

HEARTBEAT_S: Final = 10.0
"""Seconds after which a feed without events gets an empty line."""

DRAIN_S: Final = 5.0
"""Seconds that running uploads get when the gateway stops."""

_BAD_REQUEST: Final = "<h1>Bad Message 400</h1><pre>reason: Bad Request</pre>"


class HttpServer:
    """Serves one gateway over HTTP."""

    def __init__(
        self,
        gateway: Gateway,
        clock: Clock,
        *,
        advertise: str | None = None,
        access: AccessControl | None = None,
        limits: ConnectionLimits | None = None,
        hosts: Collection[str] | None = None,
        upload_log: UploadLog | None = None,
        permissions: CallerRights | None = None,
        audit: GatewayAudit | None = None,
    ) -> None:
        """``hosts`` are the names, besides addresses, that requests may have as their host; None for any name.
        ``permissions`` say what callers may do; ``audit`` gets who was refused, and why."""
        self._permissions = permissions = permissions or CallerRights()
        self._long = LongRequests(
            lambda: (0 if access is None else access.generation, permissions.version), clock.wall_ms
        )
        self._gateway = gateway
        self._clock = clock
        self._advertise = advertise
        self._access = access
        self._limits = limits or ConnectionLimits()
        self._hosts = None if hosts is None else frozenset(name.lower() for name in hosts)
        self._certificates = None if access is None else access.certificates
        self._scheme = "https" if self._certificates is not None else "http"
        self._upload_log = upload_log
        self._audit = RequestAudit(audit or GatewayAudit(clock))
        self._unknown = RateLimitedLogger(logger, clock.monotonic)
        self.metrics = Metrics("gateway_")
        self._requests = RequestMetrics(self.metrics)
        self._pages = {"/health": self._health, "/metrics": self._metrics}
        self._runner: web.ServerRunner | None = None
        self._listening: CountedListener | None = None
        self._connections: HttpConnections | None = None
        self.address: Address | None = None
        """The address (port 0 resolved)."""

    async def start(self, listen: Address | BoundSockets) -> Address:
        """Begin to accept requests; return the address.

        Raises:
            OSError: the gateway cannot listen at the address.
        """
        self._connections = connections = HttpConnections(
            self._handle,
            self._limits,
            self._clock,
            lambda number: listening.ended(number),
            ClientTrust if self._certificates is None else partial(getattr, self._certificates, "trust"),
            access_log=None,
            keepalive_timeout=KEEP_ALIVE_S,
            auto_decompress=False,  # a file has the bytes as sent, and nothing expands
        )
        self._runner = web.ServerRunner(connections, shutdown_timeout=DRAIN_S)
        await self._runner.setup()
        certificates = self._certificates
        tls = None if certificates is None else lambda: certificates.context
        self._listening = listening = CountedListener(connections.connection, self._limits, self._clock, tls)
        self.address = await listening.start(listen)
        if self._access is not None:
            self._access.on_refresh = self._drop_refused
        return self.address

    def _drop_refused(self) -> None:
        """End the open connections whose client would be refused now: its certificate is on a revocation list or has
        ended, or its authority was removed, or has no list in date."""
        if self._certificates is None or self._connections is None:
            return
        trust, now_s = self._certificates.trust, self._clock.wall_ms() / 1000

        def why(der: bytes, before: ClientTrust) -> str | None:
            return "its certificate has ended" if not_after(der) <= now_s else trust.why_refused(der, before, now_s)

        dropped = self._connections.drop(why)
        for reason in dict.fromkeys(reason for _, reason in dropped):
            count = sum(each == reason for _, each in dropped)
            logger.warning("ended connections of clients that would be refused now, because %s: %d", reason, count)
        for host, reason in dropped:
            self._audit.dropped(host, reason)

    async def close(self) -> None:
        """Give running uploads a moment to end, then stop. Idempotent."""
        listening, self._listening = self._listening, None
        if listening is not None:
            listening.close()
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        raw_path = request.raw_path.partition("?")[0]
        if (strange := self._strange(request)) is not None:
            return strange
        principal: Caller | None = None
        if self._access is not None and not self._access.authenticator.is_open:
            if raw_path == oauth2.ENDPOINT:
                return await self._access_token(request)
            if raw_path != "/health":
                try:
                    principal = self._authenticate(request)
                except UnauthenticatedError as error:
                    self._audit.refused(request.remote, error)
                    return await self._unauthenticated(request, str(error))
                self._audit.admitted(principal, request.remote)
        page = self._pages.get(raw_path)
        if raw_path == "/events" and request.method in ("GET", "HEAD"):
            return await self._events(request, principal)
        if page is not None and request.method in ("GET", "HEAD"):
            return await page(request)
        if request.headers.get("Expect"):
            await send_continue(request)
        if self._upload_log is not None:
            return await self._noted(request, principal, self._upload_log)
        return await self._webhdfs(request, principal)

    def _strange(self, request: web.BaseRequest) -> web.Response | None:
        """Refuse requests that no client of ours sends: they come from a page in a browser, or are forged."""
        found = origins.refusal(request.method, request.headers, self._scheme, self._hosts)
        return None if found is None else refused(found.status, found.reason)

    # -- authentication --------------------------------------------------------------------------------

    def _authenticate(self, request: web.BaseRequest) -> Caller | None:
        assert self._access is not None
        transport = request.transport
        certificate = None if transport is None else transport.get_extra_info("peercert")
        shown = RequestCredentials(
            certificate=certificate,
            certificate_end_s=None if not certificate else ssl.cert_time_to_seconds(certificate["notAfter"]),
            token=token_of(
                request.headers.get("Authorization"), Query(request.raw_path.partition("?")[2]).text("delegation")
            ),
        )
        now_ms = self._clock.wall_ms()  # every gateway reads the end of an access token by the wall clock
        try:
            return self._access.authenticator.principal(shown, now_ms)
        except UnauthenticatedError:
            if not self._access.refresh_for_unknown_token():
                raise
            return self._access.authenticator.principal(shown, now_ms)

    async def _unauthenticated(self, request: web.BaseRequest, reason: str) -> web.Response:
        """Answer 401 after a delay, and end the connection. Hadoop's client shows the reason phrase."""
        assert self._access is not None
        address = request.remote or "?"
        delay_s = self._access.failures.delay_s(address)
        self._unknown.warning(
            "refused a %s request from %s: it brought no valid token or client certificate", request.method, address
        )
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
        try:
            async with asyncio.timeout(self._limits.slow_s):
                while len(form) <= oauth2.FORM_MAX and (data := await request.content.readany()):
                    form += data
        except TimeoutError:
            return refused(408, "The form takes too long")
        shown, now_ms = request.headers.get("Authorization"), self._clock.wall_ms()
        given = oauth2.grant(self._access.book(), form, shown, now_ms)
        if given.status == 401 and self._access.refresh_for_unknown_token():
            given = oauth2.grant(self._access.book(), form, shown, now_ms)
        self._audit.granted(given, request.remote)
        if given.status == 401:
            self._unknown.warning("refused an access token to %s: the name or the token is wrong", request.remote)
            await asyncio.sleep(self._access.failures.delay_s(request.remote or "?"))
        reply = web.json_response(given.fields, status=given.status, headers={"Cache-Control": "no-store"})
        if given.status != 200:
            reply.force_close()
        return reply

    # -- WebHDFS ---------------------------------------------------------------------------------------

    async def _noted(self, request: web.BaseRequest, principal: Caller | None, log: UploadLog) -> web.StreamResponse:
        """Like :meth:`_webhdfs`, and note when uploads begin and when their answer has been sent."""
        raw_path, _, raw_query = request.raw_path.partition("?")
        query, path = Query(raw_query), raw_path.removeprefix(PREFIX)
        with suppress(BadTargetError):
            path = decode_path(path)
        name = query.op
        if name not in UPLOADS:
            return await self._webhdfs(request, principal)
        if is_step_one(query):
            log.on_request(name, path)
            return await self._webhdfs(request, principal)
        number, status = log.begun(name, path), 0
        try:
            response = await self._webhdfs(request, principal)
            if request.transport is not None and not request.transport.is_closing():
                await response.prepare(request)
                await response.write_eof()
                status = response.status
            return response
        finally:
            asyncio.get_running_loop().call_soon(log.answered, number, status)  # the loop has written it by then

    async def _webhdfs(self, request: web.BaseRequest, principal: Caller | None) -> web.StreamResponse:
        started = self._clock.monotonic()
        raw_path, _, raw_query = request.raw_path.partition("?")
        if raw_path != PREFIX and not raw_path.startswith(PREFIX + "/"):
            return not_found(raw_path)
        try:
            path = decode_path(raw_path[len(PREFIX) :])
        except BadTargetError:
            return web.Response(status=400, text=_BAD_REQUEST, content_type="text/html")
        query, authority = Query(raw_query), self._authority(request)
        takes, rights = partial(take_any_time, request), self._permissions
        asked = Request(request.method, path, query, authority, body(request), self._scheme, takes, principal, rights)
        name = operations.operation_name(asked)
        lasting = _LastingRequest(self, request, asked)
        self._long.begin(lasting)
        try:
            reply = await operations.perform(self._gateway, asked)
            self._audit.answered(asked, request.remote, reply)
            response = await self._respond(request, reply)
        except NotOwnerError as error:
            logger.warning("%s %s gets no answer, because its outcome is unknown: %s", name, one_line(path), error)
            self._requests.count(name, self._clock.monotonic() - started, ok=False)
            return hang_up(request)
        except WebHdfsError as error:
            response = await self._respond(request, refusal_reply(error))
        except BROKEN_OFF as error:
            logger.info("%s %s: the client went away: %s", name, one_line(path), one_line(error))
            return hang_up(request)
        except (BookKeeperError, JournalError, OSError) as error:
            logger.warning("%s %s failed: %s", name, one_line(path), one_line(error))
            response = await self._respond(request, refusal_reply(PlainIOError(str(error))))
        finally:
            self._long.end(lasting)
        self._requests.count(name, self._clock.monotonic() - started, ok=response.status < 400)
        return response

    def may_go_on(self, request: web.BaseRequest, asked: Request) -> bool:
        """Look anew at a request that is being served, and note in the audit log why it may go on no more."""
        caller = asked.principal
        try:
            if self._access is not None and not self._access.authenticator.is_open:
                caller = self._authenticate(request)
        except UnauthenticatedError as error:
            self._audit.denied(caller, request.remote, asked.path, error.why)
            return False
        if operations.operation_name(asked) == operations.OTHER:
            return True
        for _, denial in operations.denials(replace(asked, principal=caller)):
            self._audit.denied(caller, request.remote, asked.path, f"taken away: {denial.reason}")
            return False
        return True

    def _authority(self, request: web.BaseRequest) -> str:
        return request.headers.get("Host") or self._advertise or str(self.address)

    async def _respond(self, request: web.BaseRequest, reply: Reply) -> web.StreamResponse:
        headers = {"Cache-Control": "no-cache", **AS_IT_SAYS}
        if reply.location is not None:
            headers["Location"] = reply.location
        if reply.retry_after_s is not None:
            headers["Retry-After"] = str(reply.retry_after_s)
        if reply.content is not None:
            return await self._stream(request, reply.content, headers)
        kind = "application/json" if reply.is_json else "application/octet-stream"
        return web.Response(status=reply.status, body=reply.body, headers=headers, content_type=kind)

    async def _stream(
        self, request: web.BaseRequest, content: FileContents, headers: dict[str, str]
    ) -> web.StreamResponse:
        """Send a file. Its first bytes are read before the status is sent, so that a failure can still be reported."""
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
        except (WebHdfsError, BookKeeperError, OSError) as error:
            logger.warning("%s: %s", one_line(request.path), one_line(error))
            return hang_up(request)  # fewer bytes than announced: the client sees an error, not a short file
        return response

    # -- everything else -------------------------------------------------------------------------------

    async def _events(self, request: web.BaseRequest, caller: Caller | None) -> web.StreamResponse:
        prefix = request.query.get("prefix", "")
        root = common_directory(prefix)
        asked = Request("GET", root, Query("op=LISTSTATUS"), "", body(request), principal=caller)
        asked = replace(asked, permissions=self._permissions)
        for _, denial in operations.denials(asked):
            self._audit.denied(caller, request.remote, f"{root} (/events)", denial.reason)
            text = (
                f"{denial.who} may not see these events ({denial.reason}): give ?prefix=/PATH/ with a path below that\n"
            )
            return web.Response(status=403, text=text)
        subscription = self._gateway.events.subscribe()
        response = web.StreamResponse(headers={"Cache-Control": "no-cache", **AS_IT_SAYS})
        response.content_type = "application/x-ndjson"
        lasting = _LastingRequest(self, request, asked, subscription.end)
        self._long.begin(lasting)
        try:
            await response.prepare(request)
            await response.write(b'{"op":"subscribed"}\n')
            while True:
                try:
                    async with asyncio.timeout(HEARTBEAT_S):
                        event = await subscription.next()
                except TimeoutError:
                    await response.write(b"\n")
                    continue
                if event is None:
                    break
                seen = event.seen_by(lambda path: self._permissions.sees(caller, path_resource(path)))
                if seen is not None and seen.path.startswith(prefix):
                    await response.write(seen.line())
        except ConnectionError:
            pass
        finally:
            self._long.end(lasting)
            subscription.close()
        return response

    async def _health(self, request: web.BaseRequest) -> web.Response:
        gateway, session = self._gateway, self._gateway.session
        fields: dict[str, object] = {"role": gateway.role.value, "sure": bool(session and session.holds_lease)}
        if self._access is not None and not self._access.authenticator.is_open:
            return web.json_response(fields, status=200 if session else 503)
        if session is not None:
            fields |= {"epoch": session.epoch, "txid": session.durable_txid}
            fields["temporary_files"] = session.namespace.temporary_files
            fields["upload_bytes_in_memory"] = session.uploads.in_memory
        if gateway.problem is not None:
            fields["problem"] = str(gateway.problem)
        return web.json_response(fields, status=200 if session else 503)

    async def _metrics(self, request: web.BaseRequest) -> web.Response:
        if self._access is not None:
            self._access.update_metrics(self.metrics)
        self._count_connections(self.metrics)
        self._gateway.update_metrics(self.metrics)
        accept = ", ".join(request.headers.getall("Accept", ()))
        body, kind = await asyncio.to_thread(_metrics_page, self.metrics, accept)
        return web.Response(body=body, headers={"Content-Type": kind})

    def _count_connections(self, metrics: Metrics) -> None:
        assert self._listening is not None
        assert self._connections is not None
        metrics.gauge("connections", "Connections that are open now.").value = self._listening.connections
        metrics.gauge("tls_handshakes", "TLS handshakes that are under way now.").value = self._listening.handshakes
        metrics.counter(
            "connections_refused_total", "Connections that were closed because a limit was reached."
        ).value = self._listening.refused
        metrics.counter(
            "slow_clients_total", "Connections that were closed because the client was too slow."
        ).value = self._connections.slow


class _LastingRequest:
    """A request that is being served. When its client may go on no more, its connection ends: a client that sends a
    file reads no answer, and asks again with what it has."""

    __slots__ = ("_asked", "_end", "_request", "_server")

    def __init__(
        self, server: HttpServer, request: web.BaseRequest, asked: Request, end: Callable[[], None] | None = None
    ) -> None:
        """``end`` ends it in good order, where that can be."""
        self._end = end
        self._server = server
        self._request = request
        self._asked = asked

    @property
    def ends_ms(self) -> int | None:
        """When its credential ends."""
        return None if self._asked.principal is None else self._asked.principal.ends_ms

    def recheck(self) -> bool:
        """End it, if it may go on no more."""
        if self._request.transport is None or self._request.transport.is_closing():
            return False
        if self._server.may_go_on(self._request, self._asked):
            return True
        end, self._end = self._end, None
        if end is not None:
            end()
        else:
            hang_up(self._request)
        return False


def _metrics_page(metrics: Metrics, accept: str) -> tuple[bytes, str]:
    from bookkeeper.exposition import server_page  # its library is slow to load: see the module

    return server_page(metrics, accept)
