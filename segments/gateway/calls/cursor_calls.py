"""The service Cursors. A call with a claim acts for the owner who made the claim, at whatever gateway.

A call without one takes the cursor over, moves it, and lets it go: so a cursor that somebody has claimed, or that a
program holds open, is not moved by it, and such callers are kept apart by the position that they expect.

A cursor that was made for a caller whose name is known is his: nobody else takes it over, moves or deletes it, but who
may administer the stream.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, Unpack

from segments.cursors.acked_ranges import Mark
from segments.cursors.cursor import Cursor
from segments.cursors.cursor_front import CursorOptions
from segments.cursors.cursor_state import RANGES_MAX, UNCLAIMED, Acknowledgement
from segments.errors import CursorExistsError, PositionFormatError, StreamConfigError
from segments.gateway.calls.served_streams import ServedStreams
from segments.gateway.guard.call_guard import Behaviour
from segments.gateway.guard.grpc_call import GrpcCall
from segments.gateway.guard.request_rights import OVERRULE
from segments.position import EARLIEST, Position
from segments.protocol import segments_pb2 as pb
from segments.protocol.cursor_messages import get_acknowledgements, put_cursor, put_version
from segments.protocol.messages import get_position, get_seek
from segments.seek import Seek
from segments.stream import Stream

OWNER_BYTES_MAX: Final = 512
"""Of the text that says who uses a cursor: it is in the cursor's node, which has a size, and in messages to others."""

HISTORY: Final = 20
"""How many versions are told if the call does not say."""

CLAIMANT: Final = "a claim at a gateway"
"""The owner's name in a cursor that a client has claimed without a name."""


class CursorCalls:
    """The behaviours of the service."""

    def __init__(self, table: ServedStreams) -> None:
        self._table = table

    @property
    def behaviours(self) -> Mapping[str, Behaviour]:
        """By service and name."""
        return {
            "Cursors.Create": self.create,
            "Cursors.Get": self.get,
            "Cursors.List": self.list,
            "Cursors.Claim": self.claim,
            "Cursors.Release": self.release,
            "Cursors.Advance": self.advance,
            "Cursors.Ack": self.ack,
            "Cursors.Skip": self.skip,
            "Cursors.Reset": self.reset,
            "Cursors.Restore": self.restore,
            "Cursors.SetProperties": self.set_properties,
            "Cursors.GetBacklog": self.get_backlog,
            "Cursors.History": self.history,
            "Cursors.Delete": self.delete,
        }

    async def _stream(self, name: str, call: GrpcCall) -> Stream:
        return (await self._table.get(name)).stream

    async def _stream_now(self, name: str) -> Stream:
        return (await self._table.get_fresh(name)).stream

    # -- making and reading -------------------------------------------------------------------------------

    async def create(self, request: pb.CreateCursorRequest, call: GrpcCall) -> pb.CursorInfo:
        """Make a cursor. Raises: CursorExistsError; and as ``Cursor.open``."""
        stream = await self._stream(request.stream, call)
        cursor = _cursor(stream, request, call, start=get_seek(request.start, EARLIEST))
        if not await cursor.make():
            raise CursorExistsError(f"stream {request.stream} has a cursor named {request.name}", stream=request.stream)
        return await _info(cursor)

    async def get(self, request: pb.GetCursorRequest, call: GrpcCall) -> pb.CursorInfo:
        """What is stored of a cursor. Raises: CursorNotFoundError."""
        stream = await self._stream(request.stream, call)
        return await _info(stream.cursor(request.name))

    async def list(self, request: pb.ListCursorsRequest, call: GrpcCall) -> AsyncIterator[pb.CursorInfo]:
        """All cursors of a stream, by name."""
        stream = await self._stream(request.stream, call)
        for name, state in sorted((await stream.cursors()).items()):
            yield put_cursor(name, state)

    async def get_backlog(self, request: pb.CursorBacklogRequest, call: GrpcCall) -> pb.CursorBacklog:
        """How many records are not done. Raises: as ``Cursor.backlog``."""
        stream = await self._stream(request.stream, call)
        lag = await stream.cursor(request.name).backlog(precise=request.precise)
        return pb.CursorBacklog(records=lag.records, bytes=lag.bytes, seconds=lag.seconds)

    async def history(self, request: pb.CursorHistoryRequest, call: GrpcCall) -> AsyncIterator[pb.CursorVersion]:
        """The versions of a cursor, newest first."""
        stream = await self._stream(request.stream, call)
        for version in await stream.cursor(request.name).history(request.limit or HISTORY):
            yield put_version(version)

    async def delete(self, request: pb.DeleteCursorRequest, call: GrpcCall) -> pb.Empty:
        """Delete a cursor. Raises: CursorNotFoundError, and StreamAccessError: it is somebody else's."""
        stream = await self._stream_now(request.stream)
        await _cursor(stream, request, call).delete(missing_ok=False)
        return pb.Empty()

    # -- owning -------------------------------------------------------------------------------------------

    async def claim(self, request: pb.ClaimCursorRequest, call: GrpcCall) -> pb.CursorInfo:
        """Take a cursor over for a client. Raises: as ``Cursor.open``."""
        stream = await self._stream(request.stream, call)
        start = get_seek(request.start, EARLIEST)
        options: CursorOptions = {"create": not request.must_exist, "owner": request.owner or CLAIMANT}
        cursor = await _cursor(stream, request, call, start=start, **options).open()
        try:
            return put_cursor(request.name, cursor.held, claimed=True)
        finally:
            await cursor.abandon()

    async def release(self, request: pb.ReleaseCursorRequest, call: GrpcCall) -> pb.CursorInfo:
        """Let a cursor go. Raises: CursorConflictError, CursorNotFoundError."""
        stream = await self._stream(request.stream, call)
        cursor = await _resumed(stream, request, call)
        await cursor.close()
        return await _info(cursor)

    # -- moving -------------------------------------------------------------------------------------------

    async def advance(self, request: pb.AdvanceCursorRequest, call: GrpcCall) -> pb.CursorInfo:
        """Note that everything up to a record is done. Raises: CursorConflictError; and as ``Cursor.advance``."""
        expected = get_position(request.expected) if request.HasField("expected") else None
        position = get_position(request.to)
        to: Position | Acknowledgement = position
        if request.HasField("seq_no"):
            if request.seq_no < 0:
                raise PositionFormatError(f"no record has the sequence number {request.seq_no}")
            to = Acknowledgement(Mark(request.seq_no + 1, position.next))
        async with self._moving(request, call) as cursor:
            await cursor.advance(to, expect=expected)
            return put_cursor(request.name, cursor.held)

    async def ack(self, request: pb.AckRequest, call: GrpcCall) -> pb.CursorInfo:
        """Note that single records are done. Raises: as ``Cursor.ack``."""
        done = get_acknowledgements(request.ranges)
        async with self._moving(request, call) as cursor:
            await cursor.ack(*map(get_position, request.positions), *done)
            return put_cursor(request.name, cursor.held)

    async def skip(self, request: pb.SkipCursorRequest, call: GrpcCall) -> pb.CursorInfo:
        """Go some records forward. Raises: as ``Cursor.skip``."""
        async with self._moving(request, call) as cursor:
            await cursor.skip(request.count, count_acked=request.count_acked)
            return put_cursor(request.name, cursor.held)

    async def reset(self, request: pb.ResetCursorRequest, call: GrpcCall) -> pb.CursorInfo:
        """Begin anew at another position. Raises: as ``Cursor.reset``."""
        async with self._changing(request, request.owner, call) as cursor:
            seek = get_seek(request.seek)
            await cursor.reset(seek, force=request.force)
            return await _info(cursor)

    async def restore(self, request: pb.RestoreCursorRequest, call: GrpcCall) -> pb.CursorInfo:
        """Become what an earlier version was. Raises: as ``Cursor.restore``."""
        async with self._changing(request, request.owner, call) as cursor:
            await cursor.restore(request.version, force=request.force)
            return await _info(cursor)

    async def set_properties(self, request: pb.SetPropertiesRequest, call: GrpcCall) -> pb.CursorInfo:
        """Note properties. Raises: as ``Cursor.set_properties``."""
        changes: dict[str, str | None] = {**request.set, **dict.fromkeys(request.remove)}
        async with self._changing(request, UNCLAIMED, call) as cursor:
            await cursor.set_properties(changes, force=request.force)
            return await _info(cursor)

    @asynccontextmanager
    async def _moving(self, request: Any, call: GrpcCall) -> AsyncIterator[Cursor]:
        """The cursor in its owner's name, or taken over and let go again."""
        stream = await self._stream(request.stream, call)
        if request.HasField("claim"):
            cursor = await _resumed(stream, request, call)
            try:
                yield cursor
            finally:
                await cursor.abandon()
            return
        unclaimed = _cursor(stream, request, call, create=False, owner=UNCLAIMED)
        async with await unclaimed.open(if_free=True) as cursor:
            yield cursor

    @asynccontextmanager
    async def _changing(self, request: Any, owner: str, call: GrpcCall) -> AsyncIterator[Cursor]:
        """The cursor in its owner's name, or not opened, so that it takes itself over."""
        stream = await self._stream_now(request.stream)
        if not request.HasField("claim"):
            yield _cursor(stream, request, call, owner=owner or UNCLAIMED)
            return
        cursor = await _resumed(stream, request, call)
        try:
            yield cursor
        finally:
            await cursor.abandon()


def _cursor(
    stream: Stream, request: Any, call: GrpcCall, *, start: Seek = EARLIEST, **options: Unpack[CursorOptions]
) -> Cursor:
    """The cursor that a request names, for its caller: he changes his own, one that is nobody's, and with the right to
    administer any. He needs that for one of which nobody can tell whose it is, too."""
    who, user = "" if call.caller is None else call.caller.name, options.get("owner", "")
    if len(user.encode()) > OWNER_BYTES_MAX or not user.isprintable():
        raise StreamConfigError(
            f"who uses a cursor is told in at most {OWNER_BYTES_MAX} bytes of printable characters; nothing was done"
        )

    def require_owner(owner: str | None) -> None:
        if owner is None or (owner and owner != who):
            call.require(request.stream, OVERRULE)

    return stream.cursor_for(who, require_owner, request.name, start=start, **options)


async def _resumed(stream: Stream, request: Any, call: GrpcCall) -> Cursor:
    """The cursor, for the owner that shows this claim. Raises: CursorConflictError, CursorNotFoundError."""
    claim = request.claim
    ranges_max = min(claim.ranges_max if claim.ranges_max > 0 else RANGES_MAX, RANGES_MAX)
    return await _cursor(stream, request, call, ranges_max=ranges_max).resume(claim.epoch, claim.nonce)


async def _info(cursor: Cursor) -> pb.CursorInfo:
    return put_cursor(cursor.name, await cursor.state())
