"""What a stream is to an application, wherever it is: writers, producers, readers, cursors, and what becomes of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from datetime import datetime
from typing import Any, Protocol, TypedDict, Unpack

from segments.arguments import checked_seek
from segments.chain import StreamSegment
from segments.checks.overview import StreamOverview
from segments.closing import Closing
from segments.config import StreamConfig
from segments.cursors.cursor_front import CursorFront, CursorOptions
from segments.cursors.cursor_state import CursorState
from segments.directory.directory import StreamEvent, StreamInfo
from segments.errors import StreamConfigError
from segments.position import EARLIEST, LATEST, Position
from segments.publish import PublisherFront, StagedWriterFront
from segments.publish.batch_key import AppRecord
from segments.read import ReaderFront, ReaderOptions, StreamEnd, StreamRange, StreamReading
from segments.record import StoredRecord, to_ms
from segments.retention.holds import Hold
from segments.retention.retention import RetentionReport
from segments.retention.retention_pass import PassResult
from segments.retention.truncation import TruncateResult
from segments.seek import Seek
from segments.transfer.transfer import ExportResult
from segments.write.opening import PendingOpen
from segments.write.producer import GapRule
from segments.write.writer_front import ProducerFront, WriterFront


class WriterOptions(TypedDict, total=False):
    """Options of a writer."""

    owner: str | None
    """Who writes, for people; by default the host and the process. Behind gateways the gateway does."""
    location: str
    """Where the writer can be reached, if it can: other gateways send their callers there."""


class ExportFront(Protocol):
    """A copy of a stream: ``async for chunk in export.chunks()``; then ``export.result``."""

    result: ExportResult | None
    """Set at the end. Without it the copy is not complete."""

    def chunks(self) -> AsyncGenerator[bytes, None]:
        """The file's bytes, in order."""


class StreamFront(Closing):
    """One stream of a namespace. Behind gateways its errors are also StreamUnavailableError, where no gateway answers,
    and GatewayTooOldError."""

    def __init__(self, name: str, stream_id: str, config: StreamConfig) -> None:
        self.name = name
        self.id = stream_id
        """Stays the same when the stream is renamed, and is never used again."""
        self.config = config
        """The settings as they were read last."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} ({self.id})>"

    # -- writing ----------------------------------------------------------------------------------------

    @abstractmethod
    def writer(self, **options: Unpack[WriterOptions]) -> PendingOpen[WriterFront]:
        """Write to the stream: ``async with stream.writer() as writer``. In this process's cluster this takes it over:
        the former writer, wherever it is, can append nothing more. Through a gateway it writes beside others.

        Raises (when awaited or entered):
            StreamSealedError, StreamNotFoundError.
            StreamUnavailableError: too few bookies answer, or the metadata store does not; nothing is lost.
            OwnershipLostError: another writer took the stream over meanwhile.
            StreamConfigError: an option, where a gateway owns the stream.
        """

    @abstractmethod
    def producer(
        self, name: str, *, epoch: int | None = None, gap: GapRule = "strict", **options: Unpack[WriterOptions]
    ) -> PendingOpen[ProducerFront]:
        """Open an idempotent producer: ``async with stream.producer(name) as producer``. The producers of one Stream
        object share a writer, which takes the stream over like writer().

        With ``gap="strict"`` a sequence number that is left out is refused; with ``"monotonic"`` they need only rise.

        Raises (when awaited or entered):
            ProducerFencedError: ``epoch`` is lower than the one that the name has. StreamNameError. And as writer().
        """

    # -- reading ----------------------------------------------------------------------------------------

    @abstractmethod
    def read(self, start: Seek = EARLIEST, **options: Unpack[ReaderOptions]) -> ReaderFront:
        """Read from ``start`` on: ``async with stream.read() as reader``, then ``async for record in reader``, or
        ``reader.next()``, ``reader.next_batch()``, ``reader.arrow_batches()``. With ``follow=True`` it waits at the
        end. The options are those of :class:`segments.read.ReadOptions`; a gateway takes ``stop``, ``follow``,
        ``on_gap``.

        Raises: StreamConfigError, SeekFormatError. Reading raises what :meth:`ReaderFront.next` says.
        """

    async def find(self, seek: Seek) -> Position:
        """The position of the first record that ``seek`` asks for; behind the last record if there is none.

        Raises:
            PositionTruncatedError: the position was truncated. CursorNotFoundError. StreamNotFoundError.
            StreamUnavailableError. SeekFormatError.
        """
        return await self._find(checked_seek(seek))

    @abstractmethod
    async def _find(self, seek: Seek) -> Position:
        """The position of a seek."""

    async def count(self, start: Seek = EARLIEST, stop: Seek = LATEST) -> int:
        """How many records there are from ``start`` up to, and not including, ``stop``. Raises: as find."""
        return await self._count(checked_seek(start), checked_seek(stop))

    @abstractmethod
    async def _count(self, start: Seek, stop: Seek) -> int:
        """How many records there are between two positions."""

    async def first(self) -> StoredRecord | None:
        """The first record; None if there is none. Raises: StreamUnavailableError, StreamGapError."""
        return await self._record_at(EARLIEST)

    async def _record_at(self, seek: Seek) -> StoredRecord | None:
        async with self.read(seek) as reader:
            record = await reader.next()
            assert record is None or isinstance(record, StoredRecord), "a gap is raised"
            return record

    @abstractmethod
    async def last(self) -> StoredRecord | None:
        """The last confirmed record; None if there is none. Raises: StreamUnavailableError. StreamGapError: through a
        gateway, if it, or the first one, from which it is counted, is damaged."""

    async def tail_position(self) -> Position:
        """The position directly behind the last confirmed record. Raises: StreamUnavailableError."""
        return await self._find(LATEST)

    async def splits(self, start: Seek = EARLIEST, stop: Seek = LATEST, *, target: int) -> list[StreamRange]:
        """Cut what is between ``start`` and ``stop`` into about ``target`` ranges of about equal size, for scans side
        by side. Raises: as find."""
        if target < 1:
            raise ValueError(f"a stream is cut into at least one range, not into {target}")
        return await self._splits(checked_seek(start), checked_seek(stop), target)

    @abstractmethod
    async def _splits(self, start: Seek, stop: Seek, target: int) -> list[StreamRange]:
        """Cut what is between two positions."""

    # -- cursors ----------------------------------------------------------------------------------------

    @abstractmethod
    def cursor(self, name: str, *, start: Seek = EARLIEST, **options: Unpack[CursorOptions]) -> CursorFront:
        """A position in the stream that outlives its readers: ``async with stream.cursor("billing") as cursor``, then
        ``cursor.read()``, ``cursor.advance()``, ``cursor.ack()``. A new one begins at ``start``.

        Entering it takes it over: its former owner can move it no more. Without entering it can be looked at.

        Raises: StreamNameError. Entering raises what :meth:`Cursor.open` says.
        """

    @abstractmethod
    async def cursors(self) -> dict[str, CursorState]:
        """The cursors, by name. Raises: StreamMetadataError, StreamCorruptError, UnsupportedStreamFormatError."""

    # -- what only the cluster's own address has ---------------------------------------------------------

    @abstractmethod
    async def end(self) -> StreamEnd:
        """The end of the stream now: a position, and the number that comes next.

        Raises: StreamUnavailableError. StreamConfigError: it is behind gateways, as are the next ones.
        """

    @abstractmethod
    async def seq_no(self, seek: Seek) -> int:
        """The number of the first record at or behind a position; at the end, the number that comes next. Raises: as
        find."""

    @abstractmethod
    async def view(self) -> StreamReading:
        """A snapshot of the stream that answers several questions cheaply: its end, positions, numbers and splits,
        and what a reader elsewhere must know (:meth:`StreamReading.known`). Raises: StreamUnavailableError."""

    @abstractmethod
    async def publisher(self, *, owner: str | None = None, take_over: bool = False) -> PublisherFront:
        """Publish batches that were staged: each becomes visible whole, and once. In this process's cluster this claims
        the stream; through a gateway the stream's owner publishes, which takes no options.

        Raises: as :meth:`StreamPublisher.open`. StreamConfigError: an option, behind a gateway.
        """

    @abstractmethod
    def stage(
        self, staging: str, app: str = "", *, patience_s: float = 0.0, compression: str | None = None
    ) -> StagedWriterFront:
        """Write rows of a batch that a publisher makes visible later, or never. Behind gateways they go along with the
        publisher's call, which takes 16 MiB of them.

        Args:
            staging: the batch; the same for all who write it, and for no other batch.
            app: who writes it.
            patience_s: how long a cluster that does not answer is asked again.
            compression: of the ledger that is written: ``none``, ``lz4`` or ``zstd``, whatever the stream's settings
                say; None: what they say. Few rows, which make no ledger, are published as they say.

        Raises: StreamConfigError: another ``compression``, or any behind a gateway.
        """

    @abstractmethod
    async def apps(self) -> list[AppRecord]:
        """The applications that have published batches, by name. Raises: StreamMetadataError, StreamCorruptError."""

    @abstractmethod
    async def forget_app(self, app: str) -> bool:
        """Forget an application: what it publishes next counts as new. Returns whether it was known."""

    @abstractmethod
    async def hand_over_app(self, app: str, by: str) -> bool:
        """Say whose an application is: only he, and who may administer the stream, publishes in its name through a
        gateway. Empty: nobody's; then it becomes that of the next one who does. Returns whether it is known.

        Raises: StreamConfigError: nobody can have this name. And as apps.
        """

    @abstractmethod
    async def producer_owners(self) -> dict[str, str]:
        """The names of producers that belong to somebody, as gateways know him, and to whom. Raises: as apps."""

    @abstractmethod
    async def hand_over_producer(self, producer: str, by: str) -> None:
        """Say whose a producer's name is: only he, and who may administer the stream, appends under it through a
        gateway, after 5 s at most. Empty: nobody's; then it becomes that of the next one who does.

        Raises: StreamNameError: no producer can have this name. StreamConfigError: nobody can have his. And as apps.
        """

    # -- what it says -----------------------------------------------------------------------------------

    @abstractmethod
    async def read_config(self) -> StreamConfig:
        """Read the settings as they are now. Raises: StreamNotFoundError, StreamMetadataError."""

    @abstractmethod
    async def segments(self) -> tuple[StreamSegment, ...]:
        """The segments, oldest first. What an open one holds is not known here. Raises: as read_config."""

    @abstractmethod
    async def info(self) -> StreamInfo:
        """The stream in one line. Raises: as read_config."""

    @abstractmethod
    async def show(self) -> StreamOverview:
        """All that is known of the stream: its writer, settings, segments, cursors and holds. Raises: as
        read_config."""

    def watch(self) -> AsyncIterator[StreamEvent]:
        """Changes of the stream from now on, until it is deleted. Raises: as read_config. StreamConfigError: it is
        behind gateways."""
        raise StreamConfigError(
            f"gateways do not tell the changes of one stream, and {self.name} is behind some: follow it by "
            "read(follow=True), or all streams by the namespace's watch()",
            stream=self.name,
        )

    # -- what becomes of it -----------------------------------------------------------------------------

    @abstractmethod
    async def configure(self, patch: Mapping[str, Any]) -> StreamConfig:
        """Change settings: ``{"retention.max_age_s": 3600}``. A writer follows with its next segment.

        Raises:
            StreamConfigError: nothing was changed. StreamNotFoundError, StreamMetadataError.
        """

    async def truncate(self, before: Seek, *, up_to_holds: bool = False, dry_run: bool = False) -> TruncateResult:
        """Let readers begin at ``before``, at once; LATEST hides everything. An earlier seek is no change.

        Ledgers are removed by the next ``apply_retention()``. With ``up_to_holds`` a hold limits the truncation;
        otherwise it refuses it.

        Raises:
            PositionFormatError: there is no such position yet. StreamHeldError: a hold covers records before it.
            CursorNotFoundError, StreamNotFoundError, StreamMetadataError, StreamUnavailableError.
        """
        return await self._truncate(checked_seek(before), up_to_holds, dry_run)

    @abstractmethod
    async def _truncate(self, before: Seek, up_to_holds: bool, dry_run: bool) -> TruncateResult:
        """Let readers begin at a seek."""

    async def explain_retention(self) -> RetentionReport:
        """Why each segment is kept, or that it may go: limits, cursors, holds. Raises: as read_config."""
        return (await self._apply_retention(dry_run=True)).report

    async def apply_retention(self) -> PassResult:
        """Remove the segments that may go, and what an earlier pass has left. Raises: as read_config."""
        return await self._apply_retention(dry_run=False)

    @abstractmethod
    async def _apply_retention(self, *, dry_run: bool) -> PassResult:
        """Decide what may go, and remove it unless ``dry_run``."""

    @abstractmethod
    async def holds(self) -> tuple[Hold, ...]:
        """The holds, by their start; also those that have expired and were not swept yet. Raises: as read_config."""

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
        before ``until``, or before the hold is released. A hold of the same name gets the new range. If the clock here
        is more than a minute behind the metadata store's, the hold ends that much later.

        Raises:
            StreamConfigError: the range begins before the stream, or is empty. StreamNameError. And as read_config.
        """
        until_ms = None if until is None else to_ms(until)
        return await self._hold(name, checked_seek(start), checked_seek(stop), until_ms, note)

    @abstractmethod
    async def _hold(self, name: str, start: Seek, stop: Seek, until_ms: int | None, note: str) -> Hold:
        """Put a hold."""

    @abstractmethod
    async def release_hold(self, name: str) -> None:
        """Remove a hold. Raises: HoldNotFoundError, and as read_config."""

    @abstractmethod
    async def roll(self) -> StreamSegment | None:
        """End the open segment, if it has records. Returns the last completed segment; None if there is none. In this
        process's cluster this takes the stream over: the former writer can append nothing more. A writer rolls its own
        stream by ``writer.roll()``. Raises: as writer().
        """

    @abstractmethod
    async def seal(self) -> Position | None:
        """End the stream for good: nothing can be appended any more. In this process's cluster this takes it over.
        Returns the position of its last record. Sealing again is no change. Raises: as writer().
        """

    @abstractmethod
    def export(self, start: Position = EARLIEST, stop: Position = LATEST) -> ExportFront:
        """Copy the stream to a checksummed file: ``async for chunk in stream.export().chunks()``."""

    async def close(self) -> None:
        """Nothing is held open by a stream itself; its writers, producers and readers are closed on their own."""
