"""A cursor behind gateways, with the library's interface. Whoever opens it owns it, by an epoch, whichever gateway its
calls go to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Self, Unpack

from bookkeeper.client.tasks import Tasks
from segments.cursors.cursor import Acked, acknowledgements
from segments.cursors.cursor_front import CursorFront, CursorOptions
from segments.cursors.cursor_state import UNSAVED_PER_RANGE, Acknowledgement, CursorState, CursorVersion
from segments.errors import CursorExistsError, CursorFullError, CursorNotFoundError, StreamError
from segments.names import check_short_name
from segments.position import EARLIEST, Position
from segments.protocol import segments_pb2 as pb
from segments.protocol.cursor_messages import get_cursor, get_version, put_acknowledgements
from segments.protocol.messages import put_position, put_seek
from segments.read import Lag, OnGap, RecordBatch
from segments.record import StoredRecord
from segments.remote.gateway_channels import GatewayChannels
from segments.remote.remote_reader import RemoteReader
from segments.seek import AtCursor, Seek


class RemoteCursor(CursorFront):
    """A cursor of a stream behind gateways."""

    def __init__(
        self,
        channels: GatewayChannels,
        stream: str,
        name: str,
        *,
        start: Seek = EARLIEST,
        **options: Unpack[CursorOptions],
    ) -> None:
        super().__init__(stream, check_short_name(name, "cursor"), start=start, **options)
        self._channels = channels
        self._claim: pb.CursorClaim | None = None
        self._moving = asyncio.Lock()
        self._later: list[Acknowledgement] = []
        """Records that are done, and that nobody waits for."""
        self._places: list[Position] = []
        """The same, of which only the positions are known."""
        self._failed: StreamError | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._tasks = Tasks(f"cursor {name} of stream {stream}")

    # -- looking -----------------------------------------------------------------------------------------

    async def state(self) -> CursorState:
        """What is stored of the cursor, without its history. Raises: CursorNotFoundError, StreamNotFoundError,
        StreamUnavailableError."""
        return get_cursor(await self._channels.call("Cursors.Get", pb.GetCursorRequest(**self._named)))

    async def history(self, limit: int = 20) -> list[CursorVersion]:
        """The present version and earlier ones, newest first. Raises: as state."""
        request = pb.CursorHistoryRequest(limit=limit, **self._named)
        return [get_version(each) async for each in self._channels.stream("Cursors.History", request)]

    async def backlog(self, *, precise: bool = False) -> Lag:
        """How many records are not done, and about how many bytes; with ``precise`` also how old the first of them is.
        Raises: as state."""
        request = pb.CursorBacklogRequest(precise=precise, **self._named)
        found = await self._channels.call("Cursors.GetBacklog", request)
        return Lag(found.records, found.bytes, found.seconds if found.HasField("seconds") else None)

    # -- taking over -------------------------------------------------------------------------------------

    async def make(self) -> bool:
        """Make the cursor if it is missing, without taking it over. False: there is one already, perhaps of a call of
        this one whose answer was lost.

        Raises: StreamNotFoundError, StreamUnavailableError, PositionTruncatedError.
        """
        request = pb.CreateCursorRequest(start=put_seek(self._start), **self._named)
        try:
            await self._channels.call("Cursors.Create", request)
        except CursorExistsError:
            return False
        return True

    async def open(self) -> Self:
        """Make the cursor if it is missing, and take it over. ``async with`` does this.

        Raises:
            CursorNotFoundError: it is missing, and ``create`` is off. StreamCorruptError: its record is damaged;
            ``reset(..., force=True)`` begins anew. GatewayTooOldError, StreamNotFoundError, StreamUnavailableError.
        """
        if self._claim is None:
            request = pb.ClaimCursorRequest(
                start=put_seek(self._start), must_exist=not self._create, owner=self._owner_name, **self._named
            )
            claim = (await self._channels.call("Cursors.Claim", request)).claim
            claim.ranges_max = self._ranges_max
            self._claim = claim
        return self

    # -- reading and acknowledging -----------------------------------------------------------------------

    def read(self, *, stop: Seek | None = None, follow: bool = False, on_gap: OnGap = "raise") -> RemoteReader:
        """A reader of what is not done, from the cursor's place on. What is acknowledged while it reads is not passed
        over, unless it has to go on at another gateway. Records that were truncated before they were done are a gap.

        Raises: StreamClosedError: the cursor is not open.
        """
        self._held()
        place = AtCursor(self.name)
        return RemoteReader(
            self._channels, self._stream, place, stop=stop, follow=follow, on_gap=on_gap, undone_by=self.name
        )

    async def advance(self, to: Acked, *, expect: Position | None = None) -> CursorVersion:
        """Note that everything up to ``to`` is done, and wait until that is stored. It never moves back.

        With ``expect`` the cursor must be at this position.

        Raises:
            CursorConflictError: another owner has it, or it is not where it was expected. And as state.
        """
        seq_no, position = _last_of(to)
        request = pb.AdvanceCursorRequest(
            to=put_position(position),
            seq_no=seq_no,
            expected=None if expect is None else put_position(expect),
            claim=self._held(),
            **self._named,
        )
        return (await self._move("Cursors.Advance", request, repeat=expect is None)).version

    async def ack(self, *records: Acked) -> None:
        """Note that these records are done, and wait until that is stored. Others before them may not be.

        Raises:
            CursorFullError: there would be too many ranges of records that are done, with others in between. Nothing is
            dropped: acknowledge those first. CursorConflictError: another owner has it. And as state.
        """
        await self._ack(*_sorted_out(records))

    async def ack_later(self, *records: Acked) -> None:
        """Note that these records are done; that is stored within a second, or with the next ``flush()``, which tells
        whether it was.

        Raises: CursorFullError: too many wait.
        """
        self._held()
        changes, places = _sorted_out(records)
        limit = UNSAVED_PER_RANGE * self._ranges_max
        if len(self._later) + len(self._places) + len(changes) + len(places) > limit:
            raise CursorFullError(
                f"more than {limit} acknowledgements of cursor {self.name} of stream {self._stream} wait to be stored: "
                "flush() tells why",
                stream=self._stream,
            )
        self._later += changes
        self._places += places
        self._save_soon()

    async def flush(self) -> None:
        """Wait until everything that was acknowledged is stored. Raises: as ack."""
        self._held()
        async with self._moving:
            pass  # what is on its way may come back
        await self._save_now()
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed

    async def skip(self, count: int, *, count_acked: bool = False) -> Position:
        """Go ``count`` records forward; records that are done count only with ``count_acked``. Not beyond the end.
        Returns the new position. Raises: as advance."""
        self._held()
        await self.flush()
        request = pb.SkipCursorRequest(count=count, count_acked=count_acked, claim=self._held(), **self._named)
        return (await self._move("Cursors.Skip", request, repeat=False)).mark.position

    # -- moving ------------------------------------------------------------------------------------------

    async def reset(self, seek: Seek, *, force: bool = False) -> Position:
        """Begin anew at another place, also an earlier one. The history keeps where the cursor was.

        A cursor that is not open here is taken over, changed and let go. If another owner has it that needs ``force``,
        which also makes a new cursor of one whose record is damaged.

        Raises: CursorConflictError: another owner has it; and as state.
        """
        request = pb.ResetCursorRequest(
            seek=put_seek(seek), force=force, claim=self._claim, owner=self._owner_name, **self._named
        )
        return (await self._move("Cursors.Reset", request)).mark.position

    async def restore(self, version: CursorVersion | int, *, force: bool = False) -> Position:
        """Become what an earlier version was. Raises: as reset; CursorVersionError: the history does not have it."""
        number = version if isinstance(version, int) else version.number
        request = pb.RestoreCursorRequest(
            version=number, force=force, claim=self._claim, owner=self._owner_name, **self._named
        )
        return (await self._move("Cursors.Restore", request)).mark.position

    async def set_properties(self, changes: Mapping[str, str | None], *, force: bool = False) -> Mapping[str, str]:
        """Note properties; None removes one. Raises: as reset; CursorFullError: they are too large."""
        request = pb.SetPropertiesRequest(
            set={name: value for name, value in changes.items() if value is not None},
            remove=[name for name, value in changes.items() if value is None],
            force=force,
            claim=self._claim,
            **self._named,
        )
        return (await self._move("Cursors.SetProperties", request)).properties

    async def delete(self, *, missing_ok: bool = True) -> None:
        """Delete the cursor. Raises: CursorNotFoundError: there is none, and ``missing_ok`` is off; and as state."""
        await self.abandon()
        request = pb.DeleteCursorRequest(**self._named)
        if not missing_ok:
            await self._channels.call("Cursors.Delete", request, repeat=False)
            return

        async def current() -> CursorState | None:
            try:
                return await self.state()
            except CursorNotFoundError:
                return None

        with suppress(CursorNotFoundError):
            await self._channels.remove("Cursors.Delete", request, current, _may_be_same)

    # -- the end -----------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Store what is acknowledged, and let go of the cursor. Idempotent. Raises: as flush."""
        if self._claim is None:
            return
        try:
            await self.flush()
            await self._move("Cursors.Release", pb.ReleaseCursorRequest(claim=self._claim, **self._named))
        finally:
            await self.abandon()

    async def abandon(self) -> None:
        """Let go of the cursor without storing anything more. Idempotent."""
        self._claim = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._later, self._places = [], []
        await self._tasks.close()

    # -- inside ------------------------------------------------------------------------------------------

    @property
    def _named(self) -> dict[str, Any]:
        return {"stream": self._stream, "name": self.name}

    def _held(self) -> pb.CursorClaim:
        if self._claim is None:
            raise self._not_open()
        return self._claim

    async def _move(self, key: str, request: Any, *, repeat: bool = True) -> CursorState:
        """One move at a time: they take effect in the order in which they were asked for."""
        async with self._moving:
            return get_cursor(await self._channels.call(key, request, repeat=repeat))

    async def _ack(self, changes: list[Acknowledgement], places: list[Position]) -> None:
        request = pb.AckRequest(
            positions=map(put_position, places), ranges=put_acknowledgements(changes), claim=self._held(), **self._named
        )
        await self._move("Cursors.Ack", request)

    def _save_soon(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._save_every_s, self._save)

    def _save(self) -> None:
        self._timer = None
        self._tasks.start(self._save_now(), "save")

    async def _save_now(self) -> None:
        """Store what nobody waits for. What cannot be stored now, and may be later, stays."""
        changes, places = self._later, self._places
        self._later, self._places = [], []
        if not changes and not places:
            return
        try:
            await self._ack(changes, places)
            self._failed = None
        except StreamError as error:
            self._failed = error
            if error.retryable or isinstance(error, CursorFullError):
                self._later, self._places = changes + self._later, places + self._places
            if error.retryable and self._claim is not None:
                self._save_soon()


def _may_be_same(before: CursorState, now: CursorState) -> bool:
    """Whether a cursor may have become this one. Versions, owners and times never go back in the life of one."""
    if now.version.number == before.version.number:
        return (now.version, now.epoch >= before.epoch) == (before.version, True)
    return now.version.number > before.version.number and now.epoch >= before.epoch


def _sorted_out(records: tuple[Acked, ...]) -> tuple[list[Acknowledgement], list[Position]]:
    """What is done by its numbers, and what by its positions alone."""
    changes: list[Acknowledgement] = []
    places: list[Position] = []
    for each in records:
        if isinstance(each, Position):
            places.append(each)
        elif isinstance(each, Acknowledgement):
            changes.append(each)
        else:
            changes += acknowledgements(each)
    return changes, places


def _last_of(to: Acked) -> tuple[int | None, Position]:
    """The number of the last record, if it is known, and its position."""
    if isinstance(to, StoredRecord):
        return to.seq_no, to.position
    if isinstance(to, RecordBatch):
        return to.end_seq_no - 1, to.last
    if isinstance(to, Acknowledgement):
        after = to.mark.position
        return to.mark.seq_no - 1, Position(after.segment, after.entry, after.slot - 1)
    return None, to
