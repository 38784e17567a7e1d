"""The client with the library's API, against a gateway in the same loop."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from segments.errors import (
    PositionTruncatedError,
    ProducerFencedError,
    SequenceGapError,
    StreamExistsError,
    StreamHeldError,
    StreamNotFoundError,
    StreamSealedError,
    TailMovedError,
)
from segments.position import EARLIEST, LATEST
from segments.record import AppendOutcome, Record, StoredRecord
from segments.remote import connect
from segments.seek import AtSeqNo
from tests.segments.gateway.clusters import CONFIG, served


async def test_streams_are_made_found_listed_renamed_and_deleted(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        made = await namespace.create("a/one", config=CONFIG)
        with pytest.raises(StreamExistsError):
            await namespace.create("a/one")
        again = await namespace.open("a/one", create=True)
        assert (again.id, again.config) == (made.id, CONFIG)
        await namespace.create("b", config=CONFIG)
        assert [name async for name in namespace.list()] == ["a/one", "b"]
        assert [name async for name in namespace.list("a/")] == ["a/one"]
        await namespace.rename("b", "c")
        assert (await namespace.exists("b"), await namespace.exists("c")) == (False, True)
        assert (await made.configure({"compression": "lz4"})).compression == "lz4"
        assert (await made.read_config()).compression == "lz4"
        await namespace.delete("c")
        with pytest.raises(StreamNotFoundError):
            await namespace.open("c")
        await namespace.delete("c", missing_ok=True)


async def test_what_was_appended_is_read_with_everything_that_it_has(tmp_path: Path) -> None:
    """SEG-120: single and streaming appends give equal results."""
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        async with stream.writer() as writer:
            first = await writer.append(Record(b"v", 7, b"k", {"h": b"1"}))
            futures = [writer.append_nowait(b"%d" % number) for number in range(100)]
            results = [await future for future in futures]
            assert [result.position for result in results] == sorted(result.position for result in results)
            batch = await writer.append_batch([b"x", Record(b"y", key=b"z")])
            tail = await writer.flush()
            assert tail == batch.last == writer.tail
            with pytest.raises(TailMovedError):
                await writer.append_if(b"no", tail=first.position)
            assert (await writer.append_if(b"yes", tail=tail)).position > batch.last
        records = [record async for record in stream.read() if isinstance(record, StoredRecord)]
        assert [record.seq_no for record in records] == list(range(104))
        found = records[0]
        assert (found.value, found.txid, found.key, found.headers) == (b"v", 7, b"k", {"h": b"1"})
        assert found.position == first.position
        assert await stream.count() == 104
        assert await stream.find(AtSeqNo(1)) == results[0].position
        async with stream.read(results[0].position, stop=results[3].position) as reader:
            assert [record.value for record in await reader.next_batch()] == [b"0", b"1", b"2"]
            assert await reader.next() is None
            assert reader.ended
        assert await stream.owner() == str(gateway.address)


async def test_a_producer_appends_once_and_is_fenced_by_the_next_of_its_name(tmp_path: Path) -> None:
    """SEG-116, SEG-117 through a gateway."""
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        async with stream.producer("p") as producer:
            assert (producer.epoch, producer.last_seq) == (1, None)
            one = await producer.append(b"one")
            again = await producer.append(b"one", seq=0)
            assert (again.duplicate, again.position) == (True, one.position)
            with pytest.raises(SequenceGapError) as gap:
                await producer.append(b"three", seq=5)
            assert gap.value.expected == 1
            assert await producer.outcome(0) == (AppendOutcome.APPENDED, again)
            assert (await producer.outcome(9))[0] is AppendOutcome.REJECTED
            second = await stream.producer("p")
            assert (second.epoch, second.last_seq, second.next_seq) == (2, 0, 1)
            with pytest.raises(ProducerFencedError):
                await producer.append(b"late", seq=1)
            assert producer.lost.is_set()
            await second.append_batch([b"a", b"b"])
            await second.close()
        assert [record.value async for record in stream.read()] == [b"one", b"a", b"b"]  # type: ignore[union-attr]


async def test_a_tail_gets_records_as_they_come_and_ends_when_the_stream_is_sealed(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        async with stream.read(follow=True) as reader, stream.writer() as writer:
            assert await reader.next(timeout=0.1) is None
            for number in range(5):
                await writer.append(b"%d" % number)
                record = await reader.next(timeout=10)
                assert record is not None
                assert record.seq_no == number  # type: ignore[union-attr]
            await stream.roll()
            await writer.append(b"after")
            assert (await reader.next(timeout=10)).value == b"after"  # type: ignore[union-attr]
            await reader.seek(EARLIEST)
            assert len(await reader.next_batch(wait=10)) >= 1
            assert await stream.seal() == writer.tail
            with pytest.raises(StreamSealedError):
                await writer.append(b"no")
            async with asyncio.timeout(20):
                while await reader.next() is not None:
                    pass
            assert reader.ended


async def test_a_stream_is_truncated_but_not_where_a_hold_keeps_it(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        async with stream.writer() as writer:
            results = [await writer.append(b"%d" % number) for number in range(6)]
        await stream.hold("mine", results[2].position, note="mine")
        with pytest.raises(StreamHeldError, match="mine"):
            await stream.truncate(results[4].position)
        done = await stream.truncate(results[4].position, up_to_holds=True)
        assert done.held_by is not None
        assert (done.start, done.held_by.name) == (results[2].position, "mine")
        await stream.release_hold("mine")
        rolled = await stream.roll()
        assert rolled.records == 6
        assert [segment.is_open for segment in await stream.segments()] == [False, True]
        assert (await stream.truncate(LATEST, dry_run=True)).removable
        await stream.truncate(results[4].position)
        with pytest.raises(PositionTruncatedError):
            async with stream.read(results[1].position) as reader:
                await reader.next()
        assert [record.value async for record in stream.read()] == [b"4", b"5"]  # type: ignore[union-attr]
