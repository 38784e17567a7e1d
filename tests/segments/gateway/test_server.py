from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from bookkeeper.gateways.authentication import UnauthenticatedError
from bookkeeper.gateways.listener import CannotListenError
from bookkeeper.ids import Address
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.real import SystemClock
from segments.gateway.config import GrpcLimits
from segments.gateway.gateway_metrics import GatewayMetrics
from segments.gateway.guard.call_guard import CallGuard
from segments.gateway.server import GrpcServer
from segments.protocol import segments_pb2 as pb
from segments.protocol.methods import SERVICES
from segments.remote import connect
from segments.remote.gateway_address import GatewayCredentials
from segments.remote.gateway_channels import GatewayChannels
from tests.segments.gateway.clusters import CONFIG, served
from tests.segments.gateway.health_client import status_of


def guard(limits: GrpcLimits | None = None, caller: Any = None) -> CallGuard:
    return CallGuard(caller, None, GatewayMetrics(), SystemClock(), limits)


async def test_the_state_of_health_is_that_of_every_service_and_of_the_whole() -> None:
    """SEG-122: one name for each service, and the empty one."""
    server = GrpcServer(GrpcLimits())
    address = server.bind(Address("127.0.0.1", 0))
    await server.start([], guard())
    try:
        for serving in (False, True, False):
            server.set_health(serving=serving)
            for name in ("", *SERVICES):
                assert await status_of(address, name) == ("SERVING" if serving else "NOT_SERVING")
        server.set_health(serving=True)
        server.drain()
        server.set_health(serving=True)
        assert await status_of(address, "") == "NOT_SERVING"
    finally:
        await server.stop(0.1)


async def test_a_port_that_is_taken_is_an_error_in_words() -> None:
    first, second = GrpcServer(GrpcLimits()), GrpcServer(GrpcLimits())
    taken = first.bind(Address("127.0.0.1", 0))
    await first.start([], guard())
    try:
        with pytest.raises(CannotListenError, match="another program listens there"):
            second.bind(taken)
    finally:
        await first.stop(0)
        await second.stop(0)


async def test_a_service_without_handlers_does_not_answer() -> None:
    channels = GatewayChannels(["127.0.0.1:1"], GatewayCredentials())
    assert channels.address_for("s") == "127.0.0.1:1"
    await channels.close()


class Gate:
    """A check that lets nobody in until it is open, and then says who calls."""

    def __init__(self) -> None:
        self.known = False

    def principal(self, context: Any) -> Any:
        if not self.known:
            raise UnauthenticatedError("who are you?")
        return None


@asynccontextmanager
async def serving(
    behaviours: dict[str, Any], the_guard: CallGuard, limits: GrpcLimits, *, reflects: bool = False
) -> AsyncIterator[Any]:
    """A server, and a client's connection to it."""
    server = GrpcServer(limits)
    address = server.bind(Address("127.0.0.1", 0))
    await server.start(the_guard.handlers(behaviours), the_guard, reflects=reflects)
    options = (("grpc.max_send_message_length", -1),)
    try:
        async with grpc.aio.insecure_channel(str(address), options) as channel:
            yield channel
    finally:
        await server.stop(0.1)


@pytest.mark.rule("X10")
async def test_what_a_call_may_send_before_it_is_asked_for_it_is_64_kib() -> None:
    """Cause: gRPC widens the window of a call for a fast sender, also of one whose messages nobody receives: 4 MiB of
    each call of anybody were in memory.
    """
    until, sent = asyncio.Event(), 0

    async def stall(requests: AsyncIterator[Any], call: Any) -> AsyncIterator[pb.AppendReply]:
        yield pb.AppendReply()
        await until.wait()

    limits = GrpcLimits()
    async with serving({"Append.AppendStream": stall}, guard(limits), limits) as channel:
        call = channel.stream_stream("/segments.v1.Append/AppendStream")()
        await call.read()

        async def send() -> None:
            nonlocal sent
            while True:
                await call.write(bytes(8192))
                sent += 8192

        sending = asyncio.ensure_future(send())
        before = -1
        while sent != before:  # until nothing more is taken
            before = sent
            await asyncio.wait([sending], timeout=0.5)
        assert 0 < sent <= 65_536
        sending.cancel()
        until.set()
        call.cancel()


async def test_health_is_told_to_anybody_and_the_protocol_only_to_those_who_may_call() -> None:
    limits = GrpcLimits()
    async with serving({}, guard(limits, Gate()), limits, reflects=True) as channel:
        health = channel.unary_unary("/grpc.health.v1.Health/Check")
        assert await health(b"") == b"\x08\x02"
        for name in ("v1", "v1alpha"):
            reflection = channel.stream_stream(f"/grpc.reflection.{name}.ServerReflection/ServerReflectionInfo")()
            with pytest.raises(grpc.aio.AioRpcError, match="who are you"):
                await reflection.read()


async def test_the_protocol_is_told_to_nobody_unless_that_was_asked_for() -> None:
    limits = GrpcLimits()
    async with serving({}, guard(limits), limits) as channel:
        assert await channel.unary_unary("/grpc.health.v1.Health/Check")(b"") == b"\x08\x02"
        for name in ("v1", "v1alpha"):
            reflection = channel.stream_stream(f"/grpc.reflection.{name}.ServerReflection/ServerReflectionInfo")()
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await reflection.read()
            assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_a_request_that_does_not_come_ends_its_call_and_gives_back_its_room() -> None:
    limits = GrpcLimits(message_s=0.05)
    the_guard = guard(limits)

    async def get(request: pb.GetStreamRequest, call: Any) -> pb.StreamInfo:
        return pb.StreamInfo(stream=request.stream)

    async with serving({"Streams.Get": get}, the_guard, limits) as channel:
        silent = channel.stream_unary("/segments.v1.Streams/Get")()
        with pytest.raises(grpc.aio.AioRpcError, match=r"not there after 0\.05 s") as refused:
            await silent
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
        assert (the_guard.budget.bytes, the_guard.budget.calls) == (0, 0)
        asked = channel.unary_unary("/segments.v1.Streams/Get")
        raw = pb.GetStreamRequest(stream="s").SerializeToString()
        assert pb.StreamInfo.FromString(await asked(raw)).stream == "s"


async def test_a_large_request_of_a_stranger_is_refused_though_it_cannot_be_sent_to_its_end() -> None:
    limits = GrpcLimits()
    async with serving({"Streams.Get": None}, guard(limits, Gate()), limits) as channel:
        with pytest.raises(grpc.aio.AioRpcError, match="who are you") as refused:
            await channel.unary_unary("/segments.v1.Streams/Get")(bytes(8 << 20))
        assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_a_streaming_append_with_too_many_records_ends_with_the_reason(tmp_path: Path) -> None:
    """What came before is answered; what was too much was not looked at, and nothing after it."""
    limits = GrpcLimits(request_elements_max=50)
    async with (
        served(tmp_path, limits=limits) as gateway,
        grpc.aio.insecure_channel(str(gateway.address)) as channel,
        connect(f"grpc://{gateway.address}") as namespace,
    ):
        stream = await namespace.create("s", config=CONFIG)
        call = channel.stream_stream("/segments.v1.Append/AppendStream")()
        await call.read()
        await call.write(pb.AppendRequest(stream="s", values=[b"v"] * 50).SerializeToString())
        assert pb.AppendReply.FromString(await call.read()).HasField("result")
        await call.write(pb.AppendRequest(stream="s", values=[b"v"] * 51).SerializeToString())
        with pytest.raises(grpc.aio.AioRpcError, match="a request may have 50 records") as refused:
            await call.read()
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert await stream.count() == 50


async def test_a_connection_without_a_call_is_closed_and_the_next_call_makes_another() -> None:
    """Cause: a connection that answers pings was never closed, so that one client could hold all that there may be."""
    limits, until, ready = GrpcLimits(connection_idle_s=0.3), asyncio.Event(), grpc.ChannelConnectivity.READY
    path, own = "/segments.v1.Append/AppendStream", (("grpc.use_local_subchannel_pool", 1),)  # else both share one

    async def stall(requests: AsyncIterator[Any], call: Any) -> AsyncIterator[pb.AppendReply]:
        yield pb.AppendReply()
        await until.wait()
        yield pb.AppendReply()

    server, the_guard = GrpcServer(limits), guard(limits)
    address = str(server.bind(Address("127.0.0.1", 0)))
    await server.start(the_guard.handlers({"Append.AppendStream": stall}), the_guard)
    try:
        async with (
            asyncio.timeout(60 * stretch()),
            grpc.aio.insecure_channel(address, own) as busy,
            grpc.aio.insecure_channel(address, own) as silent,
        ):
            call = busy.stream_stream(path)()
            await call.read()
            await silent.channel_ready()
            while silent.get_state() is ready:
                await silent.wait_for_state_change(ready)
            assert busy.get_state() is ready, "a call goes on"
            until.set()
            await call.read()
            await silent.stream_stream(path)().read()
    finally:
        await server.stop(0.1)
