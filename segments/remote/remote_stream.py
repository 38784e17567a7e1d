"""A stream behind gateways, as an application holds it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, Unpack

from segments.arguments import check_gap_rule, checked_seek
from segments.chain import StreamSegment
from segments.checks.overview import StreamOverview
from segments.closing import Closing
from segments.config import StreamConfig
from segments.cursors import CursorOptions, CursorState
from segments.directory.directory import StreamInfo
from segments.errors import SegmentEmptyError
from segments.position import EARLIEST, LATEST, Position
from segments.protocol import segments_pb2 as pb
from segments.protocol.cursor_messages import get_cursor
from segments.protocol.messages import get_position, get_settings, put_patch, put_seek
from segments.protocol.report_messages import get_hold, get_info, get_overview, get_pass
from segments.protocol.segment_messages import get_segment
from segments.read import OnGap, StreamRange
from segments.record import StoredRecord, to_ms
from segments.remote.append_pipe import AppendPipe
from segments.remote.gateway_channels import GatewayChannels
from segments.remote.remote_cursor import RemoteCursor
from segments.remote.remote_reader import RemoteReader
from segments.remote.remote_transfer import RemoteExport
from segments.remote.remote_writer import RemoteProducer, RemoteWriter, open_producer, roll, seal
from segments.retention.holds import Hold
from segments.retention.retention import RetentionReport
from segments.retention.retention_pass import PassResult
from segments.retention.truncation import TruncateResult
from segments.seek import AtSeqNo, Seek
from segments.write.opening import Opening


class RemoteStream(Closing):
    """One stream of a namespace behind gateways."""

    def __init__(self, channels: GatewayChannels, info: Any) -> None:
        self._channels = channels
        self.name: str = info.stream
        self.id: str = info.stream_id
        """Stays the same when the stream is renamed, and is never used again."""
        self.config: StreamConfig = get_settings(info.settings)
        """The settings as they were read last."""

    def __repr__(self) -> str:
        return f"<RemoteStream {self.name} ({self.id})>"

    # -- writing -----------------------------------------------------------------------------------------

    def writer(self) -> Opening[RemoteWriter]:
        """Write to the stream beside others: ``async with stream.writer() as writer``.

        Raises (when awaited or entered):
            StreamNotFoundError, StreamUnavailableError.
        """

        async def opened() -> RemoteWriter:
            await self._info()
            return RemoteWriter(self._channels, self.name, AppendPipe(self._channels, self.name, idempotent=False))

        return Opening(opened)

    def producer(
        self, name: str, *, epoch: int | None = None, gap: Literal["strict", "monotonic"] = "strict"
    ) -> Opening[RemoteProducer]:
        """Open an idempotent producer: ``async with stream.producer(name) as producer``.

        Raises (when awaited or entered):
            ProducerFencedError: ``epoch`` is lower than the one that the name has. StreamNameError. And as writer().
        """

        async def opened() -> RemoteProducer:
            check_gap_rule(gap)
            return await open_producer(self._channels, self.name, name, epoch=epoch, monotonic=gap == "monotonic")

        return Opening(opened)

    # -- reading -----------------------------------------------------------------------------------------

    def read(
        self, start: Seek = EARLIEST, *, stop: Seek | None = None, follow: bool = False, on_gap: OnGap = "raise"
    ) -> RemoteReader:
        """A reader; it makes its call with its first read. ``stop`` is exclusive; with ``follow`` there is none."""
        return RemoteReader(self._channels, self.name, checked_seek(start), stop=stop, follow=follow, on_gap=on_gap)

    async def first(self) -> StoredRecord | None:
        """The first record; None if there is none. Raises: StreamUnavailableError, StreamGapError."""
        return await self._record_at(EARLIEST)

    async def last(self) -> StoredRecord | None:
        """The last confirmed record; None if there is none.

        Raises:
            StreamUnavailableError. StreamGapError: it, or the first one, from which it is counted, is damaged.
        """
        first = await self.first()
        if first is None:
            return None
        return await self._record_at(AtSeqNo(first.seq_no + await self.count(first.position) - 1))

    async def _record_at(self, place: Seek) -> StoredRecord | None:
        async with self.read(place) as reader:
            record = await reader.next()
            assert record is None or isinstance(record, StoredRecord), "a gap is raised"
            return record

    async def find(self, seek: Seek) -> Position:
        """The position of a place. Raises: StreamNotFoundError, StreamUnavailableError, SeekFormatError."""
        reply = await self._call("Read.Find", pb.FindRequest(stream=self.name, seek=put_seek(seek)))
        return get_position(reply.position)

    async def count(self, start: Seek = EARLIEST, stop: Seek = LATEST) -> int:
        """How many records there are from ``start`` up to, and not including, ``stop``. Raises: as find."""
        request = pb.CountRequest(stream=self.name, start=put_seek(start), stop=put_seek(stop))
        return int((await self._call("Read.Count", request)).records)

    async def splits(self, start: Seek = EARLIEST, stop: Seek = LATEST, *, target: int) -> list[StreamRange]:
        """Cut what is between ``start`` and ``stop`` into about ``target`` ranges of about equal size, for scans side
        by side. Raises: as find."""
        if target < 1:
            raise ValueError(f"a stream is cut into at least one range, not into {target}")
        request = pb.SplitsRequest(stream=self.name, start=put_seek(start), stop=put_seek(stop), target=target)
        return [
            StreamRange(get_position(each.start), get_position(each.stop), each.records, each.bytes)
            for each in (await self._call("Read.GetSplits", request)).ranges
        ]

    # -- cursors -----------------------------------------------------------------------------------------

    def cursor(self, name: str, *, start: Seek = EARLIEST, **options: Unpack[CursorOptions]) -> RemoteCursor:
        """A place in the stream that outlives its readers: ``async with stream.cursor("billing") as cursor``. A new one
        begins at ``start``.

        Entering it takes it over: its former owner can move it no more. Without entering it can be looked at.

        Raises: StreamNameError. Entering raises what :meth:`RemoteCursor.open` says.
        """
        return RemoteCursor(self._channels, self.name, name, start=start, **options)

    async def cursors(self) -> dict[str, CursorState]:
        """The cursors, by name. Raises: as find."""
        request = pb.ListCursorsRequest(stream=self.name)
        return {each.name: get_cursor(each) async for each in self._channels.stream("Cursors.List", request)}

    async def tail_position(self) -> Position:
        """The position directly behind the last confirmed record. Raises: as find."""
        return await self.find(LATEST)

    # -- what it says ------------------------------------------------------------------------------------

    async def read_config(self) -> StreamConfig:
        """Read the settings as they are now. Raises: StreamNotFoundError, StreamUnavailableError."""
        self.config = get_settings((await self._info()).settings)
        return self.config

    async def segments(self) -> tuple[StreamSegment, ...]:
        """The segments, oldest first. What an open one holds is not known here. Raises: as read_config."""
        request = pb.ListSegmentsRequest(stream=self.name)
        return tuple([get_segment(each) async for each in self._channels.stream("Segments.ListSegments", request)])

    async def info(self) -> StreamInfo:
        """The stream in one line. Raises: as read_config."""
        return get_info(await self._info())

    async def show(self) -> StreamOverview:
        """All that is known of the stream: its writer, settings, segments, cursors and holds. Raises: as read_config;
        GatewayTooOldError."""
        request = pb.ShowStreamRequest(stream=self.name)
        return get_overview([each async for each in self._channels.stream("Streams.Show", request)])

    async def owner(self) -> str | None:
        """The address of the gateway that owns the stream; None if no gateway is known to. Raises: as read_config."""
        reply = await self._call("Streams.GetOwner", pb.GetOwnerRequest(stream=self.name))
        return reply.address or None

    # -- what becomes of it ------------------------------------------------------------------------------

    async def configure(self, patch: Mapping[str, object]) -> StreamConfig:
        """Change settings: ``{"retention.max_age_s": 3600}``. Raises: StreamConfigError; and as read_config."""
        reply = await self._call(
            "Streams.UpdateConfig", pb.UpdateConfigRequest(stream=self.name, settings=put_patch(patch))
        )
        self.config = get_settings(reply.settings)
        return self.config

    async def roll(self) -> StreamSegment | None:
        """End the open segment, if it has records. Returns the last completed segment; None if there is none.

        Raises: as read_config.
        """
        try:
            return await roll(self._channels, self.name)
        except SegmentEmptyError:
            return None

    async def seal(self) -> Position | None:
        """End the stream for good. Returns the position of its last record. Raises: as read_config."""
        return await seal(self._channels, self.name)

    async def truncate(self, before: Seek, *, up_to_holds: bool = False, dry_run: bool = False) -> TruncateResult:
        """Let readers begin at ``before``. Raises: StreamHeldError, PositionFormatError; and as read_config."""
        segments = {segment.number: segment for segment in await self.segments()}
        request = pb.TruncateRequest(
            stream=self.name, before=put_seek(before), up_to_holds=up_to_holds, dry_run=dry_run
        )
        reply = await self._call("Segments.Truncate", request)
        return TruncateResult(
            get_position(reply.was),
            get_position(reply.start),
            Hold(reply.held_by) if reply.held_by else None,
            tuple(segments[number] for number in reply.segments if number in segments),
        )

    async def explain_retention(self) -> RetentionReport:
        """Why each segment is kept, or that it may go: limits, cursors, holds. Raises: as read_config;
        GatewayTooOldError."""
        return (await self._retention(dry_run=True)).report

    async def apply_retention(self) -> PassResult:
        """Remove the segments that may go, and what an earlier pass has left. Raises: as explain_retention."""
        return await self._retention(dry_run=False)

    async def _retention(self, *, dry_run: bool) -> PassResult:
        request = pb.ApplyRetentionRequest(stream=self.name, dry_run=dry_run)
        return get_pass([each async for each in self._channels.stream("Segments.ApplyRetention", request)])

    async def holds(self) -> tuple[Hold, ...]:
        """The holds, by their start; also those that have expired and were not swept yet. Raises: as read_config;
        GatewayTooOldError."""
        request = pb.ListHoldsRequest(stream=self.name)
        return tuple([get_hold(each) async for each in self._channels.stream("Segments.ListHolds", request)])

    async def hold(
        self,
        name: str,
        start: Seek = EARLIEST,
        stop: Seek = LATEST,
        *,
        until: datetime | None = None,
        note: str = "",
    ) -> Hold:
        """Keep the records from ``start`` up to, and without, ``stop``. Raises: StreamConfigError; as read_config."""
        request = pb.PutHoldRequest(
            stream=self.name,
            name=name,
            start=put_seek(start),
            stop=put_seek(stop),
            until_ms=None if until is None else to_ms(until),
            note=note,
        )
        return get_hold(await self._call("Segments.PutHold", request))

    async def release_hold(self, name: str) -> None:
        """Remove a hold. Raises: HoldNotFoundError; and as read_config."""
        await self._call("Segments.DeleteHold", pb.DeleteHoldRequest(stream=self.name, name=name))

    def export(self, start: Position = EARLIEST, stop: Position = LATEST) -> RemoteExport:
        """Copy the stream to a checksummed file: ``async for chunk in stream.export().chunks()``."""
        return RemoteExport(self._channels, self.name, start, stop)

    async def _info(self) -> Any:
        return await self._call("Streams.Get", pb.GetStreamRequest(stream=self.name))

    async def _call(self, key: str, request: Any) -> Any:
        return await self._channels.call(key, request)

    # -- the end -----------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Nothing is held open by a stream itself; its writers, producers and readers are closed on their own."""
