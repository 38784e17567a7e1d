from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import grpc.aio
import pytest

from bookkeeper.access import Principal, QuotaKind, QuotaRefusal
from bookkeeper.gateways.authentication import AuthenticationFailures, UnauthenticatedError
from bookkeeper.gateways.caller import Caller
from bookkeeper.gateways.permissions import CallerRights
from bookkeeper.real import SystemClock
from segments.errors import StreamNotFoundError
from segments.gateway.config import GrpcLimits
from segments.gateway.gateway_metrics import GatewayMetrics
from segments.gateway.guard import call_guard
from segments.gateway.guard.call_guard import CallGuard
from segments.gateway.guard.grpc_call import GrpcCall
from segments.gateway.guard.port_security import CallFacts
from segments.gateway.guard.request_rights import MAKES
from segments.protocol import segments_pb2 as pb
from segments.protocol.methods import METHODS, SERVICES
from segments.protocol.refusals import TRAILER


class Context:
    """What gRPC hands to a call: here with the messages that its client sends."""

    def __init__(self, *messages: bytes, peer: str = "ipv4:10.0.0.1:4000") -> None:
        self._messages = list(messages)
        self._peer = peer
        self.reads = 0
        self.code: Any = None
        self.details = ""
        self.trailers: Any = ()
        self.is_over = False
        """Whether gRPC has freed the call, as it does when the client is gone: to ask for its peer ends the process."""

    def peer(self) -> str:
        assert not self.is_over, "the call is freed"
        return self._peer

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        assert not self.is_over, "the call is freed"
        return ()

    def auth_context(self) -> dict[str, Any]:
        assert not self.is_over, "the call is freed"
        return {}

    async def read(self) -> Any:
        self.reads += 1
        return self._messages.pop(0) if self._messages else grpc.aio.EOF

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


def handler(behaviours: dict[str, Any], key: str, guard: CallGuard | None = None) -> Any:
    guard = guard or CallGuard(None, None, GatewayMetrics(), SystemClock())
    path = METHODS[key].path
    made = guard.handlers(behaviours)
    assert len(made) == len(SERVICES)
    return next(found for each in made if (found := each.service(Details(path))) is not None)


async def test_an_error_becomes_a_status_and_a_message_with_all_of_it() -> None:
    async def get(request: pb.GetStreamRequest, call: GrpcCall) -> pb.StreamInfo:
        assert call.caller is None
        assert call.recheck() is None
        raise StreamNotFoundError(f"no stream {request.stream}", stream=request.stream)

    context = Context(pb.GetStreamRequest(stream="s").SerializeToString())
    reply = await handler({"Streams.Get": get}, "Streams.Get").stream_unary(None, context)
    assert reply == pb.StreamInfo()
    assert (context.code.name, context.details) == ("NOT_FOUND", "no stream s")
    [(name, value)] = context.trailers
    detail = pb.SegmentError.FromString(value)
    assert (name, detail.code, detail.stream) == (TRAILER, "stream-not-found", "s")


async def test_a_bug_becomes_a_status_too_and_never_says_that_nothing_was_done() -> None:
    async def replies(request: pb.ReadRequest, call: GrpcCall) -> AsyncIterator[pb.ReadReply]:
        yield pb.ReadReply(generation=1)
        raise ZeroDivisionError("oops")

    context = Context(b"")
    found = [each async for each in handler({"Read.Read": replies}, "Read.Read").stream_stream(None, context)]
    assert [each.generation for each in found] == [1]
    assert context.code.name == "INTERNAL"
    assert pb.SegmentError.FromString(context.trailers[0][1]).outcome == pb.OUTCOME_UNKNOWN


class Stranger:
    """A check that knows nobody."""

    def principal(self, context: Any) -> Any:
        raise UnauthenticatedError("who are you?")


def strangers_guard(limits: GrpcLimits | None = None) -> CallGuard:
    clock = SystemClock()
    failures = AuthenticationFailures(clock, random.Random(1))
    return CallGuard(Stranger(), failures, GatewayMetrics(), clock, limits)  # type: ignore[arg-type]


async def never(request: Any, call: GrpcCall) -> Any:
    raise AssertionError("the behaviour was reached")


async def never_streams(requests: Any, call: GrpcCall) -> AsyncIterator[Any]:
    if call:
        raise AssertionError("the behaviour was reached")
    yield


@pytest.mark.rule("X10")
async def test_nothing_of_a_call_is_received_before_it_is_known_who_sends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cause: gRPC received and parsed the message of a call before the guard asked who sends it, so that 20 MiB for
    each call of anybody at all were in memory, also while the refusal was delayed.
    """
    monkeypatch.setattr(asyncio, "sleep", _no_time)
    for key, method in METHODS.items():
        context = Context(b"x" * 1000)
        found = handler({key: never_streams if method.streams_replies else never}, key, strangers_guard())
        if method.streams_replies:
            assert [each async for each in found.stream_stream(None, context)] == []
        else:
            assert await found.stream_unary(None, context) == method.reply()
        assert (context.code.name, context.reads) == ("UNAUTHENTICATED", 0), key


class Known:
    """A check that knows everybody, by what the call has brought."""

    generation = 0

    def principal(self, facts: CallFacts) -> Caller:
        return Caller(facts.peer)


@pytest.mark.parametrize("check", [None, Known(), Stranger()])
async def test_a_call_whose_client_is_gone_is_asked_nothing_more(check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cause: the audit log asked a call for its peer when its answer was closed. When the client had gone, gRPC had
    freed the call by then, and the whole gateway ended with a segmentation fault.
    """
    monkeypatch.setattr(asyncio, "sleep", _no_time)
    failures = AuthenticationFailures(SystemClock(), random.Random(1))
    contexts: list[Context] = []

    async def streams(request: Any, call: GrpcCall) -> AsyncIterator[Any]:
        contexts[-1].is_over = True
        if call.again is not None:
            call.again()
        yield METHODS["Read.Read"].reply()

    async def single(request: Any, call: GrpcCall) -> Any:
        contexts[-1].is_over = True
        if call.again is not None:
            call.again()
        return METHODS["Streams.Get"].reply()

    for key, behaviour in (("Read.Read", streams), ("Streams.Get", single)):
        guard = CallGuard(check, failures, GatewayMetrics(), SystemClock())
        found = handler({key: behaviour}, key, guard)
        contexts.append(Context(b""))
        if METHODS[key].streams_replies:
            replies = found.stream_stream(None, contexts[-1])
            async for _ in replies:
                break
            contexts[-1].is_over = True
            await replies.aclose()
        else:
            await found.stream_unary(None, contexts[-1])
        assert contexts[-1].is_over or contexts[-1].code.name == "UNAUTHENTICATED"


async def _no_time(seconds: float) -> None:
    assert seconds > 0


async def test_refusals_beyond_a_number_are_not_delayed_because_those_that_wait_take_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(call_guard, "DELAYED_MAX", 2)
    until = asyncio.Event()

    async def sleep(seconds: float) -> None:
        await until.wait()

    monkeypatch.setattr(asyncio, "sleep", sleep)
    found = handler({"Streams.Get": never}, "Streams.Get", strangers_guard())
    contexts = [Context(b"") for _ in range(4)]
    calls = [asyncio.ensure_future(found.stream_unary(None, each)) for each in contexts]
    await asyncio.wait(calls[2:])
    assert [each.done() for each in calls] == [False, False, True, True]
    assert contexts[3].code.name == "UNAUTHENTICATED"
    until.set()
    await asyncio.gather(*calls)


async def test_a_message_is_received_when_there_is_room_for_the_largest_and_then_counts_with_its_own_size() -> None:
    """Cause: nothing counted what calls had received: 20 MiB for each of any number of calls."""
    limits = GrpcLimits(message_bytes_max=100, address_bytes_max=200, call_bytes_max=200)
    guard = CallGuard(None, None, GatewayMetrics(), SystemClock(), limits)
    until = asyncio.Event()

    async def get(request: pb.GetStreamRequest, call: GrpcCall) -> pb.StreamInfo:
        await until.wait()
        return pb.StreamInfo()

    found = handler({"Streams.Get": get}, "Streams.Get", guard)
    raw = pb.GetStreamRequest(stream="s" * 48).SerializeToString()
    assert len(raw) == 50
    contexts = [Context(raw) for _ in range(6)]
    calls = [asyncio.ensure_future(found.stream_unary(None, each)) for each in contexts]
    for _ in range(10):
        await asyncio.sleep(0)
    assert guard.budget.waiting == 3
    assert [each.reads for each in contexts] == [1, 1, 1, 0, 0, 0], "the fourth could have 100 bytes, and 50 are left"
    assert (guard.budget.bytes, guard.budget.calls) == (150, 6)
    until.set()
    await asyncio.gather(*calls)
    assert (guard.budget.bytes, guard.budget.calls) == (0, 0)


async def test_requests_of_a_stream_are_given_back_when_they_are_answered() -> None:
    """An append's request is held until its reply, those of other calls until the next one is asked for."""
    guard = CallGuard(None, None, GatewayMetrics(), SystemClock())
    held = []

    async def append(requests: AsyncIterator[Any], call: GrpcCall) -> AsyncIterator[pb.AppendReply]:
        async for _ in requests:
            held.append(guard.budget.bytes)
        call.release_oldest()
        held.append(guard.budget.bytes)
        yield pb.AppendReply()

    async def tail(requests: AsyncIterator[Any], call: GrpcCall) -> AsyncIterator[pb.ReadReply]:
        async for _ in requests:
            held.append(guard.budget.bytes)
        yield pb.ReadReply()

    raw = pb.AppendRequest(stream="ab").SerializeToString()
    behaviours = {"Append.AppendStream": append, "Read.Tail": tail}
    for key, expected in (("Append.AppendStream", [4, 8, 4]), ("Read.Tail", [4, 4])):
        held.clear()
        message = raw if key == "Append.AppendStream" else b"\x7a\x02ab"
        async for _ in handler(behaviours, key, guard).stream_stream(None, Context(message, message)):
            pass
        assert (held, guard.budget.bytes, guard.budget.calls) == (expected, 0, 0)


async def test_a_message_with_too_many_records_is_refused_before_it_is_parsed() -> None:
    """Cause: a record may have two bytes, so that 20 MiB became ten million objects before anything was looked at."""
    guard = CallGuard(None, None, GatewayMetrics(), SystemClock(), GrpcLimits(request_elements_max=1000))
    context = Context(b"\x12\x00" * 1001)
    assert await handler({"Append.Append": never}, "Append.Append", guard).stream_unary(None, context)
    assert context.code.name == "INVALID_ARGUMENT"
    assert "a request may have 1000 records" in context.details
    assert guard.budget.bytes == 0


async def test_bytes_that_are_no_request_are_the_senders_fault() -> None:
    for messages, why in (((b"\xff",), "its bytes are no GetStreamRequest"), ((), "ended before its request came")):
        context = Context(*messages)
        await handler({"Streams.Get": never}, "Streams.Get").stream_unary(None, context)
        assert context.code.name == "INVALID_ARGUMENT"
        assert why in context.details


async def test_an_address_has_a_number_of_calls_and_the_next_may_come_again() -> None:
    guard = CallGuard(None, None, GatewayMetrics(), SystemClock(), GrpcLimits(address_calls_max=1))
    until = asyncio.Event()

    async def get(request: pb.GetStreamRequest, call: GrpcCall) -> pb.StreamInfo:
        await until.wait()
        return pb.StreamInfo()

    found = handler({"Streams.Get": get}, "Streams.Get", guard)
    first, second, other = Context(b""), Context(b"", peer="ipv4:10.0.0.1:4001"), Context(b"", peer="ipv4:10.0.0.2:1")
    calls = [asyncio.ensure_future(found.stream_unary(None, each)) for each in (first, second, other)]
    await calls[1]
    assert (second.code.name, second.reads) == ("RESOURCE_EXHAUSTED", 0)
    assert pb.SegmentError.FromString(second.trailers[0][1]).retryable
    until.set()
    await asyncio.gather(*calls)
    assert first.code is None
    assert other.code is None


@pytest.mark.rule("X32")
@pytest.mark.parametrize("key", sorted(MAKES))
async def test_what_makes_something_in_the_metadata_counts_by_its_callers_rates(key: str) -> None:
    """Cause: only records did, and a tenant with a small quota had the metadata store busy with streams and cursors."""
    charged: list[tuple[int, int]] = []

    def take(who: Principal, entries: int, size: int) -> QuotaRefusal | None:
        charged.append((entries, size))
        return None if len(charged) < 3 else QuotaRefusal("a", QuotaKind.ADDS_PER_S, 1, after_s=None)

    async def answer(request: Any, call: GrpcCall) -> Any:
        return METHODS[key].reply()

    guard = CallGuard(None, None, GatewayMetrics(), SystemClock(), permissions=CallerRights(take=take))
    codes = []
    for _ in range(3):
        context = Context(METHODS[key].request(stream="s").SerializeToString())
        await handler({key: answer}, key, guard).stream_unary(None, context)
        codes.append(context.code and context.code.name)
    assert codes == [None, None, "RESOURCE_EXHAUSTED"] and charged == [(1, 0)] * 3
    quiet = Context(pb.GetStreamRequest(stream="s").SerializeToString())
    await handler({"Streams.Get": answer}, "Streams.Get", guard).stream_unary(None, quiet)
    assert len(charged) == 3, "looking is free"


class _LateClock(SystemClock):
    """Each message takes ten seconds to come."""

    def __init__(self) -> None:
        self.late_s = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.late_s


class _Known:
    """A check that knows a caller once."""

    generation = 0

    def __init__(self) -> None:
        self.asked = 0

    def principal(self, facts: Any) -> Caller:
        self.asked += 1
        if self.asked > 1:
            raise UnauthenticatedError("who are you?", why="the token was revoked")
        return Caller("a")


@pytest.mark.rule("X15")
@pytest.mark.parametrize("late", [True, False])
async def test_a_request_that_comes_late_outlives_no_token(late: bool) -> None:
    clock = _LateClock()

    class Slow(Context):
        async def read(self) -> Any:
            clock.late_s += 10.0 if late else 0.0
            return await super().read()

    async def answer(request: Any, call: GrpcCall) -> Any:
        return pb.StreamInfo(stream="s")

    guard = CallGuard(_Known(), None, GatewayMetrics(), clock)  # type: ignore[arg-type]
    context = Slow(pb.GetStreamRequest(stream="s").SerializeToString())
    reply = await handler({"Streams.Get": answer}, "Streams.Get", guard).stream_unary(None, context)
    assert (reply.stream, context.code and context.code.name) == (("", "PERMISSION_DENIED") if late else ("s", None))
