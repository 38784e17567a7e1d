from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bookkeeper.launchers.machine_speed import stretch
from segments.errors import StreamConfigError
from segments.protocol import segments_pb2 as pb
from segments.remote import connect
from tests.segments.gateway.clusters import CONFIG, served


async def test_a_roll_of_what_has_no_records_is_answered_at_once(tmp_path: Path) -> None:
    """It answers as a stream of the library does: with the last completed segment, if there is one."""
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        async with asyncio.timeout(10 * stretch()):
            assert await stream.roll() is None
            async with stream.writer() as writer:
                await writer.append(b"v")
            for _ in range(3):
                ended = await stream.roll()
                assert ended is not None and (ended.number, ended.records) == (1, 1)


async def test_every_segment_has_a_reason(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        async with stream.writer() as writer:
            await writer.append(b"v")
        await stream.roll()
        request = pb.ExplainRequest(stream="s")
        reasons = [each async for each in namespace.channels.stream("Segments.ExplainRetention", request)]
        assert [(each.segment, each.kept) for each in reasons] == [(1, True), (2, True)]
        assert all(each.reason for each in reasons)


async def test_what_cannot_be_is_the_callers_error(tmp_path: Path) -> None:
    """It is refused in words, nothing of it is in the stream, and the gateway goes on."""
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        await namespace.create("s", config=CONFIG)
        twice = [pb.Header(name="a", value=b"1"), pb.Header(name="a", value=b"2")]
        long = [pb.Header(name="a" * 70_000)]
        last = 2**63 - 1
        for key, request, words in (
            ("Append.Append", pb.AppendRequest(stream="s", records=[pb.Record(headers=twice)]), "a more than once"),
            ("Append.Append", pb.AppendRequest(stream="s", records=[pb.Record(headers=long)]), "at most 65535 bytes"),
            (
                "Append.Append",
                pb.AppendRequest(
                    stream="s", values=[b"1", b"2"], producer=pb.ProducerRef(name="p", sequence=last), monotonic=True
                ),
                "numbers its records",
            ),
            ("Append.OpenProducer", pb.OpenProducerRequest(stream="s", producer="p", epoch=last), "the epoch of"),
            ("Segments.PutHold", pb.PutHoldRequest(stream="s", name="h", until_ms=last), "that is no date"),
        ):
            with pytest.raises(StreamConfigError, match=words):
                await namespace.channels.call(key, request, stream="s")
        stream = await namespace.open("s")
        assert await stream.count() == 0
        async with stream.writer() as writer:
            await writer.append(b"v")
        async with asyncio.timeout(10 * stretch()):
            reply = await namespace.channels.call("Read.GetSplits", pb.SplitsRequest(stream="s", target=last))
        assert 1 <= len(reply.ranges) <= 2
