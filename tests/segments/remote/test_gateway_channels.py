from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import pytest

from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.outcome import Outcome
from bookkeeper.real import SystemClock
from bookkeeper.secret import Secret
from segments.errors import (
    GatewayRedirectError,
    GatewayTooOldError,
    StreamConfigError,
    StreamError,
    StreamInvariantError,
    StreamNotReadyError,
    StreamSealedError,
    StreamUnavailableError,
)
from segments.gateway.gateway_metrics import GatewayMetrics
from segments.gateway.guard.call_guard import CallGuard
from segments.gateway.guard.grpc_call import GrpcCall
from segments.protocol import segments_pb2 as pb
from segments.protocol.refusals import put_error
from segments.remote import gateway_channels
from segments.remote.gateway_address import GatewayCredentials
from segments.remote.gateway_channels import GatewayCall, GatewayChannels


@asynccontextmanager
async def channels_to(handlers: Sequence[Any]) -> AsyncIterator[tuple[GatewayChannels, str]]:
    """Connections to a server with these services, and its address."""
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(tuple(handlers))
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    channels = GatewayChannels([address], GatewayCredentials())
    try:
        yield channels, address
    finally:
        await channels.close()
        await server.stop(0)


async def heard(call: GatewayCall, request: Any, *, at_once: bool = False) -> tuple[list[Any], StreamError | None]:
    """What comes of a call whose client sends and sends (after the first message that it gets, unless ``at_once``):
    the messages, and why it failed."""
    begun = asyncio.Event()
    if at_once:
        begun.set()

    async def send() -> None:
        await begun.wait()
        while True:
            await call.send(request)

    sending = asyncio.ensure_future(send())
    messages: list[Any] = []
    try:
        while (message := await call.receive()) is not None:
            messages.append(message)
            begun.set()
        return messages, None
    except StreamError as error:
        return messages, error
    finally:
        await asyncio.wait([sending])
        assert isinstance(sending.exception(), StreamError)


@pytest.mark.parametrize("failure", [StreamSealedError("it has ended"), StreamInvariantError("a bug"), None])
async def test_a_call_that_ends_while_its_client_sends_loses_neither_a_message_nor_the_reason(
    failure: StreamError | None,
) -> None:
    """grpcio put an "internal error" of the message that could not be sent any more in the place of the status, for
    about every second call, and now and then forgot the messages that were not read yet."""

    async def append_stream(requests: Any, call: GrpcCall) -> AsyncIterator[pb.AppendReply]:
        yield pb.AppendReply(window=pb.Window(records=1))
        for _ in range(5):
            await anext(requests)
            yield pb.AppendReply(result=pb.AppendResult(seq_no=1))
        yield pb.AppendReply(error=put_error(StreamSealedError("it has ended")))
        if failure is not None:
            raise failure

    guard = CallGuard(None, None, GatewayMetrics(), SystemClock())
    async with channels_to(guard.handlers({"Append.AppendStream": append_stream})) as (channels, address):
        for _ in range(100):
            call = channels.open("Append.AppendStream", address)
            messages, error = await heard(call, pb.AppendRequest(stream="s", values=[b"v"]))
            assert [each.WhichOneof("reply") for each in messages] == ["window", *["result"] * 5, "error"]
            assert (type(error), str(error)) == (type(failure), str(failure))
            assert call.is_told == (failure is not None)


async def test_a_call_that_is_refused_at_once_tells_why_though_its_client_sends() -> None:
    async with channels_to([]) as (channels, address):
        for _ in range(100):
            call = channels.open("Read.Tail", address)
            messages, error = await heard(call, pb.TailRequest(), at_once=True)
            assert isinstance(error, GatewayTooOldError) and "Read.Tail" in str(error), error
            assert (messages, call.is_told, error.outcome) == ([], False, Outcome.REJECTED)


async def test_a_call_that_its_client_ends_has_no_other_end() -> None:
    async def tail(requests: Any, call: GrpcCall) -> AsyncIterator[pb.ReadReply]:
        yield pb.ReadReply(generation=1)
        await asyncio.Event().wait()

    guard = CallGuard(None, None, GatewayMetrics(), SystemClock())
    async with channels_to(guard.handlers({"Read.Tail": tail})) as (channels, address):
        call = channels.open("Read.Tail", address)
        assert (await call.receive()).generation == 1
        call.cancel()
        with pytest.raises(StreamUnavailableError):
            await call.send(pb.TailRequest())
        assert isinstance(await call.failure(), StreamUnavailableError)


async def test_who_waits_for_a_message_is_told_that_the_connections_were_closed() -> None:
    async def tail(requests: Any, call: GrpcCall) -> AsyncIterator[pb.ReadReply]:
        yield pb.ReadReply(generation=1)
        await asyncio.Event().wait()

    guard = CallGuard(None, None, GatewayMetrics(), SystemClock())
    async with channels_to(guard.handlers({"Read.Tail": tail})) as (channels, address):
        for closed in (False, True):
            call = channels.open("Read.Tail", address)
            assert (await call.receive()).generation == 1
            waiting = asyncio.ensure_future(call.receive())
            await asyncio.sleep(0)
            if closed:
                await channels.close()
            else:
                waiting.cancel()
            with pytest.raises(StreamUnavailableError if closed else asyncio.CancelledError):
                await waiting


async def test_a_client_learns_who_owns_a_stream_and_forgets_it_with_the_gateway() -> None:
    """SEG-120: redirect to the owner."""
    channels = GatewayChannels(["a:1", "b:1"], GatewayCredentials())
    assert channels.address_for("s") == "a:1"
    assert not channels.note_failure("s", "a:1", GatewayRedirectError("there", owner="c:1"))
    assert (channels.address_for("s"), channels.address_for("t")) == ("c:1", "a:1")
    assert channels.note_failure("s", "c:1", StreamNotReadyError("not now"))
    assert channels.address_for("s") == "c:1"
    assert channels.note_failure("s", "c:1", StreamUnavailableError("dead"))
    assert channels.address_for("s") == "a:1"
    assert channels.note_failure("s", "a:1", StreamUnavailableError("dead"))
    assert channels.address_for("s") == "b:1"
    await channels.close()


async def test_calls_that_fail_together_go_on_to_the_same_gateway() -> None:
    """Each failure moved all calls on: two producers of a gateway that was killed asked it again and again."""
    channels = GatewayChannels(["a:1", "b:1"], GatewayCredentials())
    for _ in range(2):
        assert channels.note_failure("s", "a:1", StreamUnavailableError("dead"))
    assert channels.address_for("s") == "b:1"
    assert not channels.note_failure("s", "b:1", GatewayRedirectError("there", owner="c:1"))
    assert channels.note_failure("s", "a:1", StreamUnavailableError("dead"))
    assert channels.address_for("s") == "c:1", "what another call has learned since stays"
    await channels.close()


async def test_who_waits_for_gateways_that_do_not_answer_is_told(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cause: calls were repeated for half a minute without a word, and so was the command that made them."""
    monkeypatch.setattr(gateway_channels, "PATIENCE_S", 0.3)
    channels = GatewayChannels(["127.0.0.1:1"], GatewayCredentials())
    with pytest.raises(StreamUnavailableError):
        await channels.call("Streams.Get", pb.GetStreamRequest(stream="s"), patience_s=0.3)
    with pytest.raises(StreamUnavailableError):
        await anext(channels.stream("Streams.List", pb.ListStreamsRequest()))
    await channels.close()
    (said,) = [record.getMessage() for record in caplog.records if "trying again" in record.getMessage()]
    assert said.startswith("the gateway at 127.0.0.1:1 did not answer: ")


@pytest.mark.rule("X2")
async def test_a_token_is_not_sent_in_clear_to_where_a_gateway_redirects() -> None:
    """Cause: a token went with every call over ``grpc://``, to whatever host, also to one that a gateway named."""

    async def elsewhere(request: pb.AppendRequest, call: GrpcCall) -> pb.AppendReply:
        raise GatewayRedirectError("another gateway owns it", stream="s", owner="gateway.example.org:9872")

    guard = CallGuard(None, None, GatewayMetrics(), SystemClock())
    async with channels_to(guard.handlers({"Append.Append": elsewhere})) as (_, address):
        channels = GatewayChannels([address], GatewayCredentials(token=Secret("t")))
        for _ in range(2):
            with pytest.raises(StreamConfigError, match=r"not sent to another host \(gateway.example.org:9872\)"):
                await channels.call("Append.Append", pb.AppendRequest(stream="s", values=[b"v"]), stream="s")
        await channels.close()


async def test_a_gateway_that_sends_more_than_any_does_ends_its_call_and_fills_no_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gateway_channels, "REPLY_BYTES_MAX", 1 << 20)

    async def get(request: pb.GetStreamRequest, context: Any) -> pb.StreamInfo:
        return pb.StreamInfo(stream=request.stream, stream_id="x" * int(request.stream))

    method = grpc.unary_unary_rpc_method_handler(
        get,
        request_deserializer=pb.GetStreamRequest.FromString,
        response_serializer=pb.StreamInfo.SerializeToString,
    )
    services = [grpc.method_handlers_generic_handler("segments.v1.Streams", {"Get": method})]
    async with channels_to(services) as (channels, _):
        fits = (1 << 20) - 100
        reply = await channels.call("Streams.Get", pb.GetStreamRequest(stream=str(fits)))
        assert len(reply.stream_id) == fits
        with pytest.raises(StreamError, match="larger than max"):
            await channels.call("Streams.Get", pb.GetStreamRequest(stream=str(1 << 20)), repeat=False)


async def test_a_connection_that_takes_its_time_ends_no_call() -> None:
    """Cause: an attempt to connect had a tenth of a second, the handshake of TLS included: on a machine that is slow,
    or busy for a moment, a call failed that nobody may repeat."""

    async def get(request: pb.GetStreamRequest, context: Any) -> pb.StreamInfo:
        return pb.StreamInfo(stream=request.stream)

    method = grpc.unary_unary_rpc_method_handler(
        get,
        request_deserializer=pb.GetStreamRequest.FromString,
        response_serializer=pb.StreamInfo.SerializeToString,
    )
    services = [grpc.method_handlers_generic_handler("segments.v1.Streams", {"Get": method})]
    async with channels_to(services) as (_, address):
        writers: list[asyncio.StreamWriter] = []

        async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while data := await reader.read(65536):
                writer.write(data)

        async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await asyncio.sleep(0.5)  # what is slow
            far_reader, far_writer = await asyncio.open_connection(*address.split(":"))
            writers.extend((writer, far_writer))
            await asyncio.gather(pass_on(reader, far_writer), pass_on(far_reader, writer))

        slow = await asyncio.start_server(relay, "127.0.0.1", 0)
        channels = GatewayChannels([f"127.0.0.1:{slow.sockets[0].getsockname()[1]}"], GatewayCredentials())
        try:
            reply = await channels.call("Streams.Get", pb.GetStreamRequest(stream="s"), repeat=False)
            assert reply.stream == "s"
        finally:
            await channels.close()
            slow.close()
            for writer in writers:
                writer.close()
            await slow.wait_closed()


FORKED = """
import asyncio, os, signal
from segments.errors import StreamConfigError
from segments.remote.gateway_address import GatewayCredentials
from segments.remote.gateway_channels import GatewayChannels

async def connect():
    channels = GatewayChannels(["127.0.0.1:1"], GatewayCredentials())
    channels.open("Read.Tail", "127.0.0.1:1").cancel()
    await channels.close()

def fork(expected):
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        try:
            asyncio.run(connect())
        except StreamConfigError as error:
            os._exit(1 if 'the method "spawn"' in str(error) else 3)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == expected

fork(0)
fork(0)
asyncio.run(connect())
fork(1)
asyncio.run(connect())
"""


@pytest.mark.rule("P9")
def test_a_process_whose_parent_has_used_grpc_is_told_so_and_does_not_hang() -> None:
    """Every call hung there, whatever its time limit was, also over a connection of its own."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", FORKED], env=environment, capture_output=True, text=True, timeout=60 * stretch()
    )
    assert done.returncode == 0, done.stderr
