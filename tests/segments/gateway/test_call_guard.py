from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from bookkeeper.gateways.tokens import Principal
from bookkeeper.real import SystemClock
from segments.errors import StreamAccessError, StreamNotFoundError
from segments.gateway.call_guard import CallGuard, GrpcCall
from segments.gateway.gateway_metrics import GatewayMetrics
from segments.rpc import segments_pb2 as pb
from segments.rpc.methods import METHODS, SERVICES
from segments.rpc.refusals import TRAILER


class Context:
    """What gRPC hands to a call."""

    def __init__(self) -> None:
        self.code: Any = None
        self.details = ""
        self.trailers: Any = ()

    def set_code(self, code: Any) -> None:
        self.code = code

    def set_details(self, details: str) -> None:
        self.details = details

    def set_trailing_metadata(self, trailers: Any) -> None:
        self.trailers = trailers


class Details:
    def __init__(self, method: str) -> None:
        self.method = method
        self.invocation_metadata = ()


def handler(behaviours: dict[str, Any], key: str) -> Any:
    guard = CallGuard(None, None, GatewayMetrics(), SystemClock())
    path = METHODS[key].path
    made = guard.handlers(behaviours)
    assert len(made) == len(SERVICES)
    return next(found for each in made if (found := each.service(Details(path))) is not None)


async def test_an_error_becomes_a_status_and_a_message_with_all_of_it() -> None:
    async def get(request: pb.GetStreamRequest, call: GrpcCall) -> pb.StreamInfo:
        assert call.principal is None
        assert call.is_still_good()
        raise StreamNotFoundError(f"no stream {request.stream}", stream=request.stream)

    context = Context()
    reply = await handler({"Streams.Get": get}, "Streams.Get").unary_unary(pb.GetStreamRequest(stream="s"), context)
    assert reply == pb.StreamInfo()
    assert (context.code.name, context.details) == ("NOT_FOUND", "no stream s")
    [(name, value)] = context.trailers
    detail = pb.SegmentError.FromString(value)
    assert (name, detail.code, detail.stream) == (TRAILER, "stream-not-found", "s")


async def test_a_bug_becomes_a_status_too_and_never_says_that_nothing_was_done() -> None:
    async def replies(request: pb.ReadRequest, call: GrpcCall) -> AsyncIterator[pb.ReadReply]:
        yield pb.ReadReply(generation=1)
        raise ZeroDivisionError("oops")

    context = Context()
    found = [
        each async for each in handler({"Read.Read": replies}, "Read.Read").unary_stream(pb.ReadRequest(), context)
    ]
    assert [each.generation for each in found] == [1]
    assert context.code.name == "INTERNAL"
    assert pb.SegmentError.FromString(context.trailers[0][1]).outcome == pb.OUTCOME_UNKNOWN


def test_a_principal_may_use_the_streams_below_its_roots() -> None:
    call = GrpcCall(Principal("etl", ("/a", "/b/c")), lambda: True)
    for name in ("a", "a/x", "b/c"):
        call.require(name)
    for name in ("ab", "b", "c", ""):
        with pytest.raises(StreamAccessError, match="etl may not use stream"):
            call.require(name)
    with pytest.raises(StreamAccessError, match="may not look at all streams: its token is valid below /a, /b/c"):
        call.require_all()
    GrpcCall(Principal("root", ("/",)), lambda: True).require_all()
    nobody = GrpcCall(None, lambda: True)
    assert nobody.may_use("anything")
    nobody.require_all()
