"""The server of the API.

A connection's thread receives a request's head. The loop decides which route it means and who sends it; then the body
is received, and the loop carries it out. A long answer is pulled from the loop piece by piece, as fast as it is sent.
"""

from __future__ import annotations

import asyncio
import logging
from asyncio import CancelledError
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

from bookkeeper.audit import AuditAction, AuditLog
from bookkeeper.bookie.health.health import PageReply
from bookkeeper.bookie.health.health_pages import BodyError, Health, PageRequest
from bookkeeper.bookie.health.health_server import HealthServer
from bookkeeper.bookie.http_api_config import HttpApiConfig
from bookkeeper.bookie.lifecycle import BookieServer
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.operators import Operator
from bookkeeper.client.tasks import Tasks
from bookkeeper.errors import BookKeeperError, in_words
from bookkeeper.http_api.admission import RequestAdmission
from bookkeeper.http_api.autorecovery_calls import AutorecoveryCalls
from bookkeeper.http_api.background import BackgroundWork
from bookkeeper.http_api.bookie_calls import BookieCalls
from bookkeeper.http_api.ledger_calls import LedgerCalls
from bookkeeper.http_api.local_calls import LocalCalls
from bookkeeper.http_api.request import DENIED, ApiRequest, Call, JsonStream, RefusedRequestError, parameters
from bookkeeper.http_api.routes import METHODS, ROUTES, Match, find
from bookkeeper.http_api.shapes import settings_document
from bookkeeper.ids import Address
from bookkeeper.meta.records.autorecovery import AutorecoveryNodes
from bookkeeper.metrics import Metrics

log = logging.getLogger(__name__)

T = TypeVar("T")

CALLS_MAX: Final = 16
"""Calls that are carried out at a time. One more is answered 503."""
CALL_S: Final = 60.0
"""Seconds after which a call, or the next piece of its answer, is given up."""


class HttpApi:
    """The API of one process. :meth:`start` once, :meth:`close` once."""

    def __init__(
        self,
        config: HttpApiConfig,
        client: BookKeeper,
        *,
        name: str,
        settings: Any,
        pages: Mapping[str, Health],
        metrics: Metrics,
        refresh: Callable[[], None] = lambda: None,
        audit: AuditLog,
        bookie: BookieServer | None = None,
    ) -> None:
        """
        Args:
            name: of the process, for others: the bookie's id.
            settings: of the process; those that could hold a secret are not shown.
            pages: what is shown to everybody, by route.
            bookie: the bookie in this process, if there is one.

        Raises:
            ConfigError: the file of tokens cannot be used.
        """
        self._config, self._client, self._settings = config, client, settings
        self._pages, self._metrics, self._refresh = pages, metrics, refresh
        self._is_bookie = bookie is not None
        self._counts = RequestCounts(metrics, "" if self._is_bookie else "autorecovery_")
        metadata, seams = client.metadata_store, client.services.seams
        self._workers = seams.workers
        self._admission = RequestAdmission(config, metadata, seams, metrics, audit, name)
        self._background = BackgroundWork(self._ended)
        self._tasks = Tasks("http api")
        self._loop = asyncio.get_running_loop()
        self._server: HealthServer | None = None
        self._under_way = 0
        operator, nodes = Operator(client), AutorecoveryNodes(metadata.store, metadata.paths)
        self._calls: dict[tuple[str, str], Call] = {
            ("GET", "/api/v1/config/server_config"): self._show_settings,
            ("PUT", "/api/v1/config/server_config"): self._refuse_settings,
            **LedgerCalls(operator, self._admission.require).calls,
            **BookieCalls(operator, nodes).calls,
            **AutorecoveryCalls(operator, nodes, self._background, self._admission.require).calls,
        }
        if bookie is not None:
            self._calls |= LocalCalls(bookie, metadata, seams.disk, self._background).calls

    @property
    def address(self) -> Address:
        """Where it serves."""
        assert self._server is not None, "not started"
        return self._server.address

    async def start(self) -> None:
        """Serve. Raises: OSError: the address cannot be had; MetadataError: the store does not answer."""
        await self._admission.start()
        self._tasks.start(self._admission.watch(), "follow tokens and policy")
        wanted = Address.parse(self._config.listen)
        worker = self._workers.worker("http api")
        try:
            self._server = HealthServer.start(
                wanted,
                self._pages,
                self._metrics,
                self._refresh,
                worker,
                self._answer_in_thread,
                self._admission.secure,
            )
        except OSError as error:
            await self.close()
            text = f"cannot listen at {wanted} for the HTTP API: {in_words(error)}; choose another --http-api"
            raise OSError(error.errno, text) from error

    async def close(self) -> None:
        """Serve no more, and end what goes on in the background. Idempotent."""
        server, self._server = self._server, None
        await self._tasks.close()
        await self._background.close()
        if server is not None:
            server.close()

    # -- in a connection's thread -----------------------------------------------------------------------------

    def _answer_in_thread(self, request: PageRequest) -> PageReply:
        reply = self._answered_in_thread(request)
        with suppress(RuntimeError):  # the loop has ended meanwhile
            self._loop.call_soon_threadsafe(self._counts.answered, request.method, request.path, reply.code)
        return reply

    def _answered_in_thread(self, request: PageRequest) -> PageReply:
        found = find(request.method, request.path, is_bookie=self._is_bookie)
        if isinstance(found, PageReply):
            return found
        if found.method.open:  # a page of this name would have answered
            return PageReply(200, "OK\n") if found.route.path == "/heartbeat" else PageReply(404, "no bookie is here")
        try:
            caller = self._on_loop(
                self._admission.admit(request, found.method.action, f"{request.method} {found.route.path}")
            )
            if isinstance(caller, PageReply):
                return caller
            asked = ApiRequest(
                request.method,
                found.route.path,
                parameters(request.query),
                request.read_body(),
                caller.name,
                request.host,
            )
        except BodyError as error:
            return error.reply
        except RefusedRequestError as error:
            return PageReply(error.status, str(error))
        still = partial(
            self._admission.require_still, request, found.method.action, f"{request.method} {found.route.path}"
        )
        reply = self._on_loop(self._carry_out(asked, found, still))
        return PageReply(200, _Pieces(reply, self._on_loop)) if isinstance(reply, _Pull) else reply

    def _on_loop(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it on the loop, and wait."""
        return asyncio.run_coroutine_threadsafe(self._bounded(work), self._loop).result()

    async def _bounded(self, work: Coroutine[Any, Any, T]) -> T:
        found: T = await self._tasks.start(work, "request", awaited=True)
        return found

    # -- on the loop ------------------------------------------------------------------------------------------

    async def _carry_out(self, request: ApiRequest, found: Match, still: Callable[[], None]) -> PageReply | _Pull:
        if self._under_way >= CALLS_MAX:
            return PageReply(503, f"{CALLS_MAX} requests are being answered: ask again later")
        self._under_way += 1
        try:
            reply = await self._reply(request, found, still)
        finally:
            self._under_way -= 1
        if found.method.action is not None:
            self._note(request, reply)
        return reply

    async def _reply(self, request: ApiRequest, found: Match, still: Callable[[], None]) -> PageReply | _Pull:
        try:
            still()  # receiving its body may have taken long
            async with asyncio.timeout(CALL_S):
                reply = await self._calls[request.method, found.route.path](request)
                return await _Pull.begun(reply, still) if isinstance(reply, JsonStream) else reply
        except RefusedRequestError as error:
            return PageReply(error.status, str(error))
        except TimeoutError:  # before OSError, of which it is one
            return PageReply(500, f"it was not done within {CALL_S:.0f} s: it may have been done, or be done yet")
        except (BookKeeperError, OSError) as error:
            return PageReply(500, in_words(error))
        except Exception:  # unexpected, and logged as such; the process goes on
            log.exception("a request to %s over HTTP ended unexpectedly", request.path)
            return PageReply(500, "it ended unexpectedly: the log of this process says how")

    def _note(self, request: ApiRequest, reply: PageReply | _Pull) -> None:
        """Note what was changed, or why it was not. Who was not allowed to is noted already."""
        code, reason = (reply.code, str(reply.body)) if isinstance(reply, PageReply) else (200, "")
        if code == DENIED:
            return
        what = AuditAction.DELETE if request.method == "DELETE" else AuditAction.ADMINISTER
        done = code < 400
        self._admission.audit.note(
            what, request.caller, request.host, request.what, allowed=done, reason="" if done else reason
        )

    def _ended(self, who: str, what: str, problem: str) -> None:
        self._admission.audit.note(
            AuditAction.ADMINISTER, who, "", f"end of {what}", allowed=not problem, reason=problem
        )

    async def _show_settings(self, request: ApiRequest) -> PageReply:
        return PageReply(200, settings_document(self._settings))

    async def _refuse_settings(self, request: ApiRequest) -> PageReply:
        return PageReply(
            404, "Settings are read when the process starts: change its file or options, and start it anew"
        )


class _Pull:
    """A long answer whose first piece is there: what is wrong from the beginning is told by the status."""

    def __init__(self, first: bytes, rest: AsyncGenerator[bytes, None], still: Callable[[], None]) -> None:
        self.first: bytes | None = first
        self._rest = rest
        self._still = still

    @classmethod
    async def begun(cls, stream: JsonStream, still: Callable[[], None] = lambda: None) -> _Pull:
        """``still`` raises when whoever asked may have no more of it."""
        rest = stream.chunks()
        return cls(await anext(rest), rest, still)

    async def next(self) -> bytes | None:
        """The next piece; None: that was all."""
        if (first := self.first) is not None:
            self.first = None
            return first
        self._still()
        async with asyncio.timeout(CALL_S):
            return await anext(self._rest, None)

    async def close(self) -> None:
        """End it where it is."""
        await self._rest.aclose()


class _Pieces:
    """The pieces of an answer, for the thread that sends them."""

    def __init__(self, pull: _Pull, on_loop: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        self._pull, self._on_loop = pull, on_loop

    def __iter__(self) -> Iterator[bytes]:
        try:
            while (piece := self._on_loop(self._pull.next())) is not None:
                yield piece
        except (BookKeeperError, OSError, TimeoutError, CancelledError) as error:
            log.warning(
                "an answer over HTTP ends in its middle, so that nobody takes it for whole: %s", in_words(error)
            )

    def close(self) -> None:
        """End it: everything was sent, or the connection is gone."""
        self._on_loop(self._pull.close())


OTHER: Final = "other"
"""What stands for every path that is no route, and for every method that no route has: clients choose those, and each
would be a number of its own."""


class RequestCounts:
    """The numbers of one process's API, added to ``metrics``; ``name`` is what they begin with."""

    def __init__(self, metrics: Metrics, name: str) -> None:
        self._metrics, self._name = metrics, f"{name}http_api_requests_total"

    def answered(self, method: str, path: str, status: int) -> None:
        """Count a request whose answer has begun."""
        route = ROUTES.get(path.removesuffix("/") if len(path) > 1 else path)
        self._metrics.counter(
            self._name,
            "Requests to the HTTP API that were answered, but for those that ask how this process is.",
            method=method if method in METHODS else OTHER,
            route=OTHER if route is None else route.path,
            status=str(status),
        ).add()
