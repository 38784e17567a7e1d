"""A stream, as an application holds it: writers, producers, and what it says of itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from segments.chain import StreamChain, StreamHead, StreamSegment
from segments.checks.overview import StreamOverview, overview_of
from segments.config import StreamConfig
from segments.cursors.acked_ranges import Mark
from segments.cursors.cursor import Cursor
from segments.cursors.cursor_front import CursorOptions
from segments.cursors.cursor_node import MayMove, read_cursors
from segments.cursors.cursor_state import CursorState
from segments.directory.directory import StreamEvent, StreamInfo, info_of, watch_stream
from segments.directory.settings import StreamSettings
from segments.entries.compression import Compression
from segments.error_translation import worded
from segments.errors import PositionFormatError, StreamSealedError
from segments.position import EARLIEST, LATEST, Position
from segments.publish import StagedWriter, StreamPublisher
from segments.publish.app_record import AppRecords, MayPublish
from segments.publish.batch_key import AppRecord
from segments.read import Reader, ReaderOptions, StreamEnd, StreamRange, StreamReading
from segments.record import StoredRecord
from segments.retention.agreed_time import AgreedTime
from segments.retention.cursor_positions import cursor_positions
from segments.retention.hold_node import HoldNode, MayChange
from segments.retention.holds import Hold
from segments.retention.retention import CursorPosition
from segments.retention.retention_pass import EVERY_S as RETENTION_EVERY_S
from segments.retention.retention_pass import PassResult, RetentionPass
from segments.retention.truncation import TruncateResult, truncate
from segments.seek import AtSeqNo, Seek
from segments.stream_front import StreamFront, WriterOptions
from segments.stream_settings import read_settings
from segments.transfer.transfer import StreamExport
from segments.write.opening import PendingOpen, SharedWriter, open_writer
from segments.write.producer import GapRule, Producer
from segments.write.producer_owners import ProducerOwners
from segments.write.take_over import holds_producers
from segments.write.writer import Writer

if TYPE_CHECKING:
    from bookkeeper import BookKeeper


class Stream(StreamFront):
    """One stream of a namespace."""

    def __init__(self, client: BookKeeper, name: str, stream_id: str, config: StreamConfig) -> None:
        super().__init__(name, stream_id, config)
        self.client = client
        self.node = StreamHead(client.metadata_store, stream_id, name)
        self._shared: SharedWriter | None = None
        self._reading: StreamReading | None = None

    def found_as(self, name: str) -> None:
        """The stream was found under this name: somebody has renamed it."""
        self.name = self.node.name = name

    # -- writing ----------------------------------------------------------------------------------------

    def writer(self, **options: Unpack[WriterOptions]) -> PendingOpen[Writer]:
        """Take the stream over and write to it: ``async with stream.writer() as writer``. The former writer, wherever
        it is, can append nothing more.

        Raises (when awaited or entered):
            StreamSealedError, StreamNotFoundError.
            StreamUnavailableError: too few bookies answer, or the metadata store does not; nothing is lost.
            OwnershipLostError: another writer took the stream over meanwhile.
        """
        return PendingOpen(partial(self._open_writer, **options))

    async def _open_writer(self, **options: Unpack[WriterOptions]) -> Writer:
        """The writer also applies the stream's retention, now and then."""
        writer = await open_writer(self.client, self.node, self.read_config, **options)
        writer.start(self.keep_retention(), "apply the retention")
        return writer

    def producer(
        self,
        name: str,
        *,
        epoch: int | None = None,
        gap: GapRule = "strict",
        **options: Unpack[WriterOptions],
    ) -> PendingOpen[Producer]:
        """Open an idempotent producer: ``async with stream.producer(name) as producer``. The producers of one Stream
        object share a writer, which takes the stream over like writer().

        With ``gap="strict"`` a sequence number that is left out is refused; with ``"monotonic"`` they need only rise.

        Raises (when awaited or entered):
            ProducerFencedError: ``epoch`` is lower than the one that the name has. StreamNameError. And as writer().
        """
        if self._shared is None:
            self._shared = SharedWriter(partial(self._open_writer, **options))
        return PendingOpen(partial(self._shared.producer, name, epoch=epoch, gap=gap))

    async def publisher(self, *, owner: str | None = None, take_over: bool = False) -> StreamPublisher:
        return await StreamPublisher.open(self.client, self.node, self.read_config, owner=owner, take_over=take_over)

    async def publisher_for(self, by: str, may_publish: MayPublish, *, owner: str) -> StreamPublisher:
        """Publish batches for somebody whom a gateway knows.

        Args:
            by: his name; an application that publishes its first batch is his.
            may_publish: is asked about one that the stream remembers, and raises if he may not publish in its name.
            owner: who claims the stream, for people.

        Raises: as ``publisher``.
        """
        return await StreamPublisher.open(
            self.client, self.node, self.read_config, owner=owner, by=by, may_publish=may_publish
        )

    def stage(
        self, staging: str, app: str = "", *, patience_s: float = 0.0, compression: str | None = None
    ) -> StagedWriter:
        name = self.config.patched({} if compression is None else {"compression": compression}).compression
        return StagedWriter(
            self.client,
            (self.name, self.id),
            self.config,
            staging,
            app,
            patience_s=patience_s,
            compression=Compression.named(name),
        )

    async def apps(self) -> list[AppRecord]:
        with worded(f"reading the applications of stream {self.name}", self.name):
            return await AppRecords(self.client.metadata_store, self.id, self.name).all()

    async def forget_app(self, app: str) -> bool:
        with worded(f"forgetting an application of stream {self.name}", self.name):
            return await AppRecords(self.client.metadata_store, self.id, self.name).forget(app)

    async def hand_over_app(self, app: str, by: str) -> bool:
        with worded(f"handing over an application of stream {self.name}", self.name):
            return await AppRecords(self.client.metadata_store, self.id, self.name).hand_over(app, by)

    async def producer_owners(self) -> dict[str, str]:
        with worded(f"reading whose the producers of stream {self.name} are", self.name):
            return await ProducerOwners(self.client.metadata_store, self.id, self.name).all()

    async def hand_over_producer(self, producer: str, by: str) -> None:
        with worded(f"handing over a producer of stream {self.name}", self.name):
            await ProducerOwners(self.client.metadata_store, self.id, self.name).hand_over(producer, by)

    # -- reading ----------------------------------------------------------------------------------------

    @property
    def reading(self) -> StreamReading:
        """What all readers of this object share."""
        if self._reading is None:
            self._reading = StreamReading(self.client, self.node, self._find_cursor)
        return self._reading

    def read(self, start: Seek = EARLIEST, **options: Unpack[ReaderOptions]) -> Reader:
        return self.reading.read(start, **options)

    async def _find(self, seek: Seek) -> Position:
        return await self.reading.locator.find(seek)

    async def _count(self, start: Seek, stop: Seek) -> int:
        return await self.reading.count(start, stop)

    async def last(self) -> StoredRecord | None:
        return await self.reading.last()

    async def end(self) -> StreamEnd:
        return await self.reading.end()

    async def seq_no(self, seek: Seek) -> int:
        return await self.reading.seq_no(seek)

    async def view(self) -> StreamReading:
        return await self.reading.view()

    async def _splits(self, start: Seek, stop: Seek, target: int) -> list[StreamRange]:
        return await self.reading.splits(start, stop, target=target)

    async def _find_cursor(self, name: str) -> Mark:
        return (await self.cursor(name).state()).mark

    def cursor(self, name: str, *, start: Seek = EARLIEST, **options: Unpack[CursorOptions]) -> Cursor:
        """A cursor, by name; a new one begins at ``start``. Raises: StreamNameError."""
        return Cursor(self.reading, self.node, name, start=start, **options)

    def cursor_for(
        self, by: str, may_move: MayMove, name: str, *, start: Seek = EARLIEST, **options: Unpack[CursorOptions]
    ) -> Cursor:
        """A cursor for somebody whom a gateway knows.

        Args:
            by: his name; a cursor that is made is his.
            may_move: is asked about one that is taken over, moved or deleted, and raises if he may not.
            name, start, options: as for ``cursor``.

        Raises: StreamNameError.
        """
        return Cursor(self.reading, self.node, name, start=start, by=by, may_move=may_move, **options)

    async def cursors(self) -> dict[str, CursorState]:
        return await read_cursors(self.client.metadata_store, self.id, self.name)

    # -- what it says -----------------------------------------------------------------------------------

    async def read_config(self) -> StreamConfig:
        self.config = await read_settings(self.client.metadata_store, self.name, self.id)
        return self.config

    async def chain(self) -> StreamChain:
        """Read the stream's node as it is now. Raises: StreamNotFoundError, StreamMetadataError."""
        with worded(f"reading the node of stream {self.name}", self.name):
            return (await self.node.read())[0]

    async def segments(self) -> tuple[StreamSegment, ...]:
        return tuple((await self.chain()).segments)

    async def info(self) -> StreamInfo:
        return info_of(self.name, await self.chain())

    async def show(self) -> StreamOverview:
        chain = await self.chain()
        cursors, holds = await self._cursor_positions(), await self.holds()
        now_ms = self.client.services.seams.clock.wall_ms()
        return overview_of(self.name, chain, await self.read_config(), cursors, holds, now_ms)

    # -- what becomes of it -----------------------------------------------------------------------------

    async def configure(self, patch: Mapping[str, Any]) -> StreamConfig:
        self.config = await StreamSettings(self.client.metadata_store, self.id, self.name).patch(patch)
        return self.config

    async def _truncate(self, before: Seek, up_to_holds: bool, dry_run: bool) -> TruncateResult:
        if isinstance(before, AtSeqNo) and before.seq_no > (following := (await self.reading.locator.end()).seq_no):
            raise PositionFormatError(
                f"stream {self.name} has no record number {before.seq_no} yet: the next one will be number {following}",
                stream=self.name,
            )
        seek = await self.position_of(before)
        return await truncate(self.client, self.node, seek, up_to_holds=up_to_holds, dry_run=dry_run)

    async def position_of(self, seek: Seek) -> Position:
        """The position that is meant; a position is taken as it is, also before the stream's beginning."""
        return seek if isinstance(seek, Position) else await self.find(seek)

    async def keep_retention(self, every_s: float = RETENTION_EVERY_S) -> None:
        """Apply the retention now and then, until it is cancelled or the stream is deleted. A writer does so while it
        is open; this is for streams that nobody writes."""
        await self._retention().keep_running(every_s)

    async def _apply_retention(self, *, dry_run: bool) -> PassResult:
        if dry_run:
            return PassResult(await self._retention().explain(), ())
        return await self._retention().run()

    def _retention(self) -> RetentionPass:
        return RetentionPass(self.client, self.node, self._cursor_positions, self._tells_of_producers)

    async def _tells_of_producers(self, segment: StreamSegment) -> bool:
        return await holds_producers(self.client, segment, self.config.producers)

    async def _cursor_positions(self) -> tuple[CursorPosition, ...]:
        return await cursor_positions(self.client.metadata_store, self.id, self.name)

    async def holds(self) -> tuple[Hold, ...]:
        return tuple((await HoldNode(self.client.metadata_store, self.node).read())[0])

    async def _hold(self, name: str, start: Seek, stop: Seek, until_ms: int | None, note: str) -> Hold:
        return await self.hold_for("", Hold(name, until_ms=until_ms, note=note), start, stop)

    async def hold_for(
        self, by: str, wanted: Hold, start: Seek, stop: Seek, may_change: MayChange = lambda hold: None
    ) -> Hold:
        """Put a hold for somebody whom a gateway knows.

        Args:
            by: his name. wanted: the hold, but for its range. start, stop: its range.
            may_change: is asked about a hold that it replaces, and raises if he may not.

        Raises: as ``hold``, and what ``may_change`` raises.
        """
        name = wanted.name
        with worded(f"putting hold {name} of stream {self.name}", self.name):
            now_ms = await (time := AgreedTime(self.client, self.node)).now_ms()  # others' that have ended are swept
        if wanted.until_ms is not None:  # a clock that is behind means a later time, by which the hold is to be there
            wanted = replace(wanted, until_ms=wanted.until_ms + time.behind_ms)
        first, end = await self.position_of(start), await self.position_of(stop)
        placed = replace(wanted, start=first, stop=end, created_ms=now_ms, by=by)
        return await HoldNode(self.client.metadata_store, self.node).put(placed, now_ms, may_change)

    async def release_hold(self, name: str) -> None:
        await self.release_hold_for(name)

    async def release_hold_for(
        self, name: str, may_change: MayChange = lambda hold: None, only: Hold | None = None
    ) -> None:
        """Remove a hold, or ``only`` this very one, for somebody whom a gateway knows. Raises: as ``release_hold``, and
        what ``may_change`` raises."""
        await HoldNode(self.client.metadata_store, self.node).release(name, may_change, only=only)

    async def roll(self) -> StreamSegment | None:
        async with self.writer(owner="roll"):
            pass
        segments = await self.segments()
        return segments[-1] if segments else None

    async def seal(self) -> Position | None:
        try:
            writer = await self.writer(owner="seal")
        except StreamSealedError:
            return (await self.chain()).last_position
        return await writer.seal()

    def export(self, start: Position = EARLIEST, stop: Position = LATEST) -> StreamExport:
        return StreamExport(self.client, self.node, self.config, start=start, stop=stop)

    def watch(self) -> AsyncIterator[StreamEvent]:
        return watch_stream(self.node)
