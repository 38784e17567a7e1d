"""The service Read: records between two positions, tails with credits, positions and counts.

Any gateway reads any stream: readers ask the bookies, not the owner.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from functools import partial
from typing import Final

from segments import errors
from segments.cursors.acked_ranges import undone
from segments.gateway.calls.name_watch import while_named
from segments.gateway.calls.served_streams import ServedStream, ServedStreams
from segments.gateway.gateway_metrics import GatewayMetrics
from segments.gateway.guard.call_guard import Behaviour
from segments.gateway.guard.grpc_call import GrpcCall
from segments.position import EARLIEST, LATEST, Position
from segments.protocol import segments_pb2 as pb
from segments.protocol.credits import CreditBalance
from segments.protocol.entry_messages import put_entries
from segments.protocol.messages import get_seek, put_activity, put_batch, put_gap, put_position
from segments.protocol.resume_token import ResumeToken
from segments.read import Reader, RecordBatch
from segments.read.batches.record_batch import EntrySlice
from segments.read.options import OnGap, Parts
from segments.seek import Seek

BATCH_RECORDS: Final = 4096
"""The most records of one reply."""

BATCH_BYTES: Final = 1024 * 1024
"""About the most bytes of one reply."""

SPLITS_MAX: Final = 10_000
"""A stream is cut into no more ranges, so that an answer fits into a message."""

PROGRESS_MS: Final = 2000
PROGRESS_LEAST_MS: Final = 50


class ReadCalls:
    """The behaviours of the service."""

    def __init__(self, table: ServedStreams, metrics: GatewayMetrics, draining: asyncio.Event) -> None:
        """``draining`` is set when the gateway ends: then tails end, and go on at another gateway."""
        self._table = table
        self._metrics = metrics
        self._draining = draining

    @property
    def behaviours(self) -> Mapping[str, Behaviour]:
        """By service and name."""
        return {
            "Read.Read": self.read,
            "Read.Tail": self.tail,
            "Read.Find": self.find,
            "Read.Count": self.count,
            "Read.GetSplits": self.get_splits,
            "Read.GetLag": self.get_lag,
            "Read.GetActivity": self.get_activity,
        }

    async def read(self, request: pb.ReadRequest, call: GrpcCall) -> AsyncIterator[pb.ReadReply]:
        """The records between two positions. gRPC's own flow control slows it down to the client's pace."""
        async with (
            while_named(self._table, request.stream, call) as served,
            aclosing(self._read(request, served)) as replies,
        ):
            async for reply in replies:
                yield reply

    async def _read(self, request: pb.ReadRequest, served: ServedStream) -> AsyncGenerator[pb.ReadReply, None]:
        left, at = request.max_records or None, None
        stop = get_seek(request.stop) if request.HasField("stop") else None
        parts = await _parts(served, request.undone_by)
        reader = _reader(served, get_seek(request.start, EARLIEST), request.on_gap, parts, stop=stop)
        async with reader:
            while left is None or left > 0:
                wanted = BATCH_RECORDS if left is None else min(left, BATCH_RECORDS)
                batch = await reader.next_batch(wanted, max_bytes=BATCH_BYTES)
                if not batch:
                    break
                if left is not None:
                    left -= len(batch)
                elif request.entries:
                    batch = await _completed(batch, reader)
                for reply in self.replies(batch, served, 0, entries=request.entries):
                    yield reply
                at = _behind(batch)
            yield _ended(served, reader.position if at is None else at, 0)

    def replies(
        self, batch: RecordBatch, served: ServedStream, generation: int, *, entries: bool
    ) -> list[pb.ReadReply]:
        """What to send of a batch: its gap, then its records, with ``entries`` in their entries."""
        token = ResumeToken(served.stream.id, _behind(batch)).encode()
        found = []
        if batch.gap is not None:
            self._metrics.gaps.add()
            found.append(pb.ReadReply(gap=put_gap(batch.gap), resume_token=token, generation=generation))
        if len(batch) and entries:
            self._metrics.read_records.add(len(batch))
            self._metrics.read_bytes.add(batch.size)
            found.append(pb.ReadReply(entries=put_entries(batch), resume_token=token, generation=generation))
        elif len(batch):
            records = batch.records()
            self._metrics.read_records.add(len(records))
            self._metrics.read_bytes.add(sum(len(record.value) for record in records))
            found.append(pb.ReadReply(batch=put_batch(records), resume_token=token, generation=generation))
        return found

    async def tail(self, requests: AsyncIterator[pb.TailRequest], call: GrpcCall) -> AsyncIterator[pb.ReadReply]:
        """Records as they come, as many as the client gives credits for."""
        first = await anext(aiter(requests), None)
        if first is None or not first.HasField("open"):
            raise errors.SeekFormatError("the first request of a tail has `open`: the stream, and where to begin")
        async with (
            while_named(self._table, first.open.stream, call) as served,
            aclosing(self._tail(first, requests, served)) as replies,
        ):
            async for reply in replies:
                yield reply

    async def _tail(
        self, first: pb.TailRequest, requests: AsyncIterator[pb.TailRequest], served: ServedStream
    ) -> AsyncGenerator[pb.ReadReply, None]:
        parts = await _parts(served, first.open.undone_by)
        session = _TailSession(self, served, first, parts, self._metrics, self._draining)
        self._metrics.tails.value += 1
        listening = asyncio.get_running_loop().create_task(session.listen(requests), name="tail")
        try:
            async for reply in session.replies():
                yield reply
        finally:
            self._metrics.tails.value -= 1
            listening.cancel()
            await asyncio.wait([listening])
            await session.close()

    async def find(self, request: pb.FindRequest, call: GrpcCall) -> pb.PositionReply:
        """The position that a seek names. Raises: as ``Stream.find``."""
        served = await self._table.get(request.stream)
        return pb.PositionReply(position=put_position(await served.stream.find(get_seek(request.seek))))

    async def count(self, request: pb.CountRequest, call: GrpcCall) -> pb.CountReply:
        """How many records are between two positions. Raises: as ``Stream.count``."""
        served = await self._table.get(request.stream)
        start, stop = get_seek(request.start, EARLIEST), get_seek(request.stop, LATEST)
        return pb.CountReply(records=await served.stream.count(start, stop))

    async def get_splits(self, request: pb.SplitsRequest, call: GrpcCall) -> pb.SplitsReply:
        """Ranges of about equal size. Raises: as ``Stream.splits``."""
        served = await self._table.get(request.stream)
        start, stop = get_seek(request.start, EARLIEST), get_seek(request.stop, LATEST)
        ranges = await served.stream.splits(start, stop, target=min(max(request.target, 1), SPLITS_MAX))
        return pb.SplitsReply(
            ranges=[
                pb.Range(
                    start=put_position(each.start),
                    stop=put_position(each.stop),
                    records=each.records,
                    bytes=each.bytes,
                )
                for each in ranges
            ]
        )

    async def get_lag(self, request: pb.LagRequest, call: GrpcCall) -> pb.LagReply:
        """How far a reader is behind the end. Raises: as ``StreamReading.lag``."""
        served = await self._table.get(request.stream)
        last_append_ms = request.last_append_ms if request.HasField("last_append_ms") else None
        lag = await served.stream.reading.lag(get_seek(request.place, EARLIEST), last_append_ms)
        return pb.LagReply(records=lag.records, bytes=lag.bytes, seconds=lag.seconds)

    async def get_activity(self, request: pb.ActivityRequest, call: GrpcCall) -> pb.ActivityReply:
        """What a reader can be doing. Raises: as ``StreamReading.activity``."""
        served = await self._table.get(request.stream)
        activity, reason = await served.stream.reading.activity(get_seek(request.place, EARLIEST))
        return pb.ActivityReply(activity=put_activity(activity), reason=reason)


class _TailSession:
    """One tail: its reader, the credits that are left, and where it shall go on."""

    def __init__(
        self,
        calls: ReadCalls,
        served: ServedStream,
        first: pb.TailRequest,
        parts: Callable[[], Parts] | None,
        metrics: GatewayMetrics,
        draining: asyncio.Event,
    ) -> None:
        self._calls = calls
        self._served = served
        self._metrics = metrics
        self._draining = draining
        self._entries = first.open.entries
        self._balance = CreditBalance()
        self._generation = 0
        self._seek: Seek | None = None
        self._failure: errors.StreamError | None = None
        self._news = asyncio.Event()
        progress_ms = first.open.progress_ms or PROGRESS_MS
        self._progress_s = max(progress_ms, PROGRESS_LEAST_MS) / 1000
        start: Seek = get_seek(first.open.start, EARLIEST)
        if first.open.resume_token:
            start = self._resumed(first.open.resume_token)
        self._reader = _reader(served, start, first.open.on_gap, parts, follow=True)
        self._take(first)

    def _resumed(self, raw: bytes) -> Seek:
        token = ResumeToken.decode(raw)
        if token.stream_id != self._served.stream.id:
            raise errors.PositionFormatError(
                f"the token to resume with is of another stream than {self._served.stream.name}; the name may be "
                "that of a new stream: begin at a position of it",
                stream=self._served.stream.name,
            )
        return token.position

    async def close(self) -> None:
        """Close the reader."""
        await self._reader.close()

    async def listen(self, requests: AsyncIterator[pb.TailRequest]) -> None:
        """Take credits and seeks as they come."""
        try:
            async for request in requests:
                self._take(request)
                self._news.set()
        except errors.StreamError as error:
            self._failure = error
            self._news.set()

    def _take(self, request: pb.TailRequest) -> None:
        if request.HasField("credits"):
            try:
                self._balance.grant(request.credits.records, request.credits.bytes)
            except ValueError as error:
                raise errors.SeekFormatError(str(error)) from error
        if request.HasField("seek"):
            self._seek = get_seek(request.seek)

    async def replies(self) -> AsyncIterator[pb.ReadReply]:
        """What to send. Raises what ends the call."""
        reading: asyncio.Task[RecordBatch] | None = None
        news = asyncio.ensure_future(self._news.wait())
        draining = asyncio.ensure_future(self._draining.wait())
        try:
            while True:
                if reading is None and self._balance.may_send:
                    reading = asyncio.ensure_future(self._next())
                waits = [each for each in (reading, news, draining) if each is not None]
                await asyncio.wait(waits, timeout=self._progress_s, return_when=asyncio.FIRST_COMPLETED)
                if draining.done():
                    raise errors.StreamNotReadyError("this gateway is being stopped: go on at another one")
                if news.done():
                    self._news.clear()
                    news = asyncio.ensure_future(self._news.wait())
                    if self._failure is not None:
                        raise self._failure
                    if self._seek is not None:
                        await self._follow_seek(reading)
                        reading = None
                    continue
                if reading is None or not reading.done():
                    if reading is None:
                        self._metrics.tails_without_credits.add()
                    yield self._progress()
                    continue
                batch, reading = reading.result(), None
                if not batch and self._reader.ended:
                    yield _ended(self._served, self._reader.position, self._generation)
                    return
                self._balance.spend(len(batch), self._cost(batch))
                replies = self._calls.replies(batch, self._served, self._generation, entries=self._entries)
                for reply in replies:
                    yield reply
        finally:
            for task in (reading, news, draining):
                if task is not None:
                    task.cancel()
            if reading is not None:
                await asyncio.wait([reading])

    async def _next(self) -> RecordBatch:
        records, size = min(self._balance.records, BATCH_RECORDS), min(self._balance.bytes, BATCH_BYTES)
        batch = await self._reader.next_batch(records, max_bytes=size)
        return await _completed(batch, self._reader) if self._entries else batch

    def _cost(self, batch: RecordBatch) -> int:
        """The credits for bytes that it takes; its reader reckons in the same way."""
        if self._entries:
            return sum(entry.share(a, b) for entry, a, b in batch.slices)
        return sum(len(each.value) + len(each.key or b"") for each in batch.records())

    async def _follow_seek(self, reading: asyncio.Task[RecordBatch] | None) -> None:
        """Follow a seek. What was read meanwhile is not sent."""
        if reading is not None:
            reading.cancel()
            await asyncio.wait([reading])
        seek, self._seek = self._seek, None
        assert seek is not None
        await self._reader.seek(seek)
        self._generation += 1

    def _progress(self) -> pb.ReadReply:
        position = self._reader.position
        return pb.ReadReply(
            progress=pb.Progress(position=put_position(position), caught_up=self._reader.caught_up),
            resume_token=ResumeToken(self._served.stream.id, position).encode(),
            generation=self._generation,
        )


def _reader(
    served: ServedStream,
    start: Seek,
    on_gap: int,
    parts: Callable[[], Parts] | None,
    *,
    stop: Seek | None = None,
    follow: bool = False,
) -> Reader:
    gaps: OnGap = "yield" if on_gap == pb.ON_GAP_YIELD else "raise"
    return served.stream.reading.read(start, parts=parts, stop=stop, follow=follow, on_gap=gaps)


async def _completed(batch: RecordBatch, reader: Reader) -> RecordBatch:
    """The batch with the rest of its last entry, if that comes next: it is sent with the entry in any case."""
    if not batch.slices:
        return batch
    entry, a, b = batch.slices[-1]
    if b == entry.count or reader.position != entry.position(b):
        return batch
    rest = (await reader.next_batch(entry.count - b)).slices
    if rest and rest[0].entry is entry:
        return RecordBatch([*batch.slices[:-1], EntrySlice(entry, a, rest[0].b), *rest[1:]], batch.gap)
    return RecordBatch([*batch.slices, *rest], batch.gap)


async def _parts(served: ServedStream, cursor: str) -> Callable[[], Parts] | None:
    """Which records to send: those that the cursor has not done; all if no cursor is named.

    Raises: CursorNotFoundError.
    """
    if not cursor:
        return None
    state = await served.stream.cursor(cursor).state()
    return lambda: partial(undone, state.mark, state.ranges)


def _behind(batch: RecordBatch) -> Position:
    """Directly behind what is sent. The reader itself may have looked further, also beyond its stop."""
    if batch.slices:
        return batch.slices[-1].entry.position(batch.slices[-1].b)
    assert batch.gap is not None, "a batch has records, or a gap"
    return batch.gap.last.next


def _ended(served: ServedStream, position: Position, generation: int) -> pb.ReadReply:
    return pb.ReadReply(
        end_of_stream=pb.EndOfStream(position=put_position(position)),
        resume_token=ResumeToken(served.stream.id, position).encode(),
        generation=generation,
    )
