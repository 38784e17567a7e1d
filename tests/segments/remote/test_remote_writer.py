"""Appends through a gateway in the same loop."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from bookkeeper.outcome import Outcome
from segments.errors import (
    AppendOutcomeUnknownError,
    RecordTooLargeError,
    SegmentEmptyError,
    SequenceGapError,
    StreamClosedError,
    StreamError,
    StreamExistsError,
    StreamInvariantError,
    StreamNotFoundError,
    StreamNotReadyError,
    StreamSealedError,
    TailMovedError,
    TxidOrderError,
)
from segments.gateway.config import GrpcLimits
from segments.position import LATEST, Position
from segments.protocol import segments_pb2 as pb
from segments.record import AppendResult, Record, StoredRecord
from segments.remote import append_pipe, connect
from segments.remote.remote_writer import RemoteProducer
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
        renamed = await namespace.open("c")
        assert (renamed.name, await renamed.count()) == ("c", 0)
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


async def test_a_stream_that_is_sealed_while_a_client_appends_tells_each_append_what_became_of_it(
    tmp_path: Path,
) -> None:
    """The refusal ends the call while the client still sends: it is told, and nothing is "unknown"."""
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        for number in range(3):
            stream = await namespace.create(f"s{number}", config=CONFIG)
            writer = await stream.writer()
            futures: list[asyncio.Future[AppendResult]] = []
            sealing: asyncio.Future[Position | None] | None = None
            while not writer.closed and len(futures) < 20_000:
                futures.append(writer.append_nowait(b"%d" % len(futures)))
                if len(futures) == 50:
                    sealing = asyncio.ensure_future(stream.seal())
                if len(futures) % 10 == 0:
                    await asyncio.sleep(0)
            assert sealing is not None
            await sealing
            answers = await asyncio.gather(*futures, return_exceptions=True)
            refused = [answer for answer in answers if isinstance(answer, BaseException)]
            assert {type(each) for each in refused} == {StreamSealedError}
            assert await stream.count() == len(answers) - len(refused)
            await writer.close()


async def test_a_batch_that_gRPC_refuses_says_nothing_of_those_before_it(tmp_path: Path) -> None:
    """A message above the port's limit ends the call. What was sent before it may be in the stream: appends that were
    there were told to be not applied."""
    async with (
        served(tmp_path, limits=GrpcLimits(message_bytes_max=100_000)) as gateway,
        connect(f"grpc://{gateway.address}") as namespace,
    ):
        stream = await namespace.create("s", config=CONFIG)
        for _ in range(3):
            before = await stream.count()
            async with stream.writer() as writer:
                small = [writer.append_nowait(b"small") for _ in range(20)]
                large = writer.append_nowait(bytes(200_000))
                answers = await asyncio.gather(*small, return_exceptions=True)
                with pytest.raises(StreamError, match="larger than max"):
                    await large
            told = [answer for answer in answers if isinstance(answer, AppendResult)]
            unsure = [answer for answer in answers if isinstance(answer, AppendOutcomeUnknownError)]
            assert len(told) + len(unsure) == len(answers), answers
            assert len(told) <= await stream.count() - before <= len(answers)


async def test_a_producer_goes_on_with_the_number_of_a_record_that_was_refused(tmp_path: Path) -> None:
    """Each later append left a gap, for ever."""
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG.patched({"limits.record_bytes": 1000}))
        async with stream.producer("p") as producer:
            assert (await producer.append(b"0")).seq_no == 0
            with pytest.raises(RecordTooLargeError):
                await producer.append(bytes(2000))
            assert producer.next_seq == 1 and (await producer.append(b"1")).seq_no == 1
            refused = producer.append_nowait(bytes(2000))
            behind = [producer.append_nowait(b"2"), producer.append_nowait(b"3")]
            with pytest.raises(RecordTooLargeError):
                await refused
            for each in behind:
                with pytest.raises(SequenceGapError):
                    await each
            with pytest.raises(SequenceGapError):
                await producer.append(b"far", seq=9)
            assert (await producer.append(b"0", seq=0)).duplicate
            assert producer.next_seq == 2 and (await producer.append_batch([b"2", b"3"])).seq_no == 2
            with pytest.raises(TxidOrderError):
                await producer.append(b"0", seq=4, txid=-1)
            assert producer.next_seq == 4
        assert [record.value async for record in stream.read()] == [b"0", b"1", b"2", b"3"]  # type: ignore[union-attr]


async def test_a_writer_rolls_and_seals_behind_what_it_appended(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        writer = await stream.writer()
        with pytest.raises(SegmentEmptyError):
            await writer.roll()
        appended = [writer.append_nowait(b"%d" % number) for number in range(20)]
        ended = await writer.roll()
        assert all(each.done() for each in appended) and ended.records == 20
        last = writer.append_nowait(b"last")
        assert await writer.seal() == (await last).position
        with pytest.raises(StreamClosedError):
            writer.append_nowait(b"later")
        assert await stream.count() == 21
        with pytest.raises(StreamSealedError):
            await (await stream.writer()).append(b"later")


async def test_a_writer_that_is_aborted_says_of_each_append_what_is_known(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        writer = await stream.writer()
        await writer.append(b"first")
        waiting = [writer.append_nowait(b"more") for _ in range(10)]
        await writer.abort()
        await writer.abort()
        answers = await asyncio.gather(*waiting, return_exceptions=True)
        assert {type(each) for each in answers} <= {StreamClosedError, AppendOutcomeUnknownError, AppendResult}
        assert not any(isinstance(each, StreamClosedError) and each.outcome is not Outcome.REJECTED for each in answers)
        assert writer.closed
        told = sum(isinstance(each, AppendResult) for each in answers)
        unknown = sum(isinstance(each, AppendOutcomeUnknownError) for each in answers)
        assert 1 + told <= await stream.count() <= 1 + told + unknown
        for step in (writer.roll, writer.seal):
            with pytest.raises(StreamClosedError, match="aborted"):
                await step()  # what was appended before is not known to be there
        assert (await (await stream.writer()).append(b"another writer")).seq_no is not None


async def test_the_first_and_the_last_record_are_those_that_readers_see(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        assert (await stream.first(), await stream.last()) == (None, None)
        async with stream.writer() as writer:
            for number in range(3):
                await writer.append_batch([b"%d" % (10 * number + slot) for slot in range(10)])
                await writer.roll()
            await stream.truncate(AtSeqNo(13))
            ends = await stream.first(), await stream.last()
            assert [each.value for each in ends if each is not None] == [b"13", b"29"]
            await writer.append(b"30")
        last = await stream.last()
        assert last is not None and (last.seq_no, last.value) == (30, b"30")
        await stream.truncate(LATEST)
        assert (await stream.first(), await stream.last()) == (None, None)


class HeldPipe:
    """Answers when it is told to."""

    failure = None
    pending_bytes = 0

    def __init__(self) -> None:
        self.futures: list[asyncio.Future[AppendResult]] = []

    @property
    def pending(self) -> int:
        return sum(not future.done() for future in self.futures)

    def submit(self, request: object, records: int, size: int) -> asyncio.Future[AppendResult]:
        self.futures.append(asyncio.get_running_loop().create_future())
        return self.futures[-1]


async def test_a_repeat_that_is_refused_gives_no_number_a_second_time() -> None:
    """Cause: after a refusal the next number was that of the refused record, also if that was a repeat of an older one.
    The next record then had a number that was taken, and was answered as a duplicate, without being in the stream."""
    pipe: Any = HeldPipe()
    state = pb.ProducerState(epoch=1, last_sequence=4)
    producer = RemoteProducer(cast("Any", None), "s", pipe, "p", state, monotonic=False)
    for seq, free in ((1, 5), (None, 5), (5, 5)):
        future = producer.append_nowait(b"v", seq=seq)
        pipe.futures[-1].set_exception(StreamNotReadyError("nothing was appended", stream="s"))
        with pytest.raises(StreamNotReadyError):
            await asyncio.shield(future)
        await asyncio.sleep(0)
        assert producer.next_seq == free


@pytest.mark.parametrize("of", ["writer", "producer"])
async def test_a_batch_of_too_many_records_is_refused_before_it_is_sent_and_spoils_nothing(
    tmp_path: Path, of: str
) -> None:
    """Cause: only the gateway knew the limit. Its refusal ended the call, and the writer took it for its own end: a
    good record after it was refused for what the batch before it had been."""
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        async with asyncio.timeout(60), await (stream.writer() if of == "writer" else stream.producer("p")) as writer:
            for many in ([b""] * 140_000, [Record(b"", headers={"a": b"", "b": b""})] * 50_000):
                with pytest.raises(RecordTooLargeError, match="may have 131072 records and headers"):
                    await writer.append_batch(many)
            await writer.append(b"g")
        assert await stream.count() == 1


@pytest.mark.parametrize("limits", [GrpcLimits(request_elements_max=50), GrpcLimits(message_bytes_max=1000)])
async def test_a_message_that_is_refused_unread_says_nothing_of_those_behind_it(
    tmp_path: Path, limits: GrpcLimits
) -> None:
    """Cause: a writer ended with the refusal of one message, also where a gateway allows less than usual, and told it
    of every later append, which it was false of."""
    async with served(tmp_path, limits=limits) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        async with asyncio.timeout(60), stream.writer() as writer:
            await writer.append(b"before")
            refused = writer.append_batch_nowait([bytes(100)] * 60)
            with pytest.raises(StreamError, match=r"may have 50 records|larger than max"):
                await refused
            after = [writer.append_nowait(b"after") for _ in range(3)]
            refused = writer.append_batch_nowait([bytes(100)] * 60)
            behind = writer.append_nowait(b"behind")
            with pytest.raises(StreamError, match=r"may have 50 records|larger than max"):
                await refused
            for each in await asyncio.gather(*after, behind, return_exceptions=True):
                assert isinstance(each, AppendResult | AppendOutcomeUnknownError)
            await writer.append(b"last")
            last = await stream.last()
            assert last is not None and last.value == b"last"


async def test_a_bug_in_a_call_is_told_to_whoever_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cause: what went wrong while a batch was sent or its answer read ended a task that nobody looks at, and every
    append waited for ever."""
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        async with asyncio.timeout(60):
            writer = await stream.writer()
            await writer.append(b"good")
            monkeypatch.setattr(append_pipe, "get_result", {}.__getitem__)
            with pytest.raises(AppendOutcomeUnknownError):
                await writer.append(b"v")
            with pytest.raises(StreamInvariantError, match="another writer can go on"):
                await writer.append(b"w")
            assert writer.lost.is_set()
            await writer.close()
