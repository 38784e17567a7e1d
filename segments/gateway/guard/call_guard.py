"""What every call has: who asks, what he may do, its bytes, errors as statuses, and metrics. It knows gRPC.

All that a call needs is asked before anything of its messages is received: who sends it, by its metadata and its
connection's certificate, and whether there is room. gRPC receives a message only when it is asked for one, so every
call, also one with a single request, is served as a stream of requests, as bytes; they are counted before they are
parsed. When a message is parsed, the rights that it needs are asked for, before its behaviour sees it
(:mod:`segments.gateway.guard.request_rights`): the caller's, never the gateway's own.

A service is a table of plain functions: ``async (request, call) -> reply``, or an async generator of replies; a call
that streams requests gets an iterator of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import grpc
import grpc.aio

from bookkeeper.gateways.authentication import AuthenticationFailures, UnauthenticatedError
from bookkeeper.gateways.caller import Caller
from bookkeeper.gateways.gateway_audit import GatewayAudit
from bookkeeper.gateways.long_requests import LongRequests
from bookkeeper.gateways.permissions import CallerRights
from bookkeeper.rate_limited_log import RateLimitedLogger
from bookkeeper.seams import Clock
from segments.errors import (
    StreamAccessError,
    StreamConfigError,
    StreamError,
    StreamInvariantError,
    StreamNotReadyError,
    StreamOverloadedError,
)
from segments.gateway.budget.call_budget import CallBudget
from segments.gateway.budget.call_bytes import CallBytes
from segments.gateway.budget.caller_address import host_of, network_of
from segments.gateway.config import GrpcLimits
from segments.gateway.gateway_metrics import GatewayMetrics
from segments.gateway.guard.call_audit import CallAudit
from segments.gateway.guard.grpc_call import GrpcCall
from segments.gateway.guard.port_security import CallerCheck, CallFacts
from segments.gateway.guard.request_parser import RequestParser
from segments.gateway.guard.request_rights import RIGHTS, RequestRights
from segments.protocol import segments_pb2 as pb
from segments.protocol.methods import METHODS, SERVICES, Method
from segments.protocol.refusals import TRAILER, as_stream_error, code_of, put_error, status_of

logger = logging.getLogger(__name__)

Behaviour = Callable[[Any, GrpcCall], Any]
"""A coroutine function, or a function that returns an async iterator, by the call's shape."""


LATE_S: Final = 1.0
"""Seconds after which it is asked again who sends a request that had not come whole."""

DELAYED_MAX: Final = 500
"""Refused calls that wait for their answer; one more is answered at once."""


class CallGuard:
    """Turns behaviours into gRPC's handlers."""

    def __init__(
        self,
        caller: CallerCheck | None,
        failures: AuthenticationFailures | None,
        metrics: GatewayMetrics,
        clock: Clock,
        limits: GrpcLimits | None = None,
        audit: CallAudit | None = None,
        permissions: CallerRights | None = None,
    ) -> None:
        """``caller`` is None for a port that asks nobody."""
        self._caller = caller
        self._permissions = permissions = permissions or CallerRights()
        self._open = LongRequests(lambda: (caller.generation if caller else 0, permissions.version), clock.wall_ms)
        self._failures = failures
        self._metrics = metrics
        self._clock = clock
        self._limits = limits = limits or GrpcLimits()
        self._audit = audit or CallAudit(GatewayAudit(clock))
        self._delayed = 0
        self.budget = CallBudget(
            bytes_max=limits.call_bytes_max,
            address_bytes_max=limits.address_bytes_max,
            address_calls_max=limits.address_calls_max,
        )
        self._log = RateLimitedLogger(logger, clock.monotonic)

    def for_anybody(self, limits: GrpcLimits) -> CallGuard:
        """Another one that asks nobody, with a budget of its own."""
        return CallGuard(None, None, self._metrics, self._clock, limits)

    def handlers(self, behaviours: Mapping[str, Behaviour]) -> list[Any]:
        """One handler of gRPC for each service. ``behaviours``: by service and name, ``Streams.Create``.

        A call of the protocol without a behaviour is answered with UNIMPLEMENTED. One without a decision about its
        rights is an error here.
        """
        found = []
        for service in SERVICES:
            calls = {
                method.name: self.handler(method, behaviours[key], RIGHTS[key])
                for key, method in METHODS.items()
                if method.service == service and key in behaviours
            }
            found.append(grpc.method_handlers_generic_handler(service, calls))
        return found

    def handler(self, method: Method, behaviour: Behaviour, rights: RequestRights | None = None) -> Any:
        """gRPC's handler of one call. Whatever its shape, gRPC hands over its requests as a stream of bytes.

        ``rights``: what it needs; None for a call that tells nothing of any stream.
        """
        parser = RequestParser(method, self._limits.request_elements_max, rights)
        serialize = method.reply.SerializeToString
        if method.streams_replies:
            return grpc.stream_stream_rpc_method_handler(self._streaming(method, parser, behaviour), None, serialize)
        return grpc.stream_unary_rpc_method_handler(self._single(method, parser, behaviour), None, serialize)

    def _single(self, method: Method, parser: RequestParser, behaviour: Behaviour) -> Callable[[Any, Any], Any]:
        async def answer(_: Any, context: Any) -> Any:
            facts = CallFacts.of(context, asks=self._caller is not None)
            began, status, network = self._clock.monotonic(), "OK", network_of(facts.peer)
            call, request = None, None
            failure: BaseException | None = None
            try:
                call = await self._begin(facts, network)
                request = await self._request(parser, context, call)
                if parser.makes:
                    await call.charge_in_time(1, 0)
                return await behaviour(request, call)
            except Exception as error:  # whatever it is, the client gets a status and a reason
                status, failure = self._refuse(context, method, error), error
                return method.reply()
            except asyncio.CancelledError as error:
                status, failure = "CANCELLED", error
                raise
            finally:
                self._end(call, network)
                self._note(method, call, facts, request, failure)
                self._metrics.answered(method.path, self._clock.monotonic() - began, status)

        return answer

    def _streaming(
        self, method: Method, parser: RequestParser, behaviour: Behaviour
    ) -> Callable[[Any, Any], AsyncIterator[Any]]:
        async def answer(_: Any, context: Any) -> AsyncIterator[Any]:
            facts = CallFacts.of(context, asks=self._caller is not None)
            began, status, network = self._clock.monotonic(), "OK", network_of(facts.peer)
            call: GrpcCall | None = None
            opened: OpenCall | None = None
            failure: BaseException | None = None
            first: list[Any] = []
            try:
                call = await self._begin(facts, network)
                opened = OpenCall(call, asyncio.current_task())
                call.stop = opened.recheck
                self._open.begin(opened)
                if method.streams_requests:
                    request: Any = _requests(parser, context, call, first)
                else:
                    request = await self._request(parser, context, call)
                    first.append(request)
                async for reply in behaviour(request, call):
                    opened.is_sending = True
                    yield reply
                    opened.is_sending = False
                    if call.ended is not None and call.on_end is None:
                        raise call.ended
            except Exception as error:  # as above
                status, failure = self._refuse(context, method, error), error
            except (asyncio.CancelledError, GeneratorExit) as error:
                ended = None if call is None else call.ended
                if ended is None or (opened is not None and opened.is_sending):
                    status, failure = "CANCELLED", ended or error
                    raise
                status, failure = self._refuse(context, method, ended), ended
            finally:
                if opened is not None:
                    self._open.end(opened)
                self._end(call, network)
                self._note(method, call, facts, first[0] if first else None, failure)
                self._metrics.answered(method.path, self._clock.monotonic() - began, status)

        return answer

    def _note(
        self, method: Method, call: GrpcCall | None, facts: CallFacts, request: Any, failure: BaseException | None
    ) -> None:
        principal = None if call is None else call.caller
        self._audit.answered(method.key, principal, host_of(facts.peer), request, failure)

    async def _begin(self, facts: CallFacts, network: str) -> GrpcCall:
        """Let a call in, by what came before its first message.

        Raises:
            UnauthenticatedError: nobody knows who sends it. StreamOverloadedError: its address has too many calls.
        """
        caller, again = await self._authenticate(facts)
        self._audit.admitted(caller, host_of(facts.peer))
        if not self.budget.enter(network):
            raise StreamOverloadedError(
                f"{self._limits.address_calls_max} calls of this address are in progress, which is the limit: nothing "
                "of this one was looked at; try again when others have ended"
            )
        return GrpcCall(caller, again, CallBytes(self.budget, network), self._permissions)

    def _end(self, call: GrpcCall | None, network: str) -> None:
        if call is not None and call.bytes is not None:
            call.bytes.close()
            self.budget.leave(network)

    async def _authenticate(self, facts: CallFacts) -> tuple[Caller | None, Callable[[], Caller | None] | None]:
        check = self._caller
        if check is None:
            return None, None
        try:
            return check.principal(facts), lambda: check.principal(facts)
        except UnauthenticatedError:
            await self._delay(facts)
            raise

    async def _delay(self, facts: CallFacts) -> None:
        """Let a refused caller wait. Nothing of its messages is received meanwhile; the few bytes that gRPC takes
        unasked are bounded by how many wait."""
        if self._failures is None:
            return
        delay_s = self._failures.delay_s(network_of(facts.peer))
        if self._delayed < DELAYED_MAX:
            self._delayed += 1
            try:
                await asyncio.sleep(delay_s)
            finally:
                self._delayed -= 1

    async def _request(self, parser: RequestParser, context: Any, call: GrpcCall) -> Any:
        """The message of a call with one request. Raises: StreamConfigError, StreamNotReadyError. StreamAccessError:
        the caller may not ask for it, or his credential is gone since the call began."""
        began = self._clock.monotonic()
        try:
            async with asyncio.timeout(self._limits.message_s):
                request = await _next(parser, context, call, reserve=self._limits.message_bytes_max)
        except TimeoutError as error:
            raise StreamNotReadyError(
                f"the request was not there after {self._limits.message_s:g} s, and nothing of it was done: try again"
            ) from error
        if request is None:
            raise StreamConfigError("the call ended before its request came")
        if self._clock.monotonic() > began + LATE_S and (ended := call.recheck()) is not None:
            raise ended
        return request

    def _refuse(self, context: Any, method: Method, error: Exception) -> str:
        """Give the call a status instead of a reply. Returns the status code's name."""
        if isinstance(error, UnauthenticatedError):
            status, detail = (
                "UNAUTHENTICATED",
                pb.SegmentError(code=code_of(StreamAccessError), message=str(error), outcome=pb.OUTCOME_NOT_APPLIED),
            )
        else:
            refusal = as_stream_error(error)
            if isinstance(refusal, StreamInvariantError) or not isinstance(error, StreamError):
                self._log.warning("%s failed: %r", method.path, error)
            status, detail = status_of(refusal), put_error(refusal)
        context.set_code(getattr(grpc.StatusCode, status))
        context.set_details(detail.message)
        context.set_trailing_metadata(((TRAILER, detail.SerializeToString()),))
        return status


async def _requests(parser: RequestParser, context: Any, call: GrpcCall, first: list[Any]) -> AsyncIterator[Any]:
    """The messages of a call, as they come and as there is room; ``first`` keeps the first one. Raises:
    StreamConfigError."""
    while (request := await _next(parser, context, call)) is not None:
        if not first:
            first.append(request)
        yield request
        if not parser.answers_each:
            call.release_oldest()


async def _next(parser: RequestParser, context: Any, call: GrpcCall, *, reserve: int = 0) -> Any:
    """The next message; None if none comes. Raises: StreamConfigError. StreamAccessError: he may not ask for it."""
    assert call.bytes is not None
    await call.bytes.room(reserve)
    raw = await context.read()
    if raw is grpc.aio.EOF:
        return None
    call.bytes.received(len(raw), parser.elements(raw))
    request = parser.parse(raw)
    for stream, needs in parser.needs(request):
        call.require(stream, needs)
    return request


@dataclass(slots=True, eq=False)
class OpenCall:
    """A call that is being served by a task."""

    call: GrpcCall
    task: asyncio.Task[object] | None
    is_sending: bool = False
    """Whether a reply is on its way: then the call ends behind it, unless its client does not read."""
    _asked_to_end: bool = False

    @property
    def ends_ms(self) -> int | None:
        """When its credential ends, in milliseconds since 1970."""
        return None if self.call.caller is None else self.call.caller.ends_ms

    def recheck(self) -> bool:
        """End the call if its credential or a right is gone: at first in good order, then by force. Returns whether it
        may go on."""
        error = self.call.recheck()
        if error is None:
            return True
        was_told, self._asked_to_end = self._asked_to_end, True
        if not was_told and self.call.on_end is not None:
            self.call.on_end(error)
        elif self.task is not None and (was_told or not self.is_sending):
            self.task.cancel()
        return False
