"""The service Cursors. Each call that moves a cursor takes it over, moves it, and lets it go.

So a cursor that a program holds open is not moved through the gateway, and the gateway's clients are kept apart by the
position, or the version, that they expect.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Final

from segments.cursors import Cursor
from segments.errors import CursorConflictError, CursorExistsError, CursorNotFoundError
from segments.gateway.call_guard import Behaviour, GrpcCall
from segments.gateway.served_streams import ServedStreams
from segments.position import EARLIEST
from segments.rpc import segments_pb2 as pb
from segments.rpc.messages import get_position, get_seek, put_position
from segments.stream import Stream

HISTORY: Final = 20
"""How many versions are told if the call does not say."""

OWNER: Final = "a client of a gateway"
"""The owner's name in cursors that were moved through gateways; each call takes them over from the one before."""


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
            "Cursors.Advance": self.advance,
            "Cursors.Ack": self.ack,
            "Cursors.Reset": self.reset,
            "Cursors.History": self.history,
            "Cursors.Delete": self.delete,
        }

    async def _stream(self, name: str, call: GrpcCall) -> Stream:
        call.require(name)
        return (await self._table.get(name)).stream

    async def create(self, request: pb.CreateCursorRequest, call: GrpcCall) -> pb.CursorInfo:
        """Make a cursor. Raises: CursorExistsError; and as ``Cursor.open``."""
        stream = await self._stream(request.stream, call)
        if request.name in await stream.cursors():
            raise CursorExistsError(f"stream {request.stream} has a cursor named {request.name}", stream=request.stream)
        async with stream.cursor(request.name, start=get_seek(request.start, EARLIEST)) as cursor:
            return await _info(cursor)

    async def get(self, request: pb.GetCursorRequest, call: GrpcCall) -> pb.CursorInfo:
        """Where a cursor stands. Raises: CursorNotFoundError."""
        stream = await self._stream(request.stream, call)
        return await _info(stream.cursor(request.name))

    async def list(self, request: pb.ListCursorsRequest, call: GrpcCall) -> AsyncIterator[pb.CursorInfo]:
        """All cursors of a stream, by name."""
        stream = await self._stream(request.stream, call)
        for name, state in sorted((await stream.cursors()).items()):
            yield pb.CursorInfo(name=name, position=put_position(state.mark.position), version=state.version.number)

    async def advance(self, request: pb.AdvanceCursorRequest, call: GrpcCall) -> pb.CursorInfo:
        """Note that everything up to a record is done. Raises: CursorConflictError; and as ``Cursor.advance``."""
        cursor = await self._free_cursor(request.stream, request.name, call)
        expected = get_position(request.expected) if request.HasField("expected") else None
        async with cursor:
            await cursor.advance(get_position(request.to), expect=expected)
            return await _info(cursor)

    async def ack(self, request: pb.AckRequest, call: GrpcCall) -> pb.CursorInfo:
        """Note that single records are done. Raises: as ``Cursor.ack``."""
        cursor = await self._free_cursor(request.stream, request.name, call)
        async with cursor:
            await cursor.ack(*map(get_position, request.positions))
            return await _info(cursor)

    async def reset(self, request: pb.ResetCursorRequest, call: GrpcCall) -> pb.CursorInfo:
        """Begin anew at another place. Raises: as ``Cursor.reset``."""
        stream = await self._stream(request.stream, call)
        state = (await stream.cursors()).get(request.name) if not request.force else None
        ours = state is not None and state.owner == OWNER  # left by a call that failed
        cursor = stream.cursor(request.name, owner=OWNER)
        await cursor.reset(get_seek(request.seek), force=request.force or ours)
        return await _info(cursor)

    async def history(self, request: pb.CursorHistoryRequest, call: GrpcCall) -> AsyncIterator[pb.CursorVersion]:
        """The versions of a cursor, newest first."""
        stream = await self._stream(request.stream, call)
        for version in await stream.cursor(request.name).history(request.limit or HISTORY):
            yield pb.CursorVersion(
                version=version.number, position=put_position(version.mark.position), time_ms=version.changed_ms
            )

    async def delete(self, request: pb.DeleteCursorRequest, call: GrpcCall) -> pb.Empty:
        """Delete a cursor. Raises: CursorNotFoundError."""
        stream = await self._stream(request.stream, call)
        await stream.cursor(request.name).delete(missing_ok=False)
        return pb.Empty()

    async def _free_cursor(self, name: str, cursor: str, call: GrpcCall) -> Cursor:
        """A cursor that nobody holds open, not opened yet."""
        stream = await self._stream(name, call)
        state = (await stream.cursors()).get(cursor)
        if state is None:
            raise CursorNotFoundError(f"stream {name} has no cursor named {cursor}", stream=name)
        if state.owner not in ("", OWNER):
            raise CursorConflictError(
                f"cursor {cursor} of stream {name} is in use by {state.owner}: try again when it is free",
                stream=name,
                owner=state.owner,
            )
        return stream.cursor(cursor, create=False, owner=OWNER)


async def _info(cursor: Cursor) -> pb.CursorInfo:
    state = await cursor.state()
    return pb.CursorInfo(name=cursor.name, position=put_position(state.mark.position), version=state.version.number)
