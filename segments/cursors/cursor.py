"""A position in a stream that outlives its readers: what is done, kept by name in the metadata store."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, Self, TypeAlias, Unpack

from bookkeeper.errors import BookKeeperError, MetadataConflictError
from segments.cursors.acked_ranges import Mark, nth_undone, undone
from segments.cursors.cursor_front import CursorFront, CursorOptions
from segments.cursors.cursor_node import CursorNode, MayMove
from segments.cursors.cursor_owner import CursorOwner
from segments.cursors.cursor_state import Acknowledgement, CursorState, CursorVersion
from segments.error_translation import stream_error
from segments.errors import CursorConflictError, PositionFormatError, StreamCorruptError
from segments.position import EARLIEST, LATEST, Position
from segments.read import Lag, Reader, RecordBatch, StreamReading
from segments.read.options import Parts, ReaderOptions
from segments.record import StoredRecord
from segments.seek import AtCursor, AtSeqNo, Seek

if TYPE_CHECKING:
    from segments.chain import StreamHead

Acked: TypeAlias = StoredRecord | RecordBatch | Position | Acknowledgement
"""What can be acknowledged: a record, a batch, the position of a record, or the numbers of records that someone read
elsewhere."""

PLACES_MAX: Final = 4096
"""Of so many entries a cursor remembers the number of their first record, to acknowledge positions in them."""

_claims = itertools.count(1)


class Cursor(CursorFront):
    """A cursor of a stream of this process's cluster."""

    def __init__(
        self,
        reading: StreamReading,
        node: StreamHead,
        name: str,
        *,
        start: Seek = EARLIEST,
        by: str = "",
        may_move: MayMove | None = None,
        **options: Unpack[CursorOptions],
    ) -> None:
        """``by``: whose it is if it is made. ``may_move``: is asked before it is taken over, moved or deleted."""
        super().__init__(node.name, name, start=start, **options)
        self._reading = reading
        self._client = reading.source.client
        self._node = CursorNode(self._client.metadata_store, node.stream_id, node.name, name)
        self._by, self._may_move = by, may_move
        self._owner: CursorOwner | None = None
        self._resetting = False
        self._numbers: dict[tuple[int, int], tuple[int, int]] = {}
        """Of entries: the number of the first record, and how many there are."""

    @property
    def reading(self) -> StreamReading:
        """What reads the cursor's stream."""
        return self._reading

    @property
    def path(self) -> str:
        """Where the metadata store keeps the cursor."""
        return self._node.path

    @property
    def refused(self) -> int:
        """Acknowledgements that were refused since the cursor was opened, because there would be too many ranges."""
        return self._owner.refused if self._owner is not None else 0

    @property
    def held(self) -> CursorState:
        """The cursor as its owner here has it. Raises: StreamClosedError: it is not open."""
        return self._held().state

    # -- looking ------------------------------------------------------------------------------------------

    async def state(self) -> CursorState:
        """Everything that is stored of the cursor. Raises: CursorNotFoundError, StreamCorruptError,
        StreamMetadataError."""
        try:
            return (await self._node.read())[0]
        except BookKeeperError as error:
            raise stream_error(error, f"reading cursor {self.name} of stream {self._stream}", self._stream) from error

    async def history(self, limit: int = 20) -> list[CursorVersion]:
        """The present version and earlier ones, newest first. Of versions in quick succession one is kept. Raises: as
        state."""
        state = await self.state()
        return [state.version, *reversed(state.history)][:limit]

    async def backlog(self, *, precise: bool = False) -> Lag:
        """How many records are not done, and about how many bytes; with ``precise`` also how old the first of them is.

        Raises: as state, StreamUnavailableError.
        """
        state = await self.state()
        locator = self._reading.locator
        chain = await self._reading.source.chain.current(fresh=True)
        end = await locator.end(chain)
        beginning = chain.begin_seq_no
        if beginning is None or (precise and chain.first_position > state.mark.position):
            beginning = await locator.seq_no(chain.first_position)
        parts = undone(state.mark, state.ranges, beginning, max(beginning, end.seq_no))
        records = sum(b - a for a, b in parts)
        density = chain.listed_bytes / chain.listed_records if chain.listed_records else 0.0
        seconds: float | None = None if parts else 0.0
        if precise and parts:
            async with self._reading.read(AtSeqNo(parts[0][0]), on_gap="skip") as reader:
                first = await reader.next()
            if isinstance(first, StoredRecord):
                seconds = max(0, self._reading.source.now_ms() - first.append_ms) / 1000
        return Lag(records, int(records * density), seconds)

    # -- taking over --------------------------------------------------------------------------------------

    async def open(self, *, if_free: bool = False) -> Self:
        """Make the cursor if it is missing, and take it over. ``async with`` does this. With ``if_free`` nobody is
        overtaken.

        Raises:
            CursorNotFoundError: it is missing, and ``create`` is off. StreamCorruptError: its node is damaged;
            ``reset(..., force=True)`` begins anew. StreamMetadataError.
            CursorConflictError: with ``if_free``, somebody has it.
        """
        if self._owner is None:
            if self._create:
                await self.make()
            self._owner = await self._claim(self._require_free if if_free else None)
            if self._owner.state.mark.position == LATEST:
                await self._leave_latest(self._owner)
        return self

    async def _leave_latest(self, owner: CursorOwner) -> None:
        """Earlier versions put a cursor at LATEST, when that was asked for, and it stayed at the end for ever. Its
        number says where the end was then."""
        number = owner.state.mark.seq_no
        mark = Mark(number, await self._reading.locator.find(AtSeqNo(number)))
        await owner.change(lambda state: state.reset(mark, self._now_ms()) if state.mark.position == LATEST else state)

    async def resume(self, epoch: int, nonce: str) -> Self:
        """Go on as the owner that claimed ``epoch``, for which several processes may act at a time. Letting go of it
        is not theirs: use ``abandon()`` at the end, or ``close()`` in the owner's name.

        Raises:
            CursorConflictError: another owner has the cursor. CursorNotFoundError, StreamCorruptError,
            StreamMetadataError.
        """
        owner = await CursorOwner.resume(
            self._node, epoch, nonce, self._now_ms, ranges_max=self._ranges_max, save_every_s=self._save_every_s
        )
        if self._may_move is not None:
            self._may_move(owner.state.by)
        self._owner = owner
        return self

    async def make(self) -> bool:
        """Make the cursor if it is missing, without taking it over. False: there is one already.

        Raises: StreamMetadataError, StreamUnavailableError, PositionTruncatedError.
        """
        try:
            while await self._node.store.exists(self._node.path) is None:
                mark = await self._find(self._start)
                made = CursorState.create(mark, self._now_ms(), self._nonce(), self._by)
                if not await self._node.create(made):
                    return False
                if await self._is_retained(mark):
                    return True
                await self._node.take_back(made)
        except BookKeeperError as error:
            raise stream_error(error, f"making cursor {self.name} of stream {self._stream}", self._stream) from error
        return False

    async def _is_retained(self, mark: Mark) -> bool:
        """Nothing of what is needed from ``mark`` on was removed before the cursor could keep it."""
        return not (await self._reading.source.chain.current(fresh=True)).has_hidden(mark.position, mark.seq_no)

    def _nonce(self) -> str:
        return f"{self._client.services.seams.rng.getrandbits(64):016x}-{next(_claims)}"

    def _require_free(self, state: CursorState) -> None:
        if not state.is_free:
            raise CursorConflictError(
                f"cursor {self.name} of stream {self._stream} is in use by {state.owner}: try again when it is free, "
                "or take it over by force",
                stream=self._stream,
                owner=state.owner,
            )

    async def _claim(self, check: Callable[[CursorState], None] | None = None) -> CursorOwner:
        may_move = self._may_move

        def checked(state: CursorState) -> None:
            if may_move is not None:
                may_move(state.by)
            if check is not None:
                check(state)

        owned = await CursorOwner.claim(self._node, self._owner_name, self._nonce(), checked)
        return CursorOwner(
            self._node, owned, self._now_ms, ranges_max=self._ranges_max, save_every_s=self._save_every_s
        )

    # -- reading and acknowledging ------------------------------------------------------------------------

    def read(self, **options: Unpack[ReaderOptions]) -> Reader:
        """A reader of what is not done, from the cursor's position on. It also hands out what is acknowledged
        meanwhile. Options as for ``Stream.read``. Records that were truncated before they were done are a gap.

        Raises: StreamClosedError: the cursor is not open.
        """
        self._held()
        return self._reading.read(AtCursor(self.name), parts=self._undone_now, **options)

    def _undone_now(self) -> Parts:
        state = self._held().state
        return partial(undone, state.mark, state.ranges)

    async def advance(self, to: Acked, *, expect: Position | None = None) -> CursorVersion:
        """Note that everything up to ``to`` is done, and wait until that is stored. It never moves back. LATEST is the
        last record that there is now.

        With ``expect`` the cursor must be at this position.

        Raises:
            PositionFormatError: ``to`` is beyond the end of the stream.
            CursorConflictError: another owner has it, or it is not where it was expected. StreamMetadataError.
        """
        owner = self._held()
        mark = await self._behind(to)
        if expect is None:
            await owner.acknowledge([Acknowledgement(mark)])
            return owner.state.version

        def step(state: CursorState) -> CursorState:
            if state.mark.position != expect:
                raise CursorConflictError(
                    f"cursor {self.name} of stream {self._stream} is at {state.mark.position}, not at {expect}",
                    stream=self._stream,
                    position=state.mark.position,
                )
            return state.acknowledge([Acknowledgement(mark)], self._now_ms(), limit=self._ranges_max)[0]

        return (await owner.change(step)).version

    async def ack(self, *records: Acked) -> None:
        """Note that these records are done, and wait until that is stored. Others before them may not be.

        Raises:
            CursorFullError: there would be too many ranges of records that are done, with others in between. Nothing is
            dropped: acknowledge those first. CursorConflictError, StreamMetadataError.
        """
        owner = self._held()
        await owner.acknowledge([change for each in records for change in await self._changes(each)])

    async def ack_later(self, *records: Acked) -> None:
        """Note that these records are done; that is stored within a second, or with the next change that is waited for.
        ``flush()`` tells whether it was.

        Raises: CursorFullError.
        """
        self._held().acknowledge_later([change for each in records for change in await self._changes(each)])

    async def flush(self) -> None:
        """Wait until everything that was acknowledged is stored. Raises: as ack."""
        await self._held().flush()

    async def skip(self, count: int, *, count_acked: bool = False) -> Position:
        """Go ``count`` records forward; records that are done count only with ``count_acked``. Not beyond the end.
        Returns the new position. Raises: as advance."""
        owner = self._held()
        await owner.flush()
        target = nth_undone(owner.state.mark, owner.state.ranges, count, count_done=count_acked)
        end = await self._reading.locator.end()
        mark = await self._find(AtSeqNo(target)) if target < end.seq_no else Mark(end.seq_no, end.position)
        await owner.acknowledge([Acknowledgement(mark)])
        return owner.state.mark.position

    # -- moving -------------------------------------------------------------------------------------------

    async def reset(self, seek: Seek, *, force: bool = False) -> Position:
        """Begin anew at another position, also an earlier one. The history keeps where the cursor was.

        A cursor that is not open here is taken over, changed and let go. If another owner has it that needs ``force``,
        which also makes a new cursor of one whose node is damaged.

        Raises:
            CursorConflictError: another owner has it, or another reset runs. CursorNotFoundError, StreamCorruptError,
            StreamMetadataError, PositionTruncatedError. PositionFormatError: ``seek`` is beyond the end of the stream.
        """
        if self._resetting:
            raise CursorConflictError(
                f"cursor {self.name} of stream {self._stream} is being reset", stream=self._stream
            )
        self._resetting = True
        try:
            while True:
                mark = await self._find(seek)
                await self._change(partial(CursorState.reset, mark=mark, now_ms=self._now_ms()), force=force, mark=mark)
                if await self._is_retained(mark):
                    return mark.position
        finally:
            self._resetting = False

    async def restore(self, version: CursorVersion | int, *, force: bool = False) -> Position:
        """Become what an earlier version was. Raises: as reset; CursorVersionError: the history does not have it."""
        number = version if isinstance(version, int) else version.number
        state = await self._change(lambda state: state.restore(number, self._now_ms()), force=force)
        return state.mark.position

    async def set_properties(self, changes: Mapping[str, str | None], *, force: bool = False) -> Mapping[str, str]:
        """Note properties; None removes one. Raises: as reset; CursorFullError: they are too large."""
        return (await self._change(lambda state: state.with_properties(changes), force=force)).properties

    async def delete(self, *, missing_ok: bool = True) -> None:
        """Delete the cursor. Raises: CursorNotFoundError: there is none, and ``missing_ok`` is off.
        StreamMetadataError."""
        await self.abandon()
        try:
            gone = await self._node.delete(self._may_move)
        except BookKeeperError as error:
            raise stream_error(error, f"deleting cursor {self.name} of stream {self._stream}", self._stream) from error
        if not gone and not missing_ok:
            await self._node.read()

    async def _change(
        self, step: Callable[[CursorState], CursorState], *, force: bool, mark: Mark | None = None
    ) -> CursorState:
        if self._owner is not None:
            return await self._owner.change(step)
        try:
            owner = await self._claim(None if force else self._require_free)
        except StreamCorruptError:
            if mark is None or not force:
                raise
            if self._may_move is not None:
                self._may_move(None)
            try:
                await self._node.overwrite(CursorState.create(mark, self._now_ms(), self._nonce(), self._by))
            except MetadataConflictError as error:
                raise CursorConflictError(
                    f"cursor {self.name} of stream {self._stream} was replaced by someone else meanwhile: try again",
                    stream=self._stream,
                ) from error
            except BookKeeperError as error:
                raise stream_error(error, f"replacing cursor {self.name}", self._stream) from error
            return await self.state()
        try:
            return await owner.change(lambda state: step(state).release())
        finally:
            await owner.abandon()

    # -- the end ------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Store what is acknowledged, and let go of the cursor. Idempotent. Raises: as flush."""
        owner, self._owner = self._owner, None
        if owner is not None:
            await owner.close()

    async def abandon(self) -> None:
        """Let go of the cursor without storing anything more. Idempotent."""
        owner, self._owner = self._owner, None
        if owner is not None:
            await owner.abandon()

    # -- inside -------------------------------------------------------------------------------------------

    def _held(self) -> CursorOwner:
        if self._owner is None:
            raise self._not_open()
        if self._resetting:
            raise CursorConflictError(
                f"cursor {self.name} of stream {self._stream} is being reset", stream=self._stream
            )
        return self._owner

    def _now_ms(self) -> int:
        return self._reading.source.now_ms()

    async def _find(self, seek: Seek) -> Mark:
        position = await self._reading.locator.find(seek)
        mark = Mark(await self._reading.locator.seq_no(position), position)
        return await self._within(mark) if isinstance(seek, Position) else mark

    async def _within(self, mark: Mark) -> Mark:
        """A mark that somebody has named, LATEST being the end as it is now: what is appended later is behind it.

        Raises:
            PositionFormatError: it is beyond the end: records that come before it would count as done.
        """
        chain = await self._reading.source.chain.current(fresh=True)
        end = await self._reading.locator.end(chain)
        next_segment = chain.open_segment is None and mark.position <= Position(end.position.segment + 1, 0, 0)
        if mark.position == LATEST or (next_segment and mark.position > end.position):
            return Mark(end.seq_no, end.position)
        if mark.position > end.position:
            text = (
                f"position {mark.position} is beyond the end of stream {self._stream}, which is {end.position}: what "
                "is appended before it would never be read; LATEST is the end"
            )
            raise PositionFormatError(text, stream=self._stream)
        return mark

    async def _behind(self, to: Acked) -> Mark:
        """Directly behind a record, a batch, or a position with a record."""
        if isinstance(to, StoredRecord):
            return Mark(to.seq_no + 1, to.position.next)
        if isinstance(to, RecordBatch):
            return Mark(to.end_seq_no, to.last.next)
        if isinstance(to, Acknowledgement):
            return to.mark
        seq_no, is_record = await self._number_of(to)
        return Mark(seq_no + 1, to.next) if is_record else await self._within(Mark(seq_no, to))

    async def _changes(self, acked: Acked) -> list[Acknowledgement]:
        if isinstance(acked, Acknowledgement):
            return [acked]
        if isinstance(acked, RecordBatch | StoredRecord):
            return acknowledgements(acked)
        seq_no, is_record = await self._number_of(acked)
        if not is_record:
            text = f"there is no record at position {acked} of stream {self._stream} to acknowledge"
            raise PositionFormatError(text, stream=self._stream)
        return [Acknowledgement(Mark(seq_no + 1, acked.next), seq_no)]

    async def _number_of(self, position: Position) -> tuple[int, bool]:
        """The number of the first record at or behind ``position``, and whether it stands there."""
        numbers = self._numbers.get((position.segment, position.entry))
        if numbers is None:
            numbers = await self._reading.locator.entry_numbers(position)
            if numbers is None:
                return await self._reading.locator.seq_no(position), False
            if len(self._numbers) >= PLACES_MAX:
                self._numbers.clear()
            self._numbers[position.segment, position.entry] = numbers
        first, count = numbers
        return first + min(position.slot, count), 0 <= position.slot < count


def acknowledgements(acked: StoredRecord | RecordBatch) -> list[Acknowledgement]:
    """That these records are done."""
    if isinstance(acked, StoredRecord):
        return [Acknowledgement(Mark(acked.seq_no + 1, acked.position.next), acked.seq_no)]
    return [
        Acknowledgement(Mark(s.entry.first_seq_no + s.b, s.entry.position(s.b)), s.entry.first_seq_no + s.a)
        for s in acked.slices
    ]
