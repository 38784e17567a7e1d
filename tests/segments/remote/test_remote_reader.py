"""Tails through a gateway in the same loop."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from bookkeeper.background_loop import run
from bookkeeper.errors import MetadataUnavailableError
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.outcome import Outcome
from segments import sync
from segments.errors import (
    GatewayTooOldError,
    PositionTruncatedError,
    ProducerFencedError,
    SequenceGapError,
    SequenceTooOldError,
    StreamNotFoundError,
    StreamUnavailableError,
)
from segments.gateway.calls import read_calls
from segments.gateway.calls.read_calls import ReadCalls
from segments.gateway.guard.call_guard import Behaviour, CallGuard
from segments.gateway.guard.grpc_call import GrpcCall
from segments.position import LATEST, Position
from segments.protocol import segments_pb2 as pb
from segments.protocol.resume_token import ResumeToken
from segments.read import Activity, RecordBatch
from segments.read.batches.record_batch import EntrySlice
from segments.record import GapKind, Record, StoredRecord, from_ms
from segments.remote import RemoteStream, connect, remote_reader
from segments.seek import Ago, AtSeqNo
from tests.segments.gateway.clusters import CONFIG, served


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
            assert await producer.outcome(0) == (Outcome.APPLIED, again)
            assert (await producer.outcome(9))[0] is Outcome.REJECTED
            second = await stream.producer("p")
            assert (second.epoch, second.last_seq, second.next_seq) == (2, 0, 1)
            with pytest.raises(ProducerFencedError):
                await producer.append(b"late", seq=1)
            assert producer.lost.is_set()
            await second.append_batch([b"a", b"b"])
            await second.close()
        assert [record.value async for record in stream.read()] == [b"one", b"a", b"b"]  # type: ignore[union-attr]


async def test_a_producer_that_was_forgotten_goes_on_with_its_numbers(tmp_path: Path) -> None:
    """As the library's: the gateway forgot that the stream has forgotten, and refused the number as a gap."""
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG.patched({"producers.max_producers": 1}))
        for name in ("p", "q"):
            async with stream.producer(name) as producer:
                await producer.append_batch([b"0", b"1"])
        async with stream.producer("p") as producer:
            assert producer.maybe_forgotten and producer.last_seq is None
            assert (await producer.append(b"2", seq=2)).seq_no == 4
            with pytest.raises(SequenceGapError):
                await producer.append(b"4", seq=4)
            assert (await producer.append(b"3", seq=3)).seq_no == 5


async def test_what_a_forgotten_producer_sends_unopened_is_not_guessed(tmp_path: Path) -> None:
    """The gateway opened the forgotten name by itself, and took what was sent again for new: the client was never told.
    And it said that a record is not there which is."""
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG.patched({"producers.max_producers": 1}))
        producer = await stream.producer("p")
        await producer.append_batch([b"0", b"1"])
        async with stream.producer("q") as other:
            await other.append(b"q")
        for _ in range(2):
            with pytest.raises(SequenceTooOldError, match="open the producer first, which tells"):
                await producer.append(b"1", seq=1)
        assert await producer.outcome(1) == (Outcome.UNKNOWN, None)
        for _ in range(2):
            async with stream.producer("p") as again:
                assert again.maybe_forgotten and await again.outcome(1) == (Outcome.UNKNOWN, None)
        with pytest.raises(ProducerFencedError):
            await producer.append(b"1", seq=1)
        assert [record.value async for record in stream.read()] == [b"0", b"1", b"q"]  # type: ignore[union-attr]


async def test_who_has_read_all_of_a_segment_has_missed_nothing_when_it_goes(tmp_path: Path) -> None:
    """A place that a client keeps, a cursor, and a token to resume with, which holds a position alone."""
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG.patched({"roll.min_age_s": 0, "retention.consumed": True}))
        async with stream.writer() as writer:
            for _ in range(3):
                last = (await writer.append_batch([b"a", b"b"])).last
                cursor_at = last
                await writer.roll()
                if last.segment == 2:
                    kept = last
            await writer.append(b"c")
        assert cursor_at.segment == 3
        async with stream.cursor("c") as cursor:
            await cursor.advance(kept)
        assert len((await stream.apply_retention()).deleted) == 2
        assert (await stream.apply_retention()).report.expired_cursors == ()
        async with stream.cursor("c") as cursor, cursor.read() as reader:
            assert [record.seq_no async for record in reader] == [4, 5, 6]  # type: ignore[union-attr]
        async with stream.read(kept.next) as reader:
            assert [record.seq_no async for record in reader] == [4, 5, 6]  # type: ignore[union-attr]
        assert await stream.count(kept.next) == 3 and (await stream.hold("h", kept.next)).start == Position(3, 0, 0)
        assert sum(each.records for each in await stream.splits(kept.next, target=2)) == 3
        token = ResumeToken(stream.id, kept.next).encode()
        opened = pb.TailRequest.Open(stream="s", resume_token=token, on_gap=pb.ON_GAP_YIELD)
        call = namespace.channels.open("Read.Tail", namespace.channels.address_for(""))
        await call.send(pb.TailRequest(open=opened, credits=pb.Credits(records=9, bytes=1000)))
        first = await call.receive()
        while not first.HasField("batch"):
            assert first.HasField("progress")
            first = await call.receive()
        assert first.batch.records[0].seq_no == 4
        call.cancel()
        with pytest.raises(PositionTruncatedError):
            await stream.find(kept)


async def test_what_a_cancelled_batch_had_collected_comes_next_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its credits are not given twice. A seek beside a read is refused, as is a second read."""
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        async with stream.writer() as writer, stream.read(follow=True) as reader:
            await writer.append_batch([b"%d" % number for number in range(5)])
            first = await reader.next()
            assert isinstance(first, StoredRecord)
            held, hand_out, handed_out = reader._held_bytes, reader._hand_out, asyncio.Event()

            def seen(slices: Sequence[EntrySlice]) -> None:
                hand_out(slices)
                if not reader._held_bytes:
                    handed_out.set()

            monkeypatch.setattr(reader, "_hand_out", seen)
            collecting = asyncio.create_task(reader.next_batch(9, wait=60))
            await asyncio.wait_for(handed_out.wait(), 30 * stretch())
            with pytest.raises(RuntimeError, match="two tasks"):
                await reader.next()
            with pytest.raises(RuntimeError, match="seeks while another one reads"):
                await reader.seek(first.position)
            collecting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await collecting
            assert reader._held_bytes == held
            assert [record.value for record in await reader.next_batch()] == [b"1", b"2", b"3", b"4"]
            assert reader._held_bytes == 0
            await reader.seek(first.position)
            assert len(await reader.next_batch(wait=0.1)) == 5


async def some_of_everything(stream: RemoteStream) -> None:
    """Records of every kind: in pieces, with keys and headers, of producers, in entries of many."""
    async with stream.writer() as writer:
        await writer.append_batch([b"%d" % number for number in range(500)])
        await writer.append(bytes(3_000_000))
        await writer.append_batch([Record(b"v", 7, b"k", {"h": b"1"}, from_ms(5_000)), Record(b"w")])
    async with stream.producer("p") as producer:
        for number in range(3):
            await producer.append(b"p%d" % number)


async def test_records_batches_and_arrow_are_those_of_the_library(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG.patched({"compression": "zstd"}))
        await some_of_everything(stream)
        assert gateway._namespace is not None
        direct = await gateway._namespace.open("s")
        expected = [record async for record in direct.read()]
        assert [record async for record in stream.read()] == expected and len(expected) == 506
        here = [batch async for batch in direct.read().arrow_batches()]
        there = [batch async for batch in stream.read().arrow_batches()]
        assert [row for batch in there for row in batch.to_pylist()] == [row for b in here for row in b.to_pylist()]
        assert all(batch.schema == here[0].schema for batch in there)
        async with stream.read(AtSeqNo(7), stop=AtSeqNo(503)) as reader:
            batch = await reader.next_batch(10)
            assert isinstance(batch, RecordBatch)
            assert (len(batch), batch.first_seq_no, batch.values()[0]) == (10, 7, b"7")
            assert reader.position == batch.last.next == expected[17].position  # type: ignore[union-attr]
            assert len(await reader.next_batch(max_bytes=1)) == 1
            assert (await reader.next()).seq_no == 18  # type: ignore[union-attr]
            assert sum([len(batch) async for batch in reader.batches(100)]) == 503 - 19
            assert reader.ended and not await reader.next_batch()
            assert reader.position == expected[502].position.next  # type: ignore[union-attr]
        async with stream.read(LATEST, follow=True) as reader:
            assert not await reader.next_batch(wait=0.05)
        async with stream.read(follow=True) as reader:
            collected = await reader.next_batch(506, wait=20)
            assert list(collected) == expected
            reader._give.clear()
            taken = reader._taken[1]
            assert taken == sum(entry.share(a, b) for entry, a, b in collected.slices)


async def test_a_gateway_that_knows_no_entries_sends_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older gateway passes over the wish for entries. Its records are the same ones, and Arrow is made of them."""
    replies = ReadCalls.replies

    def older(self: ReadCalls, *arguments: Any, entries: bool) -> list[pb.ReadReply]:
        return replies(self, *arguments, entries=False)

    monkeypatch.setattr(ReadCalls, "replies", older)
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        await some_of_everything(stream)
        assert gateway._namespace is not None
        direct = await gateway._namespace.open("s")
        expected = [record async for record in direct.read()]
        assert [record async for record in stream.read()] == expected
        here = [batch async for batch in direct.read().arrow_batches()]
        there = [batch async for batch in stream.read(AtSeqNo(3)).arrow_batches()]
        rows = [row for b in here for row in b.to_pylist()]
        assert [row for batch in there for row in batch.to_pylist()] == rows[3:]
        async with stream.read(follow=True) as reader:
            batch = await reader.next_batch(500, wait=20)
            assert reader._taken == [500, sum(len(value) for value in batch.values())]


@pytest.mark.parametrize("entries", [True, False])
async def test_a_bounded_read_that_breaks_goes_on_where_it_was(
    entries: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, breaks = ReadCalls.read, 0

    async def broken(self: ReadCalls, request: pb.ReadRequest, call: GrpcCall) -> AsyncIterator[pb.ReadReply]:
        nonlocal breaks
        request.entries = request.entries and entries
        count = 0
        async for reply in reading(self, request, call):
            yield reply
            count += 1
            if count == 2 and breaks < 3:
                breaks += 1
                raise StreamUnavailableError("this gateway goes away")

    monkeypatch.setattr(ReadCalls, "read", broken)
    monkeypatch.setattr(read_calls, "BATCH_BYTES", 1)
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        async with stream.writer() as writer:
            for number in range(8):
                await writer.append_batch([b"%d" % number, b"and more"])
        async with stream.cursor("c") as cursor:
            await cursor.ack(await stream.find(AtSeqNo(3)), await stream.find(AtSeqNo(9)))
            undone = [record.seq_no async for record in cursor.read()]  # type: ignore[union-attr]
        assert (undone, breaks) == ([0, 1, 2, 4, 5, 6, 7, 8, *range(10, 16)], 3)
        breaks = 0
        found = [record.seq_no async for record in stream.read(stop=AtSeqNo(15))]  # type: ignore[union-attr]
        assert (found, breaks) == (list(range(15)), 3)


async def test_a_tail_at_the_end_that_breaks_at_once_passes_nothing_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next call began at the end that the stream had by then."""
    tailing, breaks = ReadCalls.tail, asyncio.Event()

    async def broken(self: ReadCalls, requests: Any, call: GrpcCall) -> AsyncIterator[pb.ReadReply]:
        if not breaks.is_set():
            breaks.set()
            await go_on.wait()
            raise StreamUnavailableError("this gateway goes away")
        async for reply in tailing(self, requests, call):
            yield reply

    monkeypatch.setattr(ReadCalls, "tail", broken)
    go_on = asyncio.Event()
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        async with stream.writer() as writer, stream.read(LATEST, follow=True) as reader:
            await writer.append(b"before")
            reading = asyncio.ensure_future(reader.next(timeout=20))
            await breaks.wait()
            await writer.append(b"since")
            go_on.set()
            record = await reading
            assert isinstance(record, StoredRecord) and record.value == b"since"
        async with stream.read(Ago(timedelta(days=1)), follow=True) as reader:
            assert await reader.next(timeout=20) is not None and isinstance(reader._start, Position)


async def test_a_gap_is_raised_told_or_passed_over(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        async with stream.writer() as writer:
            at = [(await writer.append(b"%d" % number)).position for number in range(10)]
        await stream.truncate(at[4])
        async with stream.read(at[2]) as reader:
            for _ in range(2):
                with pytest.raises(PositionTruncatedError):
                    await reader.next_batch()
            gap = await reader.skip_gap()
            assert gap is not None and gap.kind is GapKind.TRUNCATED and await reader.skip_gap() is None
            assert len(await reader.next_batch()) == 6
        async with stream.read(at[2], on_gap="yield") as reader:
            batches = [batch async for batch in reader.batches()]
            assert batches[0].gap == gap and sum(map(len, batches)) == 6
        async with stream.read(at[2], on_gap="skip") as reader:
            assert len([record async for record in reader]) == 6 and reader.skipped_gaps == 1


async def until(true: Callable[[], bool]) -> None:
    """Let others go on until it is."""
    for _ in count():
        if true():
            return
        await asyncio.sleep(0)


@pytest.mark.parametrize("follow", [False, True])
async def test_what_waits_in_a_reader_is_bounded_however_slow_its_caller_is(
    follow: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read to the end took the whole stream into memory; a tail took as much as it may have again with each call."""
    limit = 1024 * 1024
    monkeypatch.setattr(remote_reader, "CREDIT_BYTES", limit)
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        async with stream.writer() as writer:
            for _ in range(50):
                await writer.append_batch([bytes(50_000)] * 5)
        async with stream.read(follow=follow) as reader:
            assert isinstance(await reader.next(timeout=20), StoredRecord)
            for _ in range(3):
                async with asyncio.timeout(20):
                    await until(lambda: reader._held_bytes >= limit - 300_000)
                for _ in range(3000):  # what may come has come
                    await asyncio.sleep(0)
                slices = [item for item in reader._ready._items if isinstance(item, EntrySlice)]
                waiting = sum(entry.share(a, b) for entry, a, b in slices)
                assert waiting == reader._held_bytes <= limit + 1_300_000, "and a message"
                if follow:
                    await reader._stop_running()  # as if the gateway had gone away
                    reader._running = asyncio.create_task(reader._run())
            read = 1
            while read < 250:
                read += len(await reader.next_batch(7))
            assert reader._held_bytes == 0 and (await reader.lag()).records == 0


async def test_lag_and_state_are_those_of_the_library(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        async with stream.writer() as writer:
            await writer.append_batch([bytes(100)] * 10)
            await stream.roll()
            await writer.append_batch([bytes(100)] * 5)
            assert gateway._namespace is not None
            direct = await gateway._namespace.open("s")
            async with stream.read(AtSeqNo(3), follow=True) as there, direct.read(AtSeqNo(3), follow=True) as here:
                assert await there.lag() == await here.lag() and (await there.lag()).records == 12
                assert (await there.state()).activity is Activity.READING and (await there.state()).quiet_s == 0.0
                for take in (4, 2, 3):
                    for reader in (there, here):
                        assert len(await reader.next_batch(take, wait=20)) == take
                    (records, size, seconds), known = await there.lag(), await here.lag()
                    assert (records, size) == known[:2] and seconds is not None
                    states = [await reader.state() for reader in (there, here)]
                    assert [state.activity for state in states] == [Activity.READING] * 2
                    assert states[0].reason == states[1].reason and states[0].position == states[1].position
                for reader in (there, here):
                    assert len(await reader.next_batch(3, wait=20)) == 3
                    assert await reader.next(timeout=0.2) is None
                assert await there.lag() == await here.lag() == (0, 0, 0.0)
                states = [await reader.state() for reader in (there, here)]
                assert [state.activity for state in states] == [Activity.IDLE] * 2
                assert states[0].reason == states[1].reason and states[0].quiet_s > 0
                await there.seek(AtSeqNo(14))
                lag = await there.lag()
                assert (lag.records, lag.seconds) == (1, None)
                await stream.seal()
                assert len(await there.next_batch(wait=20)) == 1 and await there.next() is None
                assert (await there.state()).activity is Activity.ENDED
        await namespace.delete("s")
        for reader in (stream.read(), direct.read()):
            with pytest.raises(StreamNotFoundError):
                await reader.state()
            with pytest.raises(StreamNotFoundError):
                await reader.lag()


async def test_a_reader_says_that_it_is_stuck_when_the_gateway_or_what_is_behind_it_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_reader, "STATE_S", 0.3)
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        async with stream.writer() as writer:
            await writer.append(b"v")
        reader = stream.read(follow=True)
        assert await reader.next(timeout=20) is not None
        assert gateway._table is not None
        reading = (await gateway._table.get("s")).stream.reading

        async def away() -> None:
            raise MetadataUnavailableError("the store is away")

        monkeypatch.setattr(reading.source.chain._node, "read", away)
        state = await reader.state()
        assert state.activity is Activity.STUCK and state.reason.startswith("the metadata store does not answer")
        monkeypatch.undo()
        monkeypatch.setattr(remote_reader, "STATE_S", 0.3)
        assert (await reader.state()).activity is Activity.IDLE
        await gateway.close()
        state = await reader.state()
        assert state.activity is Activity.STUCK and state.reason.startswith("no gateway answers")
        assert state.position == reader.position and state.quiet_s > 0
        await reader.close()


async def test_an_older_gateway_is_told_as_such_when_it_is_asked_for_lag_or_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handlers = CallGuard.handlers

    def older(self: CallGuard, behaviours: Mapping[str, Behaviour]) -> list[Any]:
        new = {"Read.GetLag", "Read.GetActivity"}
        return handlers(self, {key: each for key, each in behaviours.items() if key not in new})

    monkeypatch.setattr(CallGuard, "handlers", older)
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        reader = (await namespace.create("s", config=CONFIG)).read()
        address = re.escape(str(gateway.address))
        with pytest.raises(GatewayTooOldError, match=f"{address} is of an older version.*Read.GetLag"):
            await reader.lag()
        with pytest.raises(GatewayTooOldError, match=f"{address} is of an older version.*Read.GetActivity"):
            await reader.state()


def test_threads_read_through_a_gateway_too(tmp_path: Path) -> None:
    """``segments.sync`` iterates by batches, which a remote reader did not have."""
    with background_gateway(tmp_path) as address, sync.connect(f"grpc://{address}") as namespace:
        stream = namespace.create("s", config=CONFIG)
        with stream.writer() as writer:
            writer.append_batch([b"a", b"b"])
        with stream.read() as reader:
            assert [record.value for record in reader] == [b"a", b"b"]  # type: ignore[union-attr]
        with stream.read() as reader:
            assert sum(batch.num_rows for batch in reader.arrow_batches()) == 2
        with stream.read(follow=True) as reader:
            assert reader.next(timeout=20) is not None and reader.lag().records == 1
            assert reader.next(timeout=20) is not None and reader.state().activity is Activity.IDLE
        with stream.cursor("c") as cursor, cursor.read() as reader:
            cursor.ack(reader.next_batch(1))
            assert cursor.state().mark.seq_no == 1


@contextmanager
def background_gateway(directory: Path) -> Iterator[str]:
    """A gateway on the loop of the blocking clients."""
    running = served(directory)

    async def begin() -> str:
        return str((await running.__aenter__()).address)

    async def end() -> None:
        await running.__aexit__(None, None, None)

    address = run(begin())
    try:
        yield address
    finally:
        run(end())
