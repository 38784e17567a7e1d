"""A stream, as an application holds it: writers, producers, and what it says of itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from segments.chain import StreamChain, StreamHead, StreamSegment
from segments.checks.overview import StreamOverview, overview_of
from segments.closing import Closing
from segments.config import StreamConfig
from segments.cursors import Cursor, CursorOptions, CursorState, Mark, read_cursors
from segments.directory.directory import StreamEvent, StreamInfo, info_of, watch_stream
from segments.directory.settings import StreamSettings
from segments.error_translation import worded
from segments.errors import PositionFormatError, StreamSealedError
from segments.position import EARLIEST, LATEST, Position
from segments.publish import StagedWriter, StreamPublisher
from segments.publish.app_record import AppRecords
from segments.publish.batch_key import AppRecord
from segments.read import Reader, ReaderOptions, StreamEnd, StreamRange, StreamReading
from segments.record import StoredRecord, to_ms
from segments.retention.agreed_time import AgreedTime
from segments.retention.cursor_places import cursor_places
from segments.retention.hold_record import HoldNode
from segments.retention.holds import Hold
from segments.retention.retention import CursorPlace, RetentionReport
from segments.retention.retention_pass import EVERY_S as RETENTION_EVERY_S
from segments.retention.retention_pass import PassResult, RetentionPass
from segments.retention.truncation import TruncateResult, truncate
from segments.seek import AtSeqNo, Seek
from segments.stream_settings import read_settings
from segments.transfer.transfer import StreamExport
from segments.write.opening import Opening, SharedWriter, open_writer
from segments.write.producer import GapRule, Producer
from segments.write.take_over import tells_of_producers
from segments.write.writer import Writer

if TYPE_CHECKING:
    from bookkeeper import BookKeeper


class WriterOptions(TypedDict, total=False):
    """Options of a writer."""

    owner: str | None
    """Who writes, for people; by default the host and the process."""
    location: str
    """Where the writer can be reached, if it can: other gateways send their callers there."""


class Stream(Closing):
    """One stream of a namespace."""

    def __init__(self, client: BookKeeper, name: str, stream_id: str, config: StreamConfig) -> None:
        self.name = name
        self.id = stream_id
        """Stays the same when the stream is renamed, and is never used again."""
        self.config = config
        """The settings as they were read last."""
        self.client = client
        self.record = StreamHead(client.metadata_store, stream_id, name)
        self._shared: SharedWriter | None = None
        self._reading: StreamReading | None = None

    def __repr__(self) -> str:
        return f"<Stream {self.name} ({self.id})>"

    def found_as(self, name: str) -> None:
        """The stream was found under this name: somebody has renamed it."""
        self.name = self.record.name = name

    # -- writing ----------------------------------------------------------------------------------------

    def writer(self, **options: Unpack[WriterOptions]) -> Opening[Writer]:
        """Take the stream over and write to it: ``async with stream.writer() as writer``. The former writer, wherever
        it is, can append nothing more.

        Raises (when awaited or entered):
            StreamSealedError, StreamNotFoundError.
            StreamUnavailableError: too few bookies answer, or the metadata store does not; nothing is lost.
            OwnershipLostError: another writer took the stream over meanwhile.
        """
        return Opening(partial(self._open_writer, **options))

    async def _open_writer(self, **options: Unpack[WriterOptions]) -> Writer:
        """The writer also applies the stream's retention, now and then."""
        writer = await open_writer(self.client, self.record, self.read_config, **options)
        writer.start(self.keep_retention(), "apply the retention")
        return writer

    def producer(
        self,
        name: str,
        *,
        epoch: int | None = None,
        gap: GapRule = "strict",
        **options: Unpack[WriterOptions],
    ) -> Opening[Producer]:
        """Open an idempotent producer: ``async with stream.producer(name) as producer``. The producers of one Stream
        object share a writer, which takes the stream over like writer().

        With ``gap="strict"`` a sequence number that is left out is refused; with ``"monotonic"`` they need only rise.

        Raises (when awaited or entered):
            ProducerFencedError: ``epoch`` is lower than the one that the name has. StreamNameError. And as writer().
        """
        if self._shared is None:
            self._shared = SharedWriter(partial(self._open_writer, **options))
        return Opening(partial(self._shared.producer, name, epoch=epoch, gap=gap))

    async def publisher(self, *, owner: str | None = None, take_over: bool = False) -> StreamPublisher:
        """Claim the stream, to publish batches that were staged: each becomes visible whole, and once.

        Raises: as :meth:`StreamPublisher.open`.
        """
        return await StreamPublisher.open(self.client, self.record, self.read_config, owner=owner, take_over=take_over)

    def stage(self, staging: str, app: str = "") -> StagedWriter:
        """Write rows of a batch that a publisher makes visible later, or never.

        Args:
            staging: the batch; the same for all who write it, and for no other batch.
            app: who writes it.
        """
        return StagedWriter(self.client, (self.name, self.id), self.config, staging, app)

    async def apps(self) -> list[AppRecord]:
        """The applications that have published batches, by name. Raises: StreamMetadataError, StreamCorruptError."""
        with worded(f"reading the applications of stream {self.name}", self.name):
            return await AppRecords(self.client.metadata_store, self.id, self.name).all()

    async def forget_app(self, app: str) -> bool:
        """Forget an application: what it publishes next counts as new. Returns whether it was known."""
        with worded(f"forgetting an application of stream {self.name}", self.name):
            return await AppRecords(self.client.metadata_store, self.id, self.name).forget(app)

    # -- reading ----------------------------------------------------------------------------------------

    @property
    def reading(self) -> StreamReading:
        """What all readers of this object share."""
        if self._reading is None:
            self._reading = StreamReading(self.client, self.record, self._find_cursor)
        return self._reading

    def read(self, start: Seek = EARLIEST, **options: Unpack[ReaderOptions]) -> Reader:
        """Read from ``start`` on: ``async with stream.read() as reader``, then ``async for record in reader``, or
        ``reader.next()``, ``reader.next_batch()``, ``reader.arrow_batches()``. With ``follow=True`` it waits at the
        end. The options are those of :class:`segments.read.ReadOptions`.

        Raises: StreamConfigError. Reading raises what :meth:`Reader.next` says.
        """
        return self.reading.read(start, **options)

    async def find(self, seek: Seek) -> Position:
        """The position of the first record that ``seek`` asks for; behind the last record if there is none.

        Raises:
            PositionTruncatedError: the position was truncated. CursorNotFoundError. StreamNotFoundError.
            StreamUnavailableError.
        """
        return await self.reading.locator.find(seek)

    async def count(self, start: Seek = EARLIEST, stop: Seek = LATEST) -> int:
        """How many records there are from ``start`` up to, and not including, ``stop``. Raises: as find."""
        return await self.reading.count(start, stop)

    async def first(self) -> StoredRecord | None:
        """The first record; None if there is none. Raises: StreamUnavailableError, StreamGapError."""
        return await self.reading.first()

    async def last(self) -> StoredRecord | None:
        """The last confirmed record; None if there is none. Raises: StreamUnavailableError."""
        return await self.reading.last()

    async def tail_position(self) -> Position:
        """The position directly behind the last confirmed record. Raises: StreamUnavailableError."""
        return await self.reading.tail_position()

    async def end(self) -> StreamEnd:
        """The end of the stream now: a position, and the number that comes next. Raises: StreamUnavailableError."""
        return await self.reading.end()

    async def seq_no(self, place: Seek) -> int:
        """The number of the first record at or behind a place; at the end, the number that comes next. Raises: as
        find."""
        return await self.reading.seq_no(place)

    async def splits(self, start: Seek = EARLIEST, stop: Seek = LATEST, *, target: int) -> list[StreamRange]:
        """Cut what is between ``start`` and ``stop`` into about ``target`` ranges of about equal size, for scans side
        by side. Raises: as find."""
        return await self.reading.splits(start, stop, target=target)

    async def _find_cursor(self, name: str) -> Mark:
        return (await self.cursor(name).state()).mark

    def cursor(self, name: str, *, start: Seek = EARLIEST, **options: Unpack[CursorOptions]) -> Cursor:
        """A place in the stream that outlives its readers: ``async with stream.cursor("billing") as cursor``, then
        ``cursor.read()``, ``cursor.advance()``, ``cursor.ack()``. A new one begins at ``start``.

        Entering it takes it over: its former owner can move it no more. Without entering it can be looked at.

        Raises: StreamNameError. Entering raises what :meth:`Cursor.open` says.
        """
        return Cursor(self.reading, self.record, name, start=start, **options)

    async def cursors(self) -> dict[str, CursorState]:
        """The cursors, by name. Raises: StreamMetadataError, StreamCorruptError, UnsupportedStreamFormatError."""
        return await read_cursors(self.client.metadata_store, self.id, self.name)

    # -- what it says -----------------------------------------------------------------------------------

    async def read_config(self) -> StreamConfig:
        """Read the settings as they are now. Raises: StreamNotFoundError, StreamMetadataError."""
        self.config = await read_settings(self.client.metadata_store, self.name, self.id)
        return self.config

    async def chain(self) -> StreamChain:
        """Read the stream's record as it is now. Raises: StreamNotFoundError, StreamMetadataError."""
        with worded(f"reading the record of stream {self.name}", self.name):
            return (await self.record.read())[0]

    async def segments(self) -> tuple[StreamSegment, ...]:
        """The segments, oldest first. What an open one holds is not known here. Raises: as chain()."""
        return tuple((await self.chain()).segments)

    async def info(self) -> StreamInfo:
        """The stream in one line. Raises: as chain()."""
        return info_of(self.name, await self.chain())

    async def show(self) -> StreamOverview:
        """All that is known of the stream: its writer, settings, segments, cursors and holds. Raises: as chain()."""
        chain = await self.chain()
        cursors, holds = await self._cursor_places(), await self.holds()
        now_ms = self.client.services.seams.clock.wall_ms()
        return overview_of(self.name, chain, await self.read_config(), cursors, holds, now_ms)

    # -- what becomes of it -----------------------------------------------------------------------------

    async def configure(self, patch: Mapping[str, Any]) -> StreamConfig:
        """Change settings: ``{"retention.max_age_s": 3600}``. A writer follows with its next segment.

        Raises:
            StreamConfigError: nothing was changed. StreamNotFoundError, StreamMetadataError.
        """
        self.config = await StreamSettings(self.client.metadata_store, self.id, self.name).patch(patch)
        return self.config

    async def truncate(self, before: Seek, *, up_to_holds: bool = False, dry_run: bool = False) -> TruncateResult:
        """Let readers begin at ``before``, at once; LATEST hides everything. An earlier place is no change.

        Ledgers are removed by the next ``apply_retention()``. With ``up_to_holds`` a hold limits the truncation;
        otherwise it refuses it.

        Raises:
            PositionFormatError: there is no such place yet. StreamHeldError: a hold covers records before it.
            CursorNotFoundError, StreamNotFoundError, StreamMetadataError, StreamUnavailableError.
        """
        if isinstance(before, AtSeqNo) and before.seq_no > (following := (await self.reading.locator.end()).seq_no):
            raise PositionFormatError(
                f"stream {self.name} has no record number {before.seq_no} yet: the next one will be number {following}",
                stream=self.name,
            )
        place = await self.place_of(before)
        return await truncate(self.client, self.record, place, up_to_holds=up_to_holds, dry_run=dry_run)

    async def place_of(self, seek: Seek) -> Position:
        """The position that is meant; a position is taken as it is, also before the stream's beginning."""
        return seek if isinstance(seek, Position) else await self.find(seek)

    async def explain_retention(self) -> RetentionReport:
        """Why each segment is kept, or that it may go: limits, cursors, holds. Raises: as chain()."""
        return await self._retention().explain()

    async def apply_retention(self) -> PassResult:
        """Remove the segments that may go, and what an earlier pass has left. Raises: as chain()."""
        return await self._retention().run()

    async def keep_retention(self, every_s: float = RETENTION_EVERY_S) -> None:
        """Apply the retention now and then, until it is cancelled or the stream is deleted. A writer does so while it
        is open; this is for streams that nobody writes."""
        await self._retention().keep_running(every_s)

    def _retention(self) -> RetentionPass:
        return RetentionPass(self.client, self.record, self._cursor_places, self._tells_of_producers)

    async def _tells_of_producers(self, segment: StreamSegment) -> bool:
        return await tells_of_producers(self.client, segment, self.config.producers)

    async def _cursor_places(self) -> tuple[CursorPlace, ...]:
        return await cursor_places(self.client.metadata_store, self.id, self.name)

    async def holds(self) -> tuple[Hold, ...]:
        """The holds, by their start; also those that have expired and were not swept yet. Raises: as chain()."""
        return tuple((await HoldNode(self.client.metadata_store, self.record).read())[0])

    async def hold(
        self,
        name: str,
        start: Seek = EARLIEST,
        stop: Seek = LATEST,
        *,
        until: datetime | None = None,
        note: str = "",
    ) -> Hold:
        """Keep the records from ``start`` up to, and without, ``stop``: neither retention nor truncation removes them
        before ``until``, or before the hold is released. A hold of the same name gets the new range.

        Raises:
            StreamConfigError: the range begins before the stream, or is empty. StreamNameError. And as chain().
        """
        with worded(f"putting hold {name} of stream {self.name}", self.name):
            now_ms = await AgreedTime(self.client, self.record).now_ms()  # others' holds that have ended are swept
        until_ms = None if until is None else to_ms(until)
        wanted = Hold(name, await self.place_of(start), await self.place_of(stop), until_ms, now_ms, note)
        return await HoldNode(self.client.metadata_store, self.record).put(wanted, now_ms)

    async def release_hold(self, name: str) -> None:
        """Remove a hold. Raises: HoldNotFoundError, and as chain()."""
        await HoldNode(self.client.metadata_store, self.record).release(name)

    async def roll(self) -> StreamSegment | None:
        """Take the stream over, and end its open segment: the former writer can append nothing more. Returns the last
        completed segment. A writer rolls its own stream by ``writer.roll()``. Raises: as writer().
        """
        async with self.writer(owner="roll"):
            pass
        segments = await self.segments()
        return segments[-1] if segments else None

    async def seal(self) -> Position | None:
        """Take the stream over, and end it for good: nothing can be appended any more. Returns the position of its last
        record. Sealing again is no change. Raises: as writer().
        """
        try:
            writer = await self.writer(owner="seal")
        except StreamSealedError:
            return (await self.chain()).last_position
        return await writer.seal()

    def export(self, start: Position = EARLIEST, stop: Position = LATEST) -> StreamExport:
        """Copy the stream to a checksummed file: ``async for chunk in stream.export().chunks()``."""
        return StreamExport(self.client, self.record, self.config, start=start, stop=stop)

    def watch(self) -> AsyncIterator[StreamEvent]:
        """Changes of the stream from now on, until it is deleted. Raises: as chain()."""
        return watch_stream(self.record)

    # -- the end ----------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Nothing is held open by a stream itself; its writers, producers and readers are closed on their own."""
