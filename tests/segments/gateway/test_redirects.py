"""Two gateways on one cluster: which calls need the owner of a stream, and how their clients get to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.outcome import Outcome
from segments.gateway.service import GrpcGatewayService
from segments.protocol import segments_pb2 as pb
from segments.protocol.methods import METHODS
from segments.protocol.refusals import TRAILER
from segments.read import Activity
from segments.record import StoredRecord
from segments.remote import RemoteNamespace, RemoteProducer, RemoteStream, connect
from segments.seek import AtCursor, AtSeqNo
from tests.segments.gateway.clusters import CONFIG, served

NEED_THE_OWNER: dict[str, Any] = {
    "Append.Append": pb.AppendRequest(stream="s", values=[b"v"]),
    "Append.AppendStream": pb.AppendRequest(stream="s", values=[b"v"]),
    "Append.OpenProducer": pb.OpenProducerRequest(stream="s", producer="p"),
    "Append.GetOutcome": pb.GetOutcomeRequest(stream="s", producer="p", sequence=0),
    "Append.Publish": pb.PublishRequest(stream="s", key=pb.BatchKey(app="a")),
    "Segments.Roll": pb.RollRequest(stream="s"),
    "Streams.Seal": pb.SealRequest(stream="s"),
}


@asynccontextmanager
async def two_gateways(directory: Path) -> AsyncIterator[tuple[GrpcGatewayService, GrpcGatewayService]]:
    """The gateway that owns stream ``s``, which has a record, and the other one. Nothing is taken over."""
    async with (
        served(directory) as owner,
        served(directory) as other,
        connect(f"grpc://{owner.address}") as namespace,
    ):
        stream = await namespace.create("s", config=CONFIG.patched({"roll.min_age_s": 0}))
        async with stream.writer() as writer:
            await writer.append(b"first")
        yield owner, other
        assert (await stream.info()).epoch == 1
        assert other._table is not None and other._table.owned == 0


@asynccontextmanager
async def client_of(gateway: GrpcGatewayService) -> AsyncIterator[tuple[RemoteNamespace, RemoteStream]]:
    """A client that knows only this gateway."""
    async with connect(f"grpc://{gateway.address}") as namespace:
        yield namespace, await namespace.open("s")


async def test_a_client_is_sent_to_the_owner_by_every_call_that_needs_it(tmp_path: Path) -> None:
    async with two_gateways(tmp_path) as (_, other):
        redirected = other.metrics.ownership.redirected

        async def sent_on(action: Awaitable[Any]) -> Any:
            before = redirected.value
            done = await action
            assert redirected.value == before + 1
            return done

        async with client_of(other) as (_, stream), stream.writer() as writer:
            last = await sent_on(writer.append(b"streamed"))
            assert (await writer.append(b"there at once")).seq_no == 2, "the client remembers the owner"
        async with client_of(other) as (_, stream), stream.writer() as writer:
            tail = await stream.find(AtSeqNo(2))
            assert (await sent_on(writer.append_if(b"alone", tail=tail))).seq_no == 3
            assert last.position < tail
        async with client_of(other) as (namespace, stream):
            producer = await sent_on(_opened(stream))
            assert (await producer.append(b"of p")).seq_no == 4
            namespace.channels._owners.clear()  # as after a failure of the owner
            outcome, result = await sent_on(producer.outcome(0))
            assert outcome is Outcome.APPLIED and result.duplicate
            await producer.close()
        async with client_of(other) as (_, stream):
            rolled = await sent_on(stream.roll())
            assert (rolled.number, rolled.records) == (1, 5)
        async with client_of(other) as (_, stream):
            assert await sent_on(stream.seal()) == rolled.last


async def _opened(stream: RemoteStream) -> RemoteProducer:
    return await stream.producer("p")


async def test_all_other_calls_are_answered_by_any_gateway(tmp_path: Path) -> None:
    async with two_gateways(tmp_path) as (_, other), client_of(other) as (namespace, stream):
        async with stream.cursor("c") as cursor:
            async with cursor.read(follow=True) as reader:
                batch = await reader.next_batch()
                assert batch.values() == [b"first"] and (await reader.lag()).records == 0
                assert (await reader.state()).activity is Activity.IDLE
            await cursor.ack(batch)
            await cursor.advance(batch)
            await cursor.set_properties({"who": "me"})
            assert (await cursor.backlog()).records == 0 and len(await cursor.history()) > 1
            await cursor.reset(AtSeqNo(0))
            assert await cursor.skip(1) == await stream.tail_position()
            await cursor.restore(1)
        assert await stream.find(AtCursor("c")) == await stream.find(AtSeqNo(0)) and list(await stream.cursors()) == [
            "c"
        ]
        await stream.cursor("c").delete(missing_ok=False)
        await stream.hold("audit")
        assert [hold.name for hold in await stream.holds()] == ["audit"]
        await stream.release_hold("audit")
        assert await stream.count() == 1 and len(await stream.splits(target=1)) == 1
        async with stream.read(follow=True) as reader:
            record = await reader.next(timeout=20 * stretch())
            assert isinstance(record, StoredRecord) and record.value == b"first"
        copy = b"".join([chunk async for chunk in stream.export().chunks()])

        async def file() -> AsyncIterator[bytes]:
            yield copy

        assert (await namespace.import_stream(file(), name="copy")).records == 1
        assert await namespace.verify("copy") == ()
        await namespace.delete("copy")
        await stream.configure({"retention.max_records": 100})
        assert (await stream.apply_retention()).deleted == () and len((await stream.explain_retention()).segments) == 1
        assert not (await stream.truncate(await stream.find(AtSeqNo(0)))).is_change
        assert (await stream.show()).info == await stream.info() and len(await stream.segments()) == 1
        await namespace.rename("s", "t")
        await namespace.rename("t", "s")
        assert [name async for name in namespace.list()] == ["s"]
        assert other.metrics.ownership.redirected.value == 0


async def test_who_follows_no_redirect_reads_where_the_owner_is(tmp_path: Path) -> None:
    async with two_gateways(tmp_path) as (owner, other), grpc.aio.insecure_channel(str(other.address)) as channel:
        for key, request in NEED_THE_OWNER.items():
            method = METHODS[key]
            make = channel.stream_stream if method.streams_requests else channel.unary_unary
            call = make(
                method.path,
                request_serializer=method.request.SerializeToString,
                response_deserializer=method.reply.FromString,
            )(iter([request]) if method.streams_requests else request)
            replies = []
            with suppress(grpc.aio.AioRpcError):
                if method.streams_replies:
                    async for reply in call:
                        replies.append(reply)
            assert (await call.code(), key) == (grpc.StatusCode.UNAVAILABLE, key)
            assert str(owner.address) in await call.details(), key
            told = pb.SegmentError.FromString(dict(await call.trailing_metadata())[TRAILER])
            assert (told.code, told.owner, told.retryable) == ("gateway-redirect", str(owner.address), True), key
            if replies:
                assert replies[0].HasField("window") and replies[1].error == told and len(replies) == 2
