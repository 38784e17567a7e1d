"""Streams for threads: the same interface, on an event loop in the background.

    from segments import sync

    with sync.connect("embedded:///data/bk?bookies=3") as namespace:
        stream = namespace.open("orders", create=True)
        with stream.producer("loader") as producer:
            producer.append(b"one order")                 # durable when it returns
        with stream.read() as reader:
            for record in reader:
                print(record.position, record.value)

There is no second implementation: every call runs a method of the async interface on that loop and waits for it, and
raises what that raises. Any thread may use any object here; appends of many threads share entries. Ctrl-C cancels a
call on the loop, which does not withdraw an append. The blocking client of ledgers, ``bookkeeper.sync``, uses the same
loop.
"""

from __future__ import annotations

import concurrent.futures
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self, Unpack

from bookkeeper.background_loop import BlockingCloser, each, run, submit
from segments import namespace as async_namespace
from segments.chain import StreamSegment
from segments.checks.checker import CheckOptions
from segments.checks.findings import Finding
from segments.checks.overview import StreamOverview
from segments.config import StreamConfig
from segments.cursors import Acked, CursorOptions, CursorState, CursorVersion
from segments.cursors import Cursor as AsyncCursor
from segments.directory.directory import NamespaceEvent, StreamEvent, StreamInfo
from segments.entries import RecordColumns
from segments.namespace import StreamNamespace as AsyncNamespace
from segments.position import EARLIEST, LATEST, Position
from segments.read.options import BATCH_RECORDS, ReaderOptions
from segments.read.reader import Reader as AsyncReader
from segments.read.reader_state import Lag, ReaderState
from segments.read.record_batch import RecordBatch
from segments.read.splits import StreamRange
from segments.record import AppendOutcome, AppendResult, Gap, Record, StoredRecord
from segments.retention.deletion import Tombstone
from segments.retention.holds import Hold
from segments.retention.retention import RetentionReport
from segments.retention.retention_pass import PassResult
from segments.retention.truncation import TruncateResult
from segments.seek import Seek
from segments.stream import Stream as AsyncStream
from segments.stream import WriterOptions
from segments.transfer.transfer import Imported
from segments.write.producer import GapRule
from segments.write.producer import Producer as AsyncProducer
from segments.write.writer import Writer as AsyncWriter

if TYPE_CHECKING:
    from bookkeeper import ClientConfig

__all__ = ["Cursor", "Namespace", "Producer", "Reader", "Stream", "Writer", "connect"]


def connect(uri: str, *, config: ClientConfig | None = None) -> Namespace:
    """Connect to the streams of the cluster at a metadata URI. Close it, or use it in a ``with``. Raises as the async
    one."""

    async def connected() -> AsyncNamespace:
        return await async_namespace.connect(uri, config=config)

    return Namespace(run(connected()))


class Namespace(BlockingCloser):
    """All streams of one cluster, for threads. See :class:`segments.namespace.StreamNamespace`."""

    def __init__(self, namespace: AsyncNamespace) -> None:
        self._namespace = namespace

    def create(self, name: str, *, config: StreamConfig | None = None, exist_ok: bool = False) -> Stream:
        """Make a stream."""
        return Stream(run(self._namespace.create(name, config=config, exist_ok=exist_ok)))

    def open(self, name: str, *, create: bool = False, config: StreamConfig | None = None) -> Stream:
        """Open a stream; with ``create`` make it if there is none."""
        return Stream(run(self._namespace.open(name, create=create, config=config)))

    def exists(self, name: str) -> bool:
        """Whether there is a stream of this name."""
        return run(self._namespace.exists(name))

    def list(self, prefix: str = "") -> Iterator[str]:
        """The names of the streams that begin with ``prefix``, sorted."""
        return each(lambda: self._namespace.list(prefix))

    def infos(self, prefix: str = "") -> Iterator[StreamInfo]:
        """The streams whose names begin with ``prefix``, each in one line."""
        return each(lambda: self._namespace.infos(prefix))

    def watch(self, prefix: str = "") -> Iterator[NamespaceEvent]:
        """Streams as they come, go and are renamed, for ever. Close the iterator to end it."""
        return each(lambda: self._namespace.watch(prefix))

    def rename(self, old: str, new: str) -> None:
        """Give a stream another name."""
        run(self._namespace.rename(old, new))

    def delete(self, name: str, *, missing_ok: bool = False, force: bool = False) -> None:
        """Delete a stream with everything that belongs to it."""
        run(self._namespace.delete(name, missing_ok=missing_ok, force=force))

    def finish_deletions(self) -> tuple[Tombstone, ...]:
        """Finish the deletions that a crash has left; returns them."""
        return run(self._namespace.finish_deletions())

    def import_stream(
        self,
        chunks: Iterable[bytes],
        *,
        name: str | None = None,
        changes: dict[str, Any] | None = None,
        dry_run: bool = False,
    ) -> Imported:
        """Make a stream of an exported file. The chunks are taken on the background loop's thread."""

        async def from_chunks() -> AsyncIterator[bytes]:
            for chunk in chunks:
                yield chunk

        return run(self._namespace.import_stream(from_chunks(), name=name, changes=changes, dry_run=dry_run))

    def verify(self, name: str | None = None, options: CheckOptions | None = None) -> tuple[Finding, ...]:
        """Compare what is known of a stream, or of all."""
        return run(self._namespace.verify(name, options))

    def close(self) -> None:
        """End the connection. Idempotent."""
        run(self._namespace.close())


class Stream:
    """One stream, for threads. See :class:`segments.stream.Stream`."""

    def __init__(self, stream: AsyncStream) -> None:
        self._stream = stream

    @property
    def name(self) -> str:
        return self._stream.name

    @property
    def id(self) -> str:
        return self._stream.id

    @property
    def config(self) -> StreamConfig:
        return self._stream.config

    def __repr__(self) -> str:
        return repr(self._stream)

    def writer(self, **options: Unpack[WriterOptions]) -> Writer:
        """Take the stream over and write to it."""

        async def opened() -> AsyncWriter:
            return await self._stream.writer(**options)

        return Writer(run(opened()))

    def producer(
        self, name: str, *, epoch: int | None = None, gap: GapRule = "strict", **options: Unpack[WriterOptions]
    ) -> Producer:
        """Open an idempotent producer."""

        async def opened() -> AsyncProducer:
            return await self._stream.producer(name, epoch=epoch, gap=gap, **options)

        return Producer(run(opened()))

    def read(self, start: Seek = EARLIEST, **options: Unpack[ReaderOptions]) -> Reader:
        """Read from ``start`` on."""

        async def opened() -> AsyncReader:
            return self._stream.read(start, **options)

        return Reader(run(opened()))

    def cursor(self, name: str, *, start: Seek = EARLIEST, **options: Unpack[CursorOptions]) -> Cursor:
        """A place in the stream that outlives its readers. ``with`` takes it over."""

        async def opened() -> AsyncCursor:
            return self._stream.cursor(name, start=start, **options)

        return Cursor(run(opened()))

    def cursors(self) -> dict[str, CursorState]:
        """The cursors, by name."""
        return run(self._stream.cursors())

    def find(self, seek: Seek) -> Position:
        """The position of the first record that ``seek`` asks for."""
        return run(self._stream.find(seek))

    def count(self, start: Seek = EARLIEST, stop: Seek = LATEST) -> int:
        """How many records there are from ``start`` up to, and not including, ``stop``."""
        return run(self._stream.count(start, stop))

    def first(self) -> StoredRecord | None:
        """The first record; None if there is none."""
        return run(self._stream.first())

    def last(self) -> StoredRecord | None:
        """The last confirmed record; None if there is none."""
        return run(self._stream.last())

    def tail_position(self) -> Position:
        """The position directly behind the last confirmed record."""
        return run(self._stream.tail_position())

    def splits(self, start: Seek = EARLIEST, stop: Seek = LATEST, *, target: int) -> list[StreamRange]:
        """About ``target`` ranges of about equal size, for scans side by side."""
        return run(self._stream.splits(start, stop, target=target))

    def info(self) -> StreamInfo:
        """The stream in one line."""
        return run(self._stream.info())

    def show(self) -> StreamOverview:
        """All that is known of the stream: its writer, settings, segments, cursors and holds."""
        return run(self._stream.show())

    def segments(self) -> tuple[StreamSegment, ...]:
        """The segments, oldest first."""
        return run(self._stream.segments())

    def configure(self, patch: Mapping[str, Any]) -> StreamConfig:
        """Change settings: ``{"retention.max_age_s": 3600}``."""
        return run(self._stream.configure(patch))

    def truncate(self, before: Seek, *, up_to_holds: bool = False, dry_run: bool = False) -> TruncateResult:
        """Let readers begin at ``before``, at once."""
        return run(self._stream.truncate(before, up_to_holds=up_to_holds, dry_run=dry_run))

    def explain_retention(self) -> RetentionReport:
        """Why each segment is kept, or that it may go."""
        return run(self._stream.explain_retention())

    def apply_retention(self) -> PassResult:
        """Remove the segments that may go."""
        return run(self._stream.apply_retention())

    def holds(self) -> tuple[Hold, ...]:
        """The holds, by their start."""
        return run(self._stream.holds())

    def hold(
        self,
        name: str,
        start: Seek = EARLIEST,
        stop: Seek = LATEST,
        *,
        until: datetime | None = None,
        note: str = "",
    ) -> Hold:
        """Keep the records from ``start`` up to, and without, ``stop``."""
        return run(self._stream.hold(name, start, stop, until=until, note=note))

    def release_hold(self, name: str) -> None:
        """Remove a hold."""
        run(self._stream.release_hold(name))

    def roll(self) -> StreamSegment | None:
        """Take the stream over, and end its open segment."""
        return run(self._stream.roll())

    def seal(self) -> Position | None:
        """Take the stream over, and end it for good."""
        return run(self._stream.seal())

    def export(self, start: Position = EARLIEST, stop: Position = LATEST) -> Iterator[bytes]:
        """The bytes of a file that proves itself."""
        return each(lambda: self._stream.export(start, stop).chunks())

    def watch(self) -> Iterator[StreamEvent]:
        """Changes of the stream from now on, until it is deleted. Close the iterator to end it."""
        return each(self._stream.watch)


class Writer(BlockingCloser):
    """The writer of a stream, for threads. See :class:`segments.write.writer.Writer`."""

    def __init__(self, writer: AsyncWriter) -> None:
        self._writer = writer

    @property
    def epoch(self) -> int:
        return self._writer.epoch

    @property
    def tail(self) -> Position | None:
        return self._writer.tail

    @property
    def lost(self) -> bool:
        """Whether another writer has taken the stream over, or this one has failed for good."""
        return self._writer.lost.is_set()

    def append(self, record: Record | bytes, *, txid: int | None = None, timeout: float | None = None) -> AppendResult:
        """Append a record and wait until it is durable."""
        return run(self._writer.append(record, txid=txid, timeout=timeout))

    def append_nowait(
        self, record: Record | bytes, *, txid: int | None = None
    ) -> concurrent.futures.Future[AppendResult]:
        """As ``append``, without waiting. One thread's appends keep their order."""
        return submit(self._writer.append(record, txid=txid))

    def append_batch(self, records: Iterable[Record | bytes] | RecordColumns, *, atomic: bool = True) -> AppendResult:
        """Append records that stand one after the other."""
        batch = records if isinstance(records, RecordColumns) else list(records)
        return run(self._writer.append_batch(batch, atomic=atomic))

    def append_if(self, record: Record | bytes, *, tail: Position | None, txid: int | None = None) -> AppendResult:
        """Append a record if ``tail`` is the position of the stream's last one."""
        return run(self._writer.append_if(record, tail=tail, txid=txid))

    def flush(self) -> Position | None:
        """Wait until everything that was appended is durable."""
        return run(self._writer.flush())

    def commit(self) -> Position | None:
        """Flush, and let readers see it at once."""
        return run(self._writer.commit())

    def roll(self) -> StreamSegment:
        """End the open segment and start the next one."""
        return run(self._writer.roll())

    def seal(self) -> Position | None:
        """Flush, and end the stream for good."""
        return run(self._writer.seal())

    def close(self) -> None:
        """Flush, complete the segment, and leave the stream to the next writer. Idempotent."""
        run(self._writer.close())

    def abort(self) -> None:
        """End at once, as a crash would."""
        run(self._writer.abort())


class Producer(BlockingCloser):
    """An idempotent producer, for threads. See :class:`segments.write.producer.Producer`."""

    def __init__(self, producer: AsyncProducer) -> None:
        self._producer = producer

    @property
    def name(self) -> str:
        return self._producer.name

    @property
    def epoch(self) -> int:
        return self._producer.epoch

    @property
    def last_seq(self) -> int | None:
        return self._producer.last_seq

    @property
    def next_seq(self) -> int:
        return self._producer.next_seq

    def append(
        self, record: Record | bytes, *, seq: int | None = None, txid: int | None = None, timeout: float | None = None
    ) -> AppendResult:
        """Append a record, once, and wait until it is durable."""
        return run(self._producer.append(record, seq=seq, txid=txid, timeout=timeout))

    def append_nowait(
        self, record: Record | bytes, *, seq: int | None = None, txid: int | None = None
    ) -> concurrent.futures.Future[AppendResult]:
        """As ``append``, without waiting. One thread's appends keep their order."""
        return submit(self._producer.append(record, seq=seq, txid=txid))

    def append_batch(self, records: Iterable[Record | bytes], *, seq: int | None = None) -> AppendResult:
        """Append records, all in one entry, with consecutive numbers."""
        return run(self._producer.append_batch(list(records), seq=seq))

    def outcome(self, seq: int) -> tuple[AppendOutcome, AppendResult | None]:
        """What became of the record with this number."""
        return run(self._producer.outcome(seq))

    def flush(self) -> Position | None:
        """Wait until everything that was appended is durable."""
        return run(self._producer.flush())

    def close(self) -> None:
        """Flush, and let go of the writer that the stream's producers share. Idempotent."""
        run(self._producer.close())


class Reader(BlockingCloser):
    """Reads a stream, for threads. See :class:`segments.read.reader.Reader`."""

    def __init__(self, reader: AsyncReader) -> None:
        self._reader = reader

    @property
    def position(self) -> Position:
        return self._reader.position

    @property
    def caught_up(self) -> bool:
        return self._reader.caught_up

    @property
    def ended(self) -> bool:
        return self._reader.ended

    @property
    def skipped_gaps(self) -> int:
        return self._reader.skipped_gaps

    def next(self, timeout: float | None = None) -> StoredRecord | Gap | None:
        """The next record; None if it did not come within ``timeout`` seconds, or if there is none."""
        return run(self._reader.next(timeout))

    def next_batch(
        self, max_records: int = BATCH_RECORDS, *, max_bytes: int | None = None, wait: float | None = None
    ) -> RecordBatch:
        """The next records: at least one, unless the reader has ended or nothing came within ``wait``."""
        return run(self._reader.next_batch(max_records, max_bytes=max_bytes, wait=wait))

    def batches(self, max_records: int = BATCH_RECORDS, max_bytes: int | None = None) -> Iterator[RecordBatch]:
        """The records in batches, until the reader has ended."""
        return each(lambda: self._reader.batches(max_records, max_bytes))

    def arrow_batches(self, max_records: int = BATCH_RECORDS) -> Iterator[Any]:
        """The records as ``pyarrow.RecordBatch``es."""
        return each(lambda: self._reader.arrow_batches(max_records))

    def __iter__(self) -> Iterator[StoredRecord | Gap]:
        """Yield records, with one hop between the threads for many of them."""
        for batch in self.batches():
            if batch.gap is not None:
                yield batch.gap
            yield from batch.records()

    def lag(self) -> Lag:
        """How far the reader is behind the stream's end."""
        return run(self._reader.lag())

    def state(self) -> ReaderState:
        """What the reader is doing, and why: idle told from stuck."""
        return run(self._reader.state())

    def skip_gap(self) -> Gap | None:
        """Pass over the gap that comes next, which was raised; return it."""
        return run(self._reader.skip_gap())

    def seek(self, seek: Seek) -> None:
        """Go on elsewhere."""
        run(self._reader.seek(seek))

    def close(self) -> None:
        """Close the reader. Idempotent."""
        run(self._reader.close())


class Cursor(BlockingCloser):
    """A cursor, for threads. See :class:`segments.cursors.Cursor`. ``with`` takes it over."""

    def __init__(self, cursor: AsyncCursor) -> None:
        self._cursor = cursor

    @property
    def name(self) -> str:
        return self._cursor.name

    def __enter__(self) -> Self:
        run(self._cursor.open())
        return self

    def make(self) -> bool:
        """Make it if it is missing, without taking it over. False: there is one already."""
        return run(self._cursor.make())

    def state(self) -> CursorState:
        """Everything that is stored of the cursor."""
        return run(self._cursor.state())

    def position(self) -> Position:
        """Where reading goes on: everything before is done."""
        return run(self._cursor.position())

    def properties(self) -> Mapping[str, str]:
        """What users noted on the cursor."""
        return run(self._cursor.properties())

    def history(self, limit: int = 20) -> list[CursorVersion]:
        """The present version and earlier ones, newest first."""
        return run(self._cursor.history(limit))

    def backlog(self, *, precise: bool = False) -> Lag:
        """How many records are not done."""
        return run(self._cursor.backlog(precise=precise))

    def read(self, **options: Unpack[ReaderOptions]) -> Reader:
        """A reader of what is not done."""

        async def opened() -> AsyncReader:
            return self._cursor.read(**options)

        return Reader(run(opened()))

    def advance(self, to: Acked, *, expect: Position | None = None) -> CursorVersion:
        """Note that everything up to ``to`` is done."""
        return run(self._cursor.advance(to, expect=expect))

    def ack(self, *records: Acked) -> None:
        """Note that these records are done."""
        run(self._cursor.ack(*records))

    def skip(self, count: int, *, count_acked: bool = False) -> Position:
        """Go ``count`` records forward."""
        return run(self._cursor.skip(count, count_acked=count_acked))

    def reset(self, seek: Seek, *, force: bool = False) -> Position:
        """Begin anew at another place."""
        return run(self._cursor.reset(seek, force=force))

    def restore(self, version: CursorVersion | int, *, force: bool = False) -> Position:
        """Become what an earlier version was."""
        return run(self._cursor.restore(version, force=force))

    def set_properties(self, changes: Mapping[str, str | None], *, force: bool = False) -> Mapping[str, str]:
        """Note properties; None removes one."""
        return run(self._cursor.set_properties(changes, force=force))

    def delete(self, *, missing_ok: bool = True) -> None:
        """Delete the cursor."""
        run(self._cursor.delete(missing_ok=missing_ok))

    def close(self) -> None:
        """Store what is acknowledged, and let go of the cursor. Idempotent."""
        run(self._cursor.close())
