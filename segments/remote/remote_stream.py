"""A stream behind gateways, as an application holds it."""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NoReturn, Unpack

from segments.arguments import check_gap_rule, checked_seek
from segments.chain import StreamSegment
from segments.checks.overview import StreamOverview
from segments.config import StreamConfig
from segments.cursors.cursor_front import CursorOptions
from segments.cursors.cursor_state import CursorState
from segments.directory.directory import StreamInfo
from segments.errors import SegmentEmptyError, StreamConfigError
from segments.position import EARLIEST, LATEST, Position
from segments.protocol import segments_pb2 as pb
from segments.protocol.cursor_messages import get_cursor
from segments.protocol.messages import get_position, get_settings, put_patch, put_seek
from segments.protocol.publish_messages import get_published, put_key, put_rows
from segments.protocol.report_messages import get_hold, get_info, get_overview, get_pass, put_hold
from segments.protocol.segment_messages import get_segment
from segments.publish import BatchKey, PublishedBatch, StagedRows
from segments.read import ReaderOptions, StreamRange
from segments.record import StoredRecord
from segments.remote.append_pipe import AppendPipe
from segments.remote.gateway_channels import GatewayChannels
from segments.remote.message_writer import ENTRIES_BYTES, MessageWriter, too_large
from segments.remote.remote_cursor import RemoteCursor
from segments.remote.remote_reader import RemoteReader
from segments.remote.remote_transfer import RemoteExport
from segments.remote.remote_writer import RemoteProducer, RemoteWriter, open_producer, roll, seal
from segments.retention.holds import Hold
from segments.retention.retention_pass import PassResult
from segments.retention.truncation import TruncateResult
from segments.seek import Ago, AtCursor, AtSeqNo, Seek
from segments.stream_front import StreamFront, WriterOptions
from segments.write.opening import PendingOpen
from segments.write.producer import GapRule


class RemotePublisher:
    """Publishes batches through gateways. It claims nothing: the stream stays with its gateway."""

    def __init__(self, channels: GatewayChannels, stream: str) -> None:
        self._channels, self._stream = channels, stream

    async def publish(self, key: BatchKey | None, staged: Sequence[StagedRows]) -> PublishedBatch:
        """Make a batch visible: whole, in the order of ``staged``, behind what the gateway has to append, once.

        Args:
            key: what it is known by; None: it is new in any case, and the call is not repeated if it got no answer.

        Raises:
            BatchRefusedError: nothing was published. GatewayTooOldError. StreamUnavailableError, StreamNotReadyError:
            it may have been published, where the error's ``outcome`` says so; publishing it again, with its key, tells.
        """
        if (size := sum(len(entry) for each in staged for entry in each.entries)) > ENTRIES_BYTES:
            raise too_large(self._stream, size, ENTRIES_BYTES)
        request = pb.PublishRequest(
            stream=self._stream, key=None if key is None else put_key(key), rows=map(put_rows, staged)
        )
        reply = await self._channels.call("Append.Publish", request, stream=self._stream, repeat=key is not None)
        return get_published(reply)

    async def prepare(self, app: str) -> None:
        """Nothing: the gateway makes the ledger when the batch comes."""

    async def clean(self, app: str | None = None, own: Collection[str] = ()) -> list[int]:
        """Nothing: the gateway deletes what is left with the application's next batch."""
        return []

    async def close(self) -> None:
        """The stream stays with its gateway."""


class RemoteStream(StreamFront):
    """One stream of a namespace behind gateways."""

    def __init__(self, channels: GatewayChannels, info: Any) -> None:
        super().__init__(info.stream, info.stream_id, get_settings(info.settings))
        self._channels = channels

    # -- writing -----------------------------------------------------------------------------------------

    def writer(self, **options: Unpack[WriterOptions]) -> PendingOpen[RemoteWriter]:
        """Write to the stream beside others: ``async with stream.writer() as writer``.

        Raises (when awaited or entered):
            StreamNotFoundError, StreamUnavailableError. StreamConfigError: an option; the gateway owns the stream.
        """

        async def opened() -> RemoteWriter:
            self._refuse_options("a writer", options, ())
            await self._info()
            return RemoteWriter(self._channels, self.name, AppendPipe(self._channels, self.name, idempotent=False))

        return PendingOpen(opened)

    def producer(
        self, name: str, *, epoch: int | None = None, gap: GapRule = "strict", **options: Unpack[WriterOptions]
    ) -> PendingOpen[RemoteProducer]:
        """Open an idempotent producer: ``async with stream.producer(name) as producer``.

        Raises (when awaited or entered):
            ProducerFencedError: ``epoch`` is lower than the one that the name has. StreamNameError. And as writer().
        """

        async def opened() -> RemoteProducer:
            self._refuse_options("a producer", options, ("epoch", "gap"))
            check_gap_rule(gap)
            return await open_producer(self._channels, self.name, name, epoch=epoch, monotonic=gap == "monotonic")

        return PendingOpen(opened)

    async def publisher(self, *, owner: str | None = None, take_over: bool = False) -> RemotePublisher:
        """Publish batches that were staged: through gateways, or by programs which have the cluster's own address."""
        given = {name: value for name, value in (("owner", owner), ("take_over", take_over)) if value}
        self._refuse_options("a publisher", given, ())
        await self._info()
        return RemotePublisher(self._channels, self.name)

    def stage(
        self, staging: str, app: str = "", *, patience_s: float = 0.0, compression: str | None = None
    ) -> MessageWriter:
        """Take rows of a batch; they go along when it is published, so a batch has at most 16 MiB of them. The gateway
        compresses them as the stream's settings say. Raises: StreamConfigError: ``compression`` is given."""
        if compression is not None:
            self._refuse_options("a task", {"compression": compression}, ("staging", "app"))
        return MessageWriter((self.name, self.id), staging)

    def _refuse_options(self, who: str, options: Mapping[str, object], known: tuple[str, ...]) -> None:
        if others := sorted(options.keys() - set(known)):
            takes = " and ".join(known) or "no options"
            raise StreamConfigError(
                f"{who} behind gateways takes {takes}, and not {', '.join(others)}: leave that out, or use a client of "
                "the cluster",
                stream=self.name,
            )

    # -- reading -----------------------------------------------------------------------------------------

    def read(self, start: Seek = EARLIEST, **options: Unpack[ReaderOptions]) -> RemoteReader:
        """A reader; it makes its call with its first read. It takes ``stop``, ``follow`` and ``on_gap``. Raises:
        StreamConfigError, SeekFormatError."""
        self._refuse_options("a reader", options, ("stop", "follow", "on_gap"))
        return RemoteReader(
            self._channels,
            self.name,
            checked_seek(start),
            stop=options.get("stop"),
            follow=options.get("follow", False),
            on_gap=options.get("on_gap", "raise"),
        )

    async def last(self) -> StoredRecord | None:
        first = await self.first()
        if first is None:
            return None
        return await self._record_at(AtSeqNo(first.seq_no + await self.count(first.position) - 1))

    async def _find(self, seek: Seek) -> Position:
        reply = await self._call("Read.Find", pb.FindRequest(stream=self.name, seek=put_seek(seek)))
        return get_position(reply.position)

    async def _count(self, start: Seek, stop: Seek) -> int:
        request = pb.CountRequest(stream=self.name, start=put_seek(start), stop=put_seek(stop))
        return int((await self._call("Read.Count", request)).records)

    async def _splits(self, start: Seek, stop: Seek, target: int) -> list[StreamRange]:
        request = pb.SplitsRequest(stream=self.name, start=put_seek(start), stop=put_seek(stop), target=target)
        return [
            StreamRange(get_position(each.start), get_position(each.stop), each.records, each.bytes)
            for each in (await self._call("Read.GetSplits", request)).ranges
        ]

    # -- cursors -----------------------------------------------------------------------------------------

    def cursor(self, name: str, *, start: Seek = EARLIEST, **options: Unpack[CursorOptions]) -> RemoteCursor:
        return RemoteCursor(self._channels, self.name, name, start=start, **options)

    async def cursors(self) -> dict[str, CursorState]:
        request = pb.ListCursorsRequest(stream=self.name)
        return {each.name: get_cursor(each) async for each in self._channels.stream("Cursors.List", request)}

    # -- what it says ------------------------------------------------------------------------------------

    async def read_config(self) -> StreamConfig:
        self.config = get_settings((await self._info()).settings)
        return self.config

    async def segments(self) -> tuple[StreamSegment, ...]:
        request = pb.ListSegmentsRequest(stream=self.name)
        return tuple([get_segment(each) async for each in self._channels.stream("Segments.ListSegments", request)])

    async def info(self) -> StreamInfo:
        return get_info(await self._info())

    async def show(self) -> StreamOverview:
        request = pb.ShowStreamRequest(stream=self.name)
        return get_overview([each async for each in self._channels.stream("Streams.Show", request)])

    async def owner(self) -> str | None:
        """The address of the gateway that owns the stream; None if no gateway is known to. Raises: as read_config."""
        reply = await self._call("Streams.GetOwner", pb.GetOwnerRequest(stream=self.name))
        return reply.address or None

    # -- what only the cluster's own address has -----------------------------------------------------

    def _refused(self, what: str) -> StreamConfigError:
        return StreamConfigError(
            f"gateways have no call to {what}, and {self.name} is behind some: connect to the cluster's own address",
            stream=self.name,
        )

    async def end(self) -> NoReturn:
        raise self._refused("tell the number that comes next")

    async def seq_no(self, place: Seek) -> NoReturn:
        raise self._refused("tell the number of a position")

    async def view(self) -> NoReturn:
        raise self._refused("tell what others must know to read from bookies")

    async def apps(self) -> NoReturn:
        raise self._refused("list the applications that publish batches")

    async def forget_app(self, app: str) -> NoReturn:
        raise self._refused("forget an application that publishes batches")

    async def hand_over_app(self, app: str, by: str) -> NoReturn:
        raise self._refused("hand over an application that publishes batches")

    async def producer_owners(self) -> NoReturn:
        raise self._refused("tell whose its producers are")

    async def hand_over_producer(self, producer: str, by: str) -> NoReturn:
        raise self._refused("hand over a producer")

    # -- what becomes of it ------------------------------------------------------------------------------

    async def configure(self, patch: Mapping[str, object]) -> StreamConfig:
        reply = await self._call(
            "Streams.UpdateConfig", pb.UpdateConfigRequest(stream=self.name, settings=put_patch(patch))
        )
        self.config = get_settings(reply.settings)
        return self.config

    async def roll(self) -> StreamSegment | None:
        try:
            return await roll(self._channels, self.name)
        except SegmentEmptyError:
            return None

    async def seal(self) -> Position | None:
        return await seal(self._channels, self.name)

    async def _truncate(self, before: Seek, up_to_holds: bool, dry_run: bool) -> TruncateResult:
        segments = {segment.number: segment for segment in await self.segments()}
        if before == LATEST or isinstance(before, Ago | AtCursor):  # else a call that is repeated would hide more
            before = await self._find(before)
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

    async def _apply_retention(self, *, dry_run: bool) -> PassResult:
        request = pb.ApplyRetentionRequest(stream=self.name, dry_run=dry_run)
        return get_pass([each async for each in self._channels.stream("Segments.ApplyRetention", request)])

    async def holds(self) -> tuple[Hold, ...]:
        request = pb.ListHoldsRequest(stream=self.name)
        return tuple([get_hold(each) async for each in self._channels.stream("Segments.ListHolds", request)])

    async def _hold(self, name: str, start: Seek, stop: Seek, until_ms: int | None, note: str) -> Hold:
        request = pb.PutHoldRequest(
            stream=self.name,
            name=name,
            start=put_seek(start),
            stop=put_seek(stop),
            until_ms=until_ms,
            note=note,
        )
        return get_hold(await self._call("Segments.PutHold", request))

    async def release_hold(self, name: str) -> None:
        request = pb.DeleteHoldRequest(stream=self.name, name=name)

        async def current() -> Hold | None:
            found = next((hold for hold in await self.holds() if hold.name == name), None)
            if found is not None and not request.HasField("only"):
                request.only.CopyFrom(put_hold(found))  # an older gateway does not look at it
            return found

        if not await self._channels.remove("Segments.DeleteHold", request, current, operator.eq):
            await self._channels.call("Segments.DeleteHold", request, repeat=False)  # it says that there is none

    def export(self, start: Position = EARLIEST, stop: Position = LATEST) -> RemoteExport:
        return RemoteExport(self._channels, self.name, start, stop)

    async def _info(self) -> Any:
        return await self._call("Streams.Get", pb.GetStreamRequest(stream=self.name))

    async def _call(self, key: str, request: Any) -> Any:
        return await self._channels.call(key, request)
