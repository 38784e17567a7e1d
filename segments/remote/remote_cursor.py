"""A cursor behind gateways. Each call that moves it takes it over at the gateway, moves it, and lets it go.

So nobody owns it here: two programs that move one cursor are kept apart by the position that they expect.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeAlias

from segments.errors import CursorExistsError, CursorNotFoundError
from segments.names import check_short_name
from segments.position import EARLIEST, Position
from segments.record import StoredRecord
from segments.remote.gateway_channels import GatewayChannels
from segments.remote.remote_reader import OnGap, RemoteReader
from segments.rpc import segments_pb2 as pb
from segments.rpc.messages import get_position, put_position, put_seek
from segments.seek import AtCursor, Seek

Done: TypeAlias = StoredRecord | Position
"""A record that is done, or its position."""


@dataclass(frozen=True, slots=True)
class RemoteCursorState:
    """Where a cursor stands, or stood."""

    position: Position
    """Reading goes on here: everything before is done."""
    version: int
    """Counts the changes of the cursor."""
    changed_ms: int | None = None
    """When it came there, in milliseconds since 1970; known of versions in its history."""


class RemoteCursor:
    """A place in a stream behind gateways: ``async with stream.cursor("billing") as cursor``."""

    def __init__(
        self, channels: GatewayChannels, stream: str, name: str, *, start: Seek = EARLIEST, create: bool = True
    ) -> None:
        self.name = check_short_name(name, "cursor")
        self._channels, self._stream = channels, stream
        self._start, self._create = start, create

    def __repr__(self) -> str:
        return f"<RemoteCursor {self.name} of stream {self._stream}>"

    async def open(self) -> Self:
        """Make the cursor if it is missing. ``async with`` does this.

        Raises:
            CursorNotFoundError: it is missing, and ``create`` is off. StreamNotFoundError, StreamUnavailableError.
        """
        try:
            await self.state()
        except CursorNotFoundError:
            if not self._create:
                raise
            request = pb.CreateCursorRequest(stream=self._stream, name=self.name, start=put_seek(self._start))
            try:
                await self._channels.call("Cursors.Create", request)
            except CursorExistsError:
                pass  # somebody was faster, or an earlier attempt was
        return self

    # -- what it says ------------------------------------------------------------------------------------

    async def state(self) -> RemoteCursorState:
        """Where it stands. Raises: CursorNotFoundError, StreamNotFoundError, StreamUnavailableError."""
        request = pb.GetCursorRequest(stream=self._stream, name=self.name)
        return get_cursor(await self._channels.call("Cursors.Get", request))

    async def position(self) -> Position:
        """Where reading goes on: everything before is done. Raises: as state."""
        return (await self.state()).position

    async def history(self, limit: int = 20) -> list[RemoteCursorState]:
        """The present version and earlier ones, newest first. Raises: as state."""
        request = pb.CursorHistoryRequest(stream=self._stream, name=self.name, limit=limit)
        return [
            RemoteCursorState(get_position(each.position), each.version, each.time_ms)
            async for each in self._channels.stream("Cursors.History", request)
        ]

    # -- reading and acknowledging -----------------------------------------------------------------------

    def read(self, *, stop: Seek | None = None, follow: bool = False, on_gap: OnGap = "raise") -> RemoteReader:
        """A reader from the cursor's place on. Single records behind it that are done already come again."""
        place = AtCursor(self.name)
        return RemoteReader(self._channels, self._stream, place, stop=stop, follow=follow, on_gap=on_gap)

    async def advance(self, to: Done, *, expect: Position | None = None) -> RemoteCursorState:
        """Note that everything up to ``to`` is done, and wait until that is stored. It never moves back.

        With ``expect`` the cursor must be at this position.

        Raises:
            CursorConflictError: somebody holds it open, or it is not where it was expected. And as state.
        """
        request = pb.AdvanceCursorRequest(
            stream=self._stream,
            name=self.name,
            to=put_position(_position(to)),
            expected=None if expect is None else put_position(expect),
        )
        return get_cursor(await self._channels.call("Cursors.Advance", request, repeat=expect is None))

    async def ack(self, *records: Done) -> None:
        """Note that these records are done, and wait until that is stored. Others before them may not be.

        Raises:
            CursorFullError: there would be too many ranges of records that are done, with others in between.
            CursorConflictError: somebody holds it open. And as state.
        """
        positions = [put_position(_position(each)) for each in records]
        request = pb.AckRequest(stream=self._stream, name=self.name, positions=positions)
        await self._channels.call("Cursors.Ack", request)

    # -- moving ------------------------------------------------------------------------------------------

    async def reset(self, seek: Seek, *, force: bool = False) -> Position:
        """Begin anew at another place, also an earlier one. If somebody holds it open that needs ``force``.

        Raises: CursorConflictError; and as state.
        """
        request = pb.ResetCursorRequest(stream=self._stream, name=self.name, seek=put_seek(seek), force=force)
        return get_cursor(await self._channels.call("Cursors.Reset", request)).position

    async def delete(self, *, missing_ok: bool = True) -> None:
        """Delete the cursor. Raises: CursorNotFoundError: there is none, and ``missing_ok`` is off; and as state."""
        try:
            request = pb.DeleteCursorRequest(stream=self._stream, name=self.name)
            await self._channels.call("Cursors.Delete", request, repeat=missing_ok)
        except CursorNotFoundError:
            if not missing_ok:
                raise

    # -- the end -----------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Nothing is held open: what was acknowledged is stored."""

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def get_cursor(message: Any) -> RemoteCursorState:
    """The state in a message."""
    return RemoteCursorState(get_position(message.position), message.version)


def _position(done: Done) -> Position:
    return done.position if isinstance(done, StoredRecord) else done
