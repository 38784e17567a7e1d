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
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self, cast

from bookkeeper.background_loop import (
    Blocking,
    BlockingCloser,
    SharedAttribute,
    blocking,
    each,
    iterating,
    making,
    opening,
    run,
    submit,
    submitting,
)
from segments import namespace as async_namespace
from segments.config import StreamConfig
from segments.cursors.cursor import Cursor as AsyncCursor
from segments.cursors.cursor_front import CursorFront
from segments.entries.columns import RecordColumns
from segments.namespace import StreamNamespace as AsyncNamespace
from segments.position import EARLIEST, LATEST, Position
from segments.publish import PublisherFront, StagedWriterFront
from segments.read import StreamReading
from segments.read.blocking import Reader
from segments.record import AppendResult, Record
from segments.stream_front import StreamFront as AsyncStream
from segments.transfer.transfer import ImportResult
from segments.write.writer_front import ProducerFront as AsyncProducer
from segments.write.writer_front import WriterFront as AsyncWriter

if TYPE_CHECKING:
    from bookkeeper import ClientConfig

__all__ = ["Cursor", "Namespace", "Producer", "Reader", "Stream", "Writer", "connect"]


class Cursor(BlockingCloser[AsyncCursor]):
    """A cursor, for threads. See :class:`segments.cursors.cursor.Cursor`. ``with`` takes it over."""

    name = SharedAttribute[str]()

    make = blocking(AsyncCursor.make)
    state = blocking(AsyncCursor.state)
    position = blocking(AsyncCursor.position)
    properties = blocking(AsyncCursor.properties)
    history = blocking(AsyncCursor.history)
    backlog = blocking(AsyncCursor.backlog)
    read = making(AsyncCursor.read, Reader)
    advance = blocking(AsyncCursor.advance)
    ack = blocking(AsyncCursor.ack)
    skip = blocking(AsyncCursor.skip)
    reset = blocking(AsyncCursor.reset)
    restore = blocking(AsyncCursor.restore)
    set_properties = blocking(AsyncCursor.set_properties)
    delete = blocking(AsyncCursor.delete)
    close = blocking(AsyncCursor.close)

    def __enter__(self) -> Self:
        run(self._original.open())
        return self


class Writer(BlockingCloser[AsyncWriter]):
    """The writer of a stream, for threads. See :class:`segments.write.writer.Writer`."""

    epoch = SharedAttribute[int]()
    tail = SharedAttribute[Position | None]()

    append = blocking(AsyncWriter.append)
    append_nowait = submitting(AsyncWriter.append)
    append_if = blocking(AsyncWriter.append_if)
    flush = blocking(AsyncWriter.flush)
    commit = blocking(AsyncWriter.commit)
    roll = blocking(AsyncWriter.roll)
    seal = blocking(AsyncWriter.seal)
    close = blocking(AsyncWriter.close)
    abort = blocking(AsyncWriter.abort)

    @property
    def lost(self) -> bool:
        """Whether another writer has taken the stream over, or this one has failed for good."""
        return self._original.lost.is_set()

    def append_batch(self, records: Iterable[Record | bytes] | RecordColumns, *, atomic: bool = True) -> AppendResult:
        """Append records that stand one after the other."""
        batch = records if isinstance(records, RecordColumns) else list(records)
        return run(self._original.append_batch(batch, atomic=atomic))


class Producer(BlockingCloser[AsyncProducer]):
    """An idempotent producer, for threads. See :class:`segments.write.producer.Producer`."""

    name = SharedAttribute[str]()
    epoch = SharedAttribute[int]()
    last_seq = SharedAttribute[int | None]()
    next_seq = SharedAttribute[int]()

    append = blocking(AsyncProducer.append)
    append_nowait = submitting(AsyncProducer.append)
    outcome = blocking(AsyncProducer.outcome)
    flush = blocking(AsyncProducer.flush)
    close = blocking(AsyncProducer.close)

    def append_batch(self, records: Iterable[Record | bytes], *, seq: int | None = None) -> AppendResult:
        """Append records, all in one entry, with consecutive numbers."""
        return run(self._original.append_batch(list(records), seq=seq))


class Publisher(Blocking[PublisherFront]):
    """Publishes batches, for threads. See :class:`segments.publish.StreamPublisher`."""

    publish = blocking(PublisherFront.publish)
    prepare = submitting(PublisherFront.prepare)
    clean = blocking(PublisherFront.clean)
    close = blocking(PublisherFront.close)


class Staged(Blocking[StagedWriterFront]):
    """Writes rows of a batch, for threads. See :class:`segments.publish.StagedWriter`."""

    add = blocking(StagedWriterFront.add)
    finish = blocking(StagedWriterFront.finish)
    abandon = blocking(StagedWriterFront.abandon)


def _cursor(original: CursorFront) -> Cursor:
    """A cursor for threads; those behind gateways have the same methods."""
    return Cursor(cast("AsyncCursor", original))


class StreamView(Blocking[StreamReading]):
    """A stream as it was at one time, for threads. See :meth:`segments.read.StreamReading.view`."""

    end = blocking(StreamReading.end)
    find = blocking(StreamReading.find)
    seq_no = blocking(StreamReading.seq_no)
    splits = blocking(StreamReading.splits)
    known = blocking(StreamReading.known)


class Stream(Blocking[AsyncStream]):
    """One stream, for threads. See :class:`segments.stream.Stream`."""

    name = SharedAttribute[str]()
    id = SharedAttribute[str]()
    config = SharedAttribute[StreamConfig]()

    writer = opening(AsyncStream.writer, Writer)
    producer = opening(AsyncStream.producer, Producer)
    read = making(AsyncStream.read, Reader)
    cursor = making(AsyncStream.cursor, _cursor)
    cursors = blocking(AsyncStream.cursors)
    find = blocking(AsyncStream.find)
    count = blocking(AsyncStream.count)
    first = blocking(AsyncStream.first)
    last = blocking(AsyncStream.last)
    tail_position = blocking(AsyncStream.tail_position)
    end = blocking(AsyncStream.end)
    seq_no = blocking(AsyncStream.seq_no)
    splits = blocking(AsyncStream.splits)
    view = opening(AsyncStream.view, StreamView)
    info = blocking(AsyncStream.info)
    show = blocking(AsyncStream.show)
    segments = blocking(AsyncStream.segments)
    configure = blocking(AsyncStream.configure)
    truncate = blocking(AsyncStream.truncate)
    explain_retention = blocking(AsyncStream.explain_retention)
    apply_retention = blocking(AsyncStream.apply_retention)
    holds = blocking(AsyncStream.holds)
    hold = blocking(AsyncStream.hold)
    release_hold = blocking(AsyncStream.release_hold)
    roll = blocking(AsyncStream.roll)
    seal = blocking(AsyncStream.seal)
    publisher = opening(AsyncStream.publisher, Publisher)
    stage = making(AsyncStream.stage, Staged)
    apps = blocking(AsyncStream.apps)
    forget_app = blocking(AsyncStream.forget_app)
    hand_over_app = blocking(AsyncStream.hand_over_app)
    producer_owners = blocking(AsyncStream.producer_owners)
    hand_over_producer = blocking(AsyncStream.hand_over_producer)
    watch = iterating(AsyncStream.watch)

    def __repr__(self) -> str:
        return repr(self._original)

    def export(self, start: Position = EARLIEST, stop: Position = LATEST) -> Iterator[bytes]:
        """The bytes of a checksummed file: an import detects any change or cut."""
        return each(lambda: self._original.export(start, stop).chunks())


class Namespace(BlockingCloser[AsyncNamespace]):
    """All streams of one cluster, for threads. See :class:`segments.namespace.StreamNamespace`."""

    create = opening(AsyncNamespace.create, Stream)
    open = opening(AsyncNamespace.open, Stream)
    exists = blocking(AsyncNamespace.exists)
    list = iterating(AsyncNamespace.list)
    infos = iterating(AsyncNamespace.infos)
    watch = iterating(AsyncNamespace.watch)
    rename = blocking(AsyncNamespace.rename)
    delete = blocking(AsyncNamespace.delete)
    finish_deletions = blocking(AsyncNamespace.finish_deletions)
    verify = blocking(AsyncNamespace.verify)
    close = blocking(AsyncNamespace.close)

    def stage_nowait(
        self,
        name: str,
        staging: str,
        app: str = "",
        *,
        create: bool = False,
        patience_s: float = 0.0,
        compression: str | None = None,
    ) -> concurrent.futures.Future[Staged]:
        """Open a stream, as ``open`` does, and take rows of a batch for it, as its ``stage`` does, without waiting: the
        future has what takes them, or raises what ``open`` raises."""

        async def staged() -> Staged:
            stream = await self._original.open(name, create=create)
            return Staged(stream.stage(staging, app, patience_s=patience_s, compression=compression))

        return submit(staged())

    def import_stream(
        self,
        chunks: Iterable[bytes],
        *,
        name: str | None = None,
        changes: dict[str, Any] | None = None,
        dry_run: bool = False,
    ) -> ImportResult:
        """Make a stream of an exported file. The chunks are taken on the background loop's thread."""

        async def from_chunks() -> AsyncIterator[bytes]:
            for chunk in chunks:
                yield chunk

        return run(self._original.import_stream(from_chunks(), name=name, changes=changes, dry_run=dry_run))


def connect(uri: str, *, config: ClientConfig | None = None) -> Namespace:
    """Connect to the streams of the cluster at a metadata URI. Close it, or use it in a ``with``. Raises as the async
    one."""

    async def connected() -> AsyncNamespace:
        return await async_namespace.connect(uri, config=config)

    return Namespace(run(connected()))
