"""What every call has: who asks, which streams it may name, errors as statuses, and metrics. It knows gRPC.

A service is a table of plain functions: ``async (request, call) -> reply``, or an async generator of replies; a call
that streams requests gets an iterator of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import grpc

from bookkeeper.gateways.authentication import AuthenticationFailures, UnauthenticatedError
from bookkeeper.gateways.tokens import Principal
from bookkeeper.rate_limited_log import RateLimitedLogger
from bookkeeper.seams import Clock
from segments.errors import StreamAccessError, StreamError, StreamInvariantError
from segments.gateway.gateway_metrics import GatewayMetrics
from segments.gateway.port_security import CallerCheck
from segments.rpc import segments_pb2 as pb
from segments.rpc.methods import METHODS, SERVICES, Method
from segments.rpc.refusals import TRAILER, as_stream_error, code_of, put_error, status_of

logger = logging.getLogger(__name__)

Behaviour = Callable[[Any, "GrpcCall"], Any]
"""A coroutine function, or a function that returns an async iterator, by the call's shape."""


@dataclass(frozen=True, slots=True)
class GrpcCall:
    """One call."""

    principal: Principal | None
    """Who sent it; None if nobody is asked."""
    is_still_good: Callable[[], bool]
    """Whether the credentials of a long call are still valid."""

    def may_use(self, stream: str) -> bool:
        """Whether the caller may do anything with this stream."""
        return self.principal is None or self.principal.holds(f"/{stream.removeprefix('/')}")

    def require(self, stream: str) -> None:
        """Check that the caller may use the stream.

        Raises:
            StreamAccessError: it may not.
        """
        if not self.may_use(stream):
            assert self.principal is not None
            raise StreamAccessError(
                f"{self.principal.name} may not use stream {stream}: its token is valid below "
                f"{', '.join(self.principal.roots)}",
                stream=stream,
            )

    def require_all(self) -> None:
        """Check that the caller may use every stream.

        Raises:
            StreamAccessError: it may not.
        """
        if self.principal is not None and not self.principal.holds("/"):
            raise StreamAccessError(
                f"{self.principal.name} may not look at all streams: its token is valid below "
                f"{', '.join(self.principal.roots)}; name one stream"
            )


class CallGuard:
    """Turns behaviours into gRPC's handlers."""

    def __init__(
        self, caller: CallerCheck | None, failures: AuthenticationFailures | None, metrics: GatewayMetrics, clock: Clock
    ) -> None:
        """``caller`` is None for a port that asks nobody."""
        self._caller = caller
        self._failures = failures
        self._metrics = metrics
        self._clock = clock
        self._log = RateLimitedLogger(logger, clock.monotonic)

    def handlers(self, behaviours: Mapping[str, Behaviour]) -> list[Any]:
        """One handler of gRPC for each service. ``behaviours``: by service and name, ``Streams.Create``.

        A call of the protocol without a behaviour is answered with UNIMPLEMENTED.
        """
        found = []
        for service in SERVICES:
            calls = {
                method.name: self._handler(method, behaviours[key])
                for key, method in METHODS.items()
                if method.service == service and key in behaviours
            }
            found.append(grpc.method_handlers_generic_handler(service, calls))
        return found

    def _handler(self, method: Method, behaviour: Behaviour) -> Any:
        serialize = method.reply.SerializeToString
        if method.streams_replies:
            make = (
                grpc.stream_stream_rpc_method_handler
                if method.streams_requests
                else grpc.unary_stream_rpc_method_handler
            )
            return make(self._streaming(method, behaviour), method.parse_request, serialize)
        return grpc.unary_unary_rpc_method_handler(self._single(method, behaviour), method.parse_request, serialize)

    def _single(self, method: Method, behaviour: Behaviour) -> Callable[[Any, Any], Any]:
        async def answer(request: Any, context: Any) -> Any:
            began, status = self._clock.monotonic(), "OK"
            try:
                return await behaviour(request, await self._call(context))
            except Exception as error:  # whatever it is, the client gets a status and a reason
                status = self._refuse(context, method, error)
                return method.reply()
            except asyncio.CancelledError:
                status = "CANCELLED"
                raise
            finally:
                self._metrics.answered(method.path, self._clock.monotonic() - began, status)

        return answer

    def _streaming(self, method: Method, behaviour: Behaviour) -> Callable[[Any, Any], AsyncIterator[Any]]:
        async def answer(request: Any, context: Any) -> AsyncIterator[Any]:
            began, status = self._clock.monotonic(), "OK"
            try:
                async for reply in behaviour(request, await self._call(context)):
                    yield reply
            except Exception as error:  # as above
                status = self._refuse(context, method, error)
            except (asyncio.CancelledError, GeneratorExit):
                status = "CANCELLED"
                raise
            finally:
                self._metrics.answered(method.path, self._clock.monotonic() - began, status)

        return answer

    async def _call(self, context: Any) -> GrpcCall:
        caller = self._caller
        if caller is None:
            return GrpcCall(None, _always)
        try:
            principal = caller.principal(context)
        except UnauthenticatedError:
            if self._failures is not None:
                await asyncio.sleep(self._failures.delay_s(_host_of(context.peer())))
            raise

        def is_still_good() -> bool:
            try:
                return bool(caller.principal(context) == principal)
            except UnauthenticatedError:
                return False

        return GrpcCall(principal, is_still_good)

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


def _always() -> bool:
    return True


def _host_of(peer: str) -> str:
    """The address in gRPC's words: ipv4:127.0.0.1:40000, or ipv6:%5B::1%5D:40000."""
    return unquote(peer.partition(":")[2].rpartition(":")[0]).strip("[]") or peer
