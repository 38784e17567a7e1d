"""The service Segments: segments, rolls, truncation, retention, holds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from segments.errors import SegmentEmptyError, StreamConfigError, StreamError
from segments.gateway.calls.append_calls import elsewhere
from segments.gateway.calls.served_streams import ServedStreams
from segments.gateway.guard.call_guard import Behaviour
from segments.gateway.guard.grpc_call import GrpcCall
from segments.gateway.guard.request_rights import OVERRULE
from segments.position import EARLIEST, LATEST
from segments.protocol import segments_pb2 as pb
from segments.protocol.messages import get_seek, put_position
from segments.protocol.report_messages import get_hold, put_hold, put_report
from segments.protocol.segment_messages import put_segment
from segments.record import from_ms
from segments.retention.hold_node import MayChange
from segments.retention.holds import Hold
from segments.retention.retention_pass import PassResult
from segments.stream import Stream


class SegmentCalls:
    """The behaviours of the service."""

    def __init__(self, table: ServedStreams) -> None:
        self._table = table

    @property
    def behaviours(self) -> Mapping[str, Behaviour]:
        """By service and name."""
        return {
            "Segments.ListSegments": self.list_segments,
            "Segments.Roll": self.roll,
            "Segments.Truncate": self.truncate,
            "Segments.ExplainRetention": self.explain_retention,
            "Segments.PutHold": self.put_hold,
            "Segments.DeleteHold": self.delete_hold,
            "Segments.ListHolds": self.list_holds,
            "Segments.ApplyRetention": self.apply_retention,
        }

    async def _stream(self, name: str, call: GrpcCall) -> Stream:
        return (await self._table.get(name)).stream

    async def _stream_now(self, name: str) -> Stream:
        return (await self._table.get_fresh(name)).stream

    async def list_segments(self, request: pb.ListSegmentsRequest, call: GrpcCall) -> AsyncIterator[pb.SegmentInfo]:
        """The segments, oldest first. What an open one holds is not told."""
        stream = await self._stream(request.stream, call)
        for segment in await stream.segments():
            yield put_segment(segment)

    async def roll(self, request: pb.RollRequest, call: GrpcCall) -> pb.SegmentInfo:
        """End the open segment, if it has records; answer the last completed one.

        Raises: as ``Writer.roll``, and GatewayRedirectError. SegmentEmptyError: there is no record in any segment.
        """
        served = await self._table.get(request.stream)
        try:
            return put_segment(await (await served.ownership.writer()).roll())
        except SegmentEmptyError:
            completed = [segment for segment in await served.stream.segments() if not segment.is_open]
            if not completed:
                raise
            return put_segment(completed[-1])
        except StreamError as error:
            raise elsewhere(error, request.stream) from error

    async def truncate(self, request: pb.TruncateRequest, call: GrpcCall) -> pb.TruncateReply:
        """Let readers begin at a position. Raises: as ``Stream.truncate``."""
        stream = await self._stream_now(request.stream)
        done = await stream.truncate(get_seek(request.before), up_to_holds=request.up_to_holds, dry_run=request.dry_run)
        return pb.TruncateReply(
            start=put_position(done.start),
            was=put_position(done.was),
            segments=[segment.number for segment in done.removable],
            records=sum(segment.records for segment in done.removable),
            bytes=sum(segment.bytes for segment in done.removable),
            held_by=None if done.held_by is None else done.held_by.name,
        )

    async def explain_retention(self, request: pb.ExplainRequest, call: GrpcCall) -> AsyncIterator[pb.SegmentReason]:
        """Why each segment is kept, or that it may go."""
        stream = await self._stream(request.stream, call)
        for each in (await stream.explain_retention()).segments:
            yield pb.SegmentReason(segment=each.segment.number, reason=each.text, kept=not each.goes)

    async def apply_retention(
        self, request: pb.ApplyRetentionRequest, call: GrpcCall
    ) -> AsyncIterator[pb.RetentionReply]:
        """Remove what may go, or only tell it. Raises: as ``Stream.apply_retention``."""
        stream = await self._stream_now(request.stream)
        if request.dry_run:
            done = PassResult(await stream.explain_retention(), ())
        else:
            done = await stream.apply_retention()
        for reply in put_report(done.report, done.deleted):
            yield reply

    async def list_holds(self, request: pb.ListHoldsRequest, call: GrpcCall) -> AsyncIterator[pb.Hold]:
        """The holds, by their start."""
        stream = await self._stream(request.stream, call)
        for hold in await stream.holds():
            yield put_hold(hold)

    async def put_hold(self, request: pb.PutHoldRequest, call: GrpcCall) -> pb.Hold:
        """Keep records. Raises: as ``Stream.hold``, and StreamAccessError: the one of this name is somebody else's."""
        stream = await self._stream_now(request.stream)
        start = await stream.position_of(get_seek(request.start, EARLIEST))
        stop = get_seek(request.stop, LATEST)
        try:
            until = from_ms(request.until_ms) if request.HasField("until_ms") else None
        except OverflowError as error:
            raise StreamConfigError(f"a hold cannot end {request.until_ms} ms after 1970: that is no date") from error
        end = LATEST if stop == LATEST else await stream.position_of(stop)
        until_ms = None if until is None else request.until_ms
        wanted = Hold(request.name, until_ms=until_ms, note=request.note)
        who = "" if call.caller is None else call.caller.name
        return put_hold(await stream.hold_for(who, wanted, start, end, _own_or_administered(request.stream, call)))

    async def delete_hold(self, request: pb.DeleteHoldRequest, call: GrpcCall) -> pb.Empty:
        """Remove a hold. Raises: as ``Stream.release_hold``, and StreamAccessError: somebody else has put it."""
        stream = await self._stream_now(request.stream)
        only = get_hold(request.only) if request.HasField("only") else None
        await stream.release_hold_for(request.name, _own_or_administered(request.stream, call), only)
        return pb.Empty()


def _own_or_administered(stream: str, call: GrpcCall) -> MayChange:
    """Checks that the caller may change a hold: its own, or any with the right to administer. A hold of unknown origin
    is nobody's own."""

    def require_own(hold: Hold) -> None:
        if call.caller is None or not hold.by or hold.by != call.caller.name:
            call.require(stream, OVERRULE)

    return require_own
