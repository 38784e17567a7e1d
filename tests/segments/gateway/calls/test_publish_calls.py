"""A gateway that owns a stream publishes batches behind what it appends, once for each key."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bookkeeper.access import (
    Grant,
    Mode,
    Policy,
    Principal,
    QuotaKind,
    QuotaRefusal,
    Resource,
    ResourceKind,
    Right,
    Subject,
)
from bookkeeper.gateways.caller import Caller
from bookkeeper.gateways.permissions import CallerRights
from bookkeeper.leases.lease import StoreLease
from segments.entries.columns import RecordColumns
from segments.errors import BatchRefusedError, StreamAccessError, StreamConfigError, StreamOwnedError
from segments.gateway.calls.publish_calls import PublishCalls
from segments.gateway.guard.grpc_call import GrpcCall
from segments.gateway.guard.request_rights import RIGHTS, needs_of
from segments.gateway.service import GrpcGatewayService
from segments.protocol import segments_pb2 as pb
from segments.protocol.publish_messages import put_rows
from segments.publish import BatchKey, StagedRows, StagedWriter
from segments.record import StoredRecord
from segments.remote import RemoteStream, connect
from segments.stream import Stream
from tests.segments.gateway.clusters import CONFIG, served


@asynccontextmanager
async def both_ways(directory: Path) -> AsyncIterator[tuple[GrpcGatewayService, RemoteStream, Stream]]:
    """A gateway, and its stream: through it, and as a program of the cluster has it."""
    async with served(directory) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG.patched({"roll.min_age_s": 0}))
        assert gateway._namespace is not None
        yield gateway, stream, await gateway._namespace.open("s")


async def staged(stream: Stream, staging: str, *tasks: list[bytes], large: bool = True) -> list[StagedRows]:
    found = []
    for values in tasks:
        writer = StagedWriter(
            stream.client, (stream.name, stream.id), stream.config, staging, "a", inline=-1 if large else 1 << 16
        )
        await writer.add(RecordColumns.of_values(values))
        found.append(await writer.finish())
    return found


async def values_of(stream: RemoteStream) -> list[bytes]:
    async with stream.read() as reader:
        records = [record async for record in reader if isinstance(record, StoredRecord)]
    assert [record.seq_no for record in records] == list(range(len(records)))
    return [record.value for record in records]


@pytest.mark.rule("S14")
async def test_a_batch_comes_behind_what_was_appended_once_and_appends_go_on(tmp_path: Path) -> None:
    async with both_ways(tmp_path) as (_, remote, stream), remote.producer("p") as producer:
        before = [producer.append_nowait(b"before %d" % at) for at in range(5)]
        publisher = await remote.publisher()
        rows = await staged(stream, "s1", [b"a", b"b"], [b"c"])
        key = BatchKey("app", "q", 0)
        done, after = await asyncio.gather(publisher.publish(key, rows), producer.append(b"after"))
        assert (done.first_seq_no, done.records, done.already_there) in ((5, 3, False), (6, 3, False))
        assert [(await each).seq_no for each in before] == list(range(5)) and not after.duplicate
        assert await publisher.publish(key, rows) == done, "the call is repeated, because it got no answer"
        other = await publisher.publish(key, await staged(stream, "s2", [b"other"], large=False))
        assert other.already_there
        assert (await publisher.publish(None, await staged(stream, "s3", [b"small"], large=False))).records == 1
        assert (await producer.append(b"last")).seq_no == 10
        found = await values_of(remote)
        batch = [b"a", b"b", b"c"]
        assert found[:5] == [b"before %d" % at for at in range(5)] and found[-2:] == [b"small", b"last"]
        assert [value for value in found if value in batch] == batch and found.count(b"after") == 1
        await publisher.close()


async def test_a_program_of_the_cluster_is_told_to_publish_through_the_gateway_that_owns_the_stream(
    tmp_path: Path,
) -> None:
    async with both_ways(tmp_path) as (gateway, remote, stream):
        async with remote.writer() as writer:
            await writer.append(b"x")
        said = rf'gateway at {gateway.address} owns stream s.*option\("gateway", "grpc://{gateway.address}"\)'
        with pytest.raises(StreamOwnedError, match=said):
            await stream.publisher()
        await (await remote.publisher()).publish(None, await staged(stream, "s1", [b"a"]))
        assert await values_of(remote) == [b"x", b"a"]
        with pytest.raises(StreamOwnedError, match=said):
            await stream.publisher()


async def test_a_stream_of_a_gateway_that_is_gone_is_taken_without_a_word_from_anybody(tmp_path: Path) -> None:
    """The cause: a gateway that was killed, or ended while the metadata were away, does not release its streams."""
    async with both_ways(tmp_path) as (gateway, remote, stream):
        writer = await remote.writer()
        await writer.append(b"x")
        assert gateway._table is not None
        served = await gateway._table.get("s")
        lease = served.ownership._lease
        assert isinstance(lease, StoreLease) and lease._renewing is not None
        lease._renewing.cancel()  # as its process ends
        publisher = await stream.publisher()
        done = await publisher.publish(BatchKey("app", "q", 0), await staged(stream, "s1", [b"a"]))
        assert done.first_seq_no == 1
        assert await values_of(remote) == [b"x", b"a"]


@pytest.mark.rule("S14")
async def test_rows_that_reach_gateways_alone_are_published_once(tmp_path: Path) -> None:
    async with both_ways(tmp_path) as (_, remote, _):
        large = bytes(3_000_000)
        tasks = []
        for values in ([b"a", b"b"], [large], []):
            writer = remote.stage("s1", "app")
            await writer.add(RecordColumns.of_values(values))
            tasks.append(await writer.finish())
        publisher = await remote.publisher()
        assert (await publisher.publish(BatchKey("app", "q", 0), tasks)).records == 3
        again = remote.stage("s2", "app")
        await again.add(RecordColumns.of_values([b"other"]))
        assert (await publisher.publish(BatchKey("app", "q", 0), [await again.finish()])).already_there
        assert await values_of(remote) == [b"a", b"b", large]
        with pytest.raises(
            StreamConfigError, match="a task behind gateways takes staging and app, and not compression"
        ):
            remote.stage("s3", "app", compression="lz4")


@pytest.mark.rule("X32")
async def test_rows_in_a_message_wait_for_their_callers_rates_as_other_records_do(tmp_path: Path) -> None:
    """Cause: what was published counted for nobody, so that a caller wrote without a limit by publishing. What his
    tasks have written to bookies by themselves was counted there."""
    asked: list[tuple[int, int]] = []

    def take(principal: Principal, entries: int, size: int) -> QuotaRefusal | None:
        asked.append((entries, size))
        return QuotaRefusal("principal etl", QuotaKind.ADDS_PER_S, 1, 0.001) if len(asked) == 1 else None

    async with both_ways(tmp_path) as (gateway, remote, stream):
        assert gateway._table is not None
        call = GrpcCall(Caller("etl"), permissions=CallerRights(take=take))
        small = await staged(stream, "s1", [b"a", b"b"], large=False)
        rows = [put_rows(each) for each in (*small, *await staged(stream, "s2", [b"c"]))]
        size = sum(map(len, small[0].entries))
        await PublishCalls(gateway._table).publish(pb.PublishRequest(stream="s", rows=rows), call)
        assert asked == [(2, size)] * 2
        rows[0].records = -1000
        with pytest.raises(StreamConfigError, match="-1000"):
            await PublishCalls(gateway._table).publish(pb.PublishRequest(stream="s", rows=rows), call)
        assert len(asked) == 2 and await values_of(remote) == [b"a", b"b", b"c"]


async def test_whoever_may_not_use_a_stream_publishes_nothing_and_no_ledger_of_another_one(tmp_path: Path) -> None:
    async with both_ways(tmp_path) as (gateway, remote, stream):
        assert gateway._table is not None and gateway._namespace is not None
        calls = PublishCalls(gateway._table)
        rows = await staged(stream, "s1", [b"a"])
        request = pb.PublishRequest(stream="s", rows=map(put_rows, rows))
        with pytest.raises(StreamAccessError, match="etl may not use stream s"):
            for name, needs in needs_of(RIGHTS["Append.Publish"], request):
                GrpcCall(Caller("etl", ("/mine",))).require(name, needs)
        mine = await gateway._namespace.create("mine/t", config=CONFIG)
        theirs = [StagedRows(each.staging, mine.id, each.records, each.ledger) for each in rows]
        with pytest.raises(BatchRefusedError, match="was not written for this batch of stream mine/t"):
            await calls.publish(
                pb.PublishRequest(stream="mine/t", rows=map(put_rows, theirs)),
                GrpcCall(Caller("etl", ("/mine",))),
            )
        for name in ("", "../chain", "a/b", "s1.7"):
            with pytest.raises(StreamConfigError, match="a staging has a name of"):
                await calls.publish(pb.PublishRequest(stream="s", rows=[pb.StagedRows(staging=name)]), GrpcCall(None))
        with pytest.raises(StreamConfigError, match="names its application"):
            await calls.publish(pb.PublishRequest(stream="s", key=pb.BatchKey()), GrpcCall(None))
        assert await values_of(remote) == []


@pytest.mark.rule("X12c")
async def test_nobody_publishes_in_the_name_of_somebody_elses_application_but_who_may_administer(
    tmp_path: Path,
) -> None:
    """Cause: a tenant with the right to append published a batch by the key of another one's query, whose own batch of
    that number then counted as there already, and was lost without a word."""
    async with both_ways(tmp_path) as (gateway, remote, stream):
        assert gateway._table is not None
        calls = PublishCalls(gateway._table)

        async def publish(who: str, batch: int, value: bytes, app: str = "orders", *also: Right) -> pb.PublishReply:
            request = pb.PublishRequest(
                stream="s",
                key=pb.BatchKey(app=app, query="q", batch=batch),
                rows=map(put_rows, await staged(stream, f"{who}-{app}-{batch}", [value], large=False)),
            )
            grant = Grant(Subject.parse(who), frozenset((Right.APPEND, *also)), Resource(ResourceKind.STREAMS, "s"))
            rights = CallerRights(lambda: Policy(Mode.ENFORCE, (grant,)))
            return await calls.publish(request, GrpcCall(Caller(who), permissions=rights))

        await publish("etl", 0, b"a")
        said = r"Application orders of this stream belongs to etl.*bk stream apps hand-over s orders rival"
        for batch in (0, 1):
            with pytest.raises(StreamAccessError, match=said):
                await publish("rival", batch, b"forged")
        assert not (await publish("etl", 1, b"b")).already_there
        await publish("rival", 0, b"c", "own")
        await publish("boss", 2, b"d", "orders", Right.ADMINISTER)
        assert [(each.app, each.by, each.last) for each in await stream.apps()] == [
            ("orders", "etl", 2),
            ("own", "rival", 0),
        ], "to overrule the owner takes nothing away from him"
        await stream.hand_over_app("orders", "rival")
        await publish("rival", 3, b"e")
        with pytest.raises(StreamAccessError, match="belongs to rival"):
            await publish("etl", 4, b"f")
        await stream.hand_over_app("orders", "")
        await publish("etl", 4, b"f")
        assert [each.by for each in await stream.apps()] == ["etl", "rival"], "of nobody: who comes first has it"
        assert await values_of(remote) == [b"a", b"b", b"c", b"d", b"e", b"f"]


async def test_another_gateway_sends_a_batch_to_the_owner(tmp_path: Path) -> None:
    async with both_ways(tmp_path) as (_, remote, stream), served(tmp_path) as second:
        async with remote.writer() as writer:
            await writer.append(b"x")
        async with connect(f"grpc://{second.address}") as namespace:
            publisher = await (await namespace.open("s")).publisher()
            done = await publisher.publish(BatchKey("app", "q", 0), await staged(stream, "s1", [b"a"]))
        assert (done.first_seq_no, second.metrics.ownership.redirected.value) == (1, 1)
        assert await values_of(remote) == [b"x", b"a"]
