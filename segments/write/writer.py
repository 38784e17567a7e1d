"""Appends records to a stream. The writer owns the stream until another one takes it over.

There is one future per append, and nothing else per record: the appends of a turn of the loop become an entry, entries
become durable in order, and the futures of an entry are resolved from one place, in order.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeVar

from bookkeeper.client.loop_affinity import require_loop
from bookkeeper.client.tasks import Tasks
from segments.chain import StreamSegment
from segments.config import StreamConfig
from segments.entries import BODY_MAX, RecordColumns
from segments.errors import (
    AppendOutcomeUnknownError,
    Applied,
    RecordTooLargeError,
    StreamClosedError,
    StreamError,
    StreamOverloadedError,
    TailMovedError,
    TxidOrderError,
)
from segments.position import Position
from segments.record import AppendResult, Record
from segments.write.entry_output import EntryOutput, ReadConfig
from segments.write.grouping import RECORD_COST, Group, Grouping, Linger, ProducerRun, Promise, Send, split
from segments.write.ledger_allocator import LedgerAllocator
from segments.write.record_checks import checked, record_size
from segments.write.segment_change import EndedSegment
from segments.write.stream_owner import StreamOwner, lost_for
from segments.write.write_state import WriteState

if TYPE_CHECKING:
    from bookkeeper import BookKeeper, WriteHandle
    from bookkeeper.meta.store import Watch

T = TypeVar("T")

EASY_BYTES: Final = 64 * 1024
"""A value up to this size may be the last of an entry that is nearly full; a larger one is looked at first."""

GROUP_MAX: Final = BODY_MAX - 16 * 1024
"""What fits into an entry for certain, with the columns' own bytes."""

_REFUSE: Final = -1
"""No value is easy: the writer is full, or at its end."""


class _Waiting(NamedTuple):
    """Someone who waits for room, to submit something or only to know."""

    waiter: asyncio.Future[Any]
    submit: Callable[[], asyncio.Future[AppendResult]] | None


class Writer:
    """The writer of a stream: ``async with stream.writer() as writer``. It belongs to the loop that made it."""

    def __init__(
        self,
        client: BookKeeper,
        owner: StreamOwner,
        allocator: LedgerAllocator,
        state: WriteState,
        config: StreamConfig,
        tasks: Tasks,
        location: str = "",
        read_config: ReadConfig | None = None,
    ) -> None:
        self.name = owner.record.name
        """Of the stream."""
        self.epoch = owner.epoch
        """Counts the owners of the stream; later ones have higher epochs."""
        self.lost = asyncio.Event()
        """Set when another writer has taken the stream over, or this one has failed for good."""
        self._loop = asyncio.get_running_loop()
        self._owner, self._allocator, self._tasks = owner, allocator, tasks
        self._config = config
        self._wall_ms = client.services.seams.clock.wall_ms
        self._output = EntryOutput(client, owner, allocator, state, config, tasks, self, location, read_config)
        self._room = config.flush.max_bytes
        self._records_max = config.flush.max_records
        self._grouping = Grouping(config.flush.linger_ms / 1000)
        self._group = Group(self._room)
        self._scheduled = False
        self._timer: asyncio.TimerHandle | None = None
        self._easy = min(EASY_BYTES, config.limits.record_bytes)
        """A value up to this size goes the short way."""
        self._clocked = config.txid == "clock"
        self._pending_bytes = 0
        """Of groups that were cut and are not settled."""
        self._pending_max = config.limits.pending_bytes
        self._cuts = self._settles = 0
        """Groups that were cut, and groups that are settled, in order."""
        self._last_txid = state.last_txid
        self._waiting: deque[_Waiting] = deque()
        self._waking = self._admitting = False
        self._flushing: deque[tuple[int, asyncio.Future[None]]] = deque()
        """Those who wait until so many groups are settled."""
        self._closing: asyncio.Task[None] | None = None
        self._watch: Watch | None = None

    async def begin(self, handle: WriteHandle, recovered: EndedSegment | None) -> None:
        """Start the first segment; whoever takes over calls this."""
        await self._output.begin(handle, recovered)
        self._watch = self._owner.record.watch(self._output.look_at_owner)

    def __repr__(self) -> str:
        return f"<Writer of stream {self.name}, epoch {self.epoch}, {self.pending} pending>"

    # -- what it says -----------------------------------------------------------------------------------

    @property
    def state(self) -> WriteState:
        """What the stream holds, for producers of this writer."""
        return self._output.state

    @property
    def pending_bytes(self) -> int:
        """Bytes that were appended and are not known to be durable."""
        return self._pending_bytes + self._group.bytes

    @property
    def pending(self) -> int:
        """Groups of appends that are not settled: those under way, and the one that is being gathered."""
        return self._cuts - self._settles + bool(self._group.items)

    @property
    def tail(self) -> Position | None:
        """The position of the last durable record; None in a stream without records."""
        return self._output.state.tail

    @property
    def last_txid(self) -> int | None:
        """The greatest transaction id that was appended."""
        return self._last_txid

    @property
    def next_seq_no(self) -> int:
        """The sequence number of the next record that is sent."""
        return self._output.state.next_seq_no

    @property
    def segment(self) -> int:
        """The number of the open segment."""
        return self._output.segment

    @property
    def has_room(self) -> bool:
        """Whether append_nowait() would take a record."""
        return self._easy >= 0 or self.closed

    def now_ms(self) -> int:
        """Milliseconds since 1970, by the client's clock."""
        return self._wall_ms()

    def start(self, work: Coroutine[Any, Any, T], what: str) -> asyncio.Task[T]:
        """Run ``work`` until it ends, or the writer does."""
        return self._tasks.start(work, what)

    @property
    def closed(self) -> bool:
        """Whether nothing can be appended any more."""
        return self._closing is not None or self._output.ended is not None

    # -- appending --------------------------------------------------------------------------------------

    async def append(
        self, record: Record | bytes, *, txid: int | None = None, timeout: float | None = None
    ) -> AppendResult:
        """Append a record; return where it stands once it is durable. Waits while too many bytes are pending.

        ``timeout`` is in seconds. Cancelling the caller does not withdraw the record.

        Raises:
            RecordTooLargeError, TxidOrderError, StreamClosedError: nothing was appended.
            OwnershipLostError: another writer has the stream; ``outcome`` says what became of the record.
            AppendOutcomeUnknownError: it was not durable within ``timeout``, and may be later.
        """
        if timeout is not None:
            return await self._within(timeout, record, txid)
        if self._easy < 0:
            return await (await self.in_turn(partial(self.submit_one, record, txid)))
        return await self.append_nowait(record, txid=txid)

    def append_nowait(self, record: Record | bytes, *, txid: int | None = None) -> asyncio.Future[AppendResult]:
        """Append without waiting: the future resolves like append(). Futures resolve in the order of the calls.

        Raises:
            StreamOverloadedError: too many bytes are pending; nothing was appended. Await room() first.
            RecordTooLargeError, TxidOrderError, StreamClosedError, OwnershipLostError: nothing was appended.
        """
        if type(record) is bytes and txid is None and len(record) <= self._easy:
            future: asyncio.Future[AppendResult] = self._loop.create_future()
            group = self._group
            group.items.append(record)
            if group.promises is None:
                group.futures.append(future)
            else:
                group.promise(future, 1)
            group.room -= len(record) + RECORD_COST
            if group.room <= 0 or len(group.items) >= self._records_max:
                self._cut()
            elif not self._scheduled:
                self._schedule()
            return future
        return self.submit_one(record, txid)

    def submit_one(
        self, record: Record | bytes, txid: int | None, of: tuple[str, int, int] | None = None
    ) -> asyncio.Future[AppendResult]:
        """The way of all records that are not simply small values. ``of`` is a producer, its epoch and the number."""
        self._ensure_room()
        record = checked(record, txid)
        size = record_size(record)
        if size > self._config.limits.record_bytes:
            raise RecordTooLargeError(
                f"a record of {size} bytes is larger than the stream allows: limits.record_bytes is "
                f"{self._config.limits.record_bytes}",
                stream=self.name,
            )
        self._check_txids([record.txid if type(record) is Record else txid])
        future: asyncio.Future[AppendResult] = self._loop.create_future()
        self._make_room(size + RECORD_COST)
        self._add(record, txid)
        self._group.promise(future, 1)
        if of is not None:
            self._group.of_producer(*of, 1)
        self._added(size + RECORD_COST)
        return future

    async def append_batch(
        self, records: Iterable[Record | bytes] | RecordColumns, *, atomic: bool = True
    ) -> AppendResult:
        """Append records that stand one after the other; return the positions of the first and the last.

        ``atomic``: all of them are in one entry, so that readers see all or none. Otherwise a large batch is cut into
        several entries, and a failure may leave its first part in the stream.

        Raises:
            RecordTooLargeError: with ``atomic``, they are more than limits.record_bytes. Nothing was appended.
            And as append().
        """
        if self._easy < 0:
            return await (await self.in_turn(partial(self.append_batch_nowait, records, atomic=atomic)))
        return await self.append_batch_nowait(records, atomic=atomic)

    def append_batch_nowait(
        self, records: Iterable[Record | bytes] | RecordColumns, *, atomic: bool = True
    ) -> asyncio.Future[AppendResult]:
        """The same without waiting for room. Raises: as append_nowait."""
        if isinstance(records, RecordColumns):
            return self._submit_columns(records)
        batch = records if type(records) is list else list(records)
        return self.submit_batch(batch, atomic=atomic)

    def submit_batch(
        self, batch: list[Record | bytes], *, atomic: bool, of: tuple[str, int, int] | None = None
    ) -> asyncio.Future[AppendResult]:
        """Take a batch. ``of`` is a producer, its epoch and the number of the first record."""
        self._ensure_room()
        if not batch:
            raise ValueError("a batch needs at least one record")
        plain = set(map(type, batch)) == {bytes}
        if plain:
            size = sum(map(len, batch)) + RECORD_COST * len(batch)  # type: ignore[arg-type]
        else:
            batch = [checked(record, None) for record in batch]
            size = sum(map(record_size, batch)) + RECORD_COST * len(batch)
        if size > GROUP_MAX and not atomic:
            return self._submit_parts(batch)
        if size > self._config.limits.record_bytes:
            raise RecordTooLargeError(
                f"an atomic batch of {size} bytes is larger than the stream allows: limits.record_bytes is "
                f"{self._config.limits.record_bytes}",
                stream=self.name,
            )
        if not plain:
            self._check_txids([record.txid for record in batch if type(record) is Record])
        future: asyncio.Future[AppendResult] = self._loop.create_future()
        self._make_room(size)
        self._group.items += batch
        self._group.general = self._group.general or not plain
        self._group.promise(future, len(batch))
        if of is not None:
            self._group.of_producer(*of, len(batch))
        self._added(size)
        return future

    def _submit_parts(self, batch: list[Record | bytes]) -> asyncio.Future[AppendResult]:
        parts = split([record_size(record) + RECORD_COST for record in batch], GROUP_MAX)
        futures = [self.submit_batch(batch[start:end], atomic=True) for start, end in parts]
        return self._loop.create_task(_joined(futures))

    def _submit_columns(self, columns: RecordColumns) -> asyncio.Future[AppendResult]:
        """Append records that are columns already, as an entry of their own."""
        self._ensure_room()
        if not columns.count:
            raise ValueError("a batch needs at least one record")
        if columns.size > self._config.limits.record_bytes:
            raise RecordTooLargeError(
                f"columns of {columns.size} bytes are larger than the stream allows: limits.record_bytes is "
                f"{self._config.limits.record_bytes}",
                stream=self.name,
            )
        if columns.txids is not None or self._clocked:
            self._check_txids([columns.first_txid, columns.last_txid])
        self._flush_group()
        future: asyncio.Future[AppendResult] = self._loop.create_future()
        group = self._group
        group.columns = columns
        group.promises = [Promise(future, 0, columns.count)]
        group.room -= columns.size
        self._cut()
        return future

    async def announce(self, producer: str, epoch: int, next_sequence: int) -> None:
        """Write an entry without records that says which epoch a producer has. Raises: as append."""
        await (await self.in_turn(partial(self._submit_epoch, ProducerRun(producer, epoch, next_sequence, 0, 0))))

    def _submit_epoch(self, run: ProducerRun) -> asyncio.Future[AppendResult]:
        self._ensure_room()
        self._flush_group()
        future: asyncio.Future[AppendResult] = self._loop.create_future()
        group = self._group
        group.columns, group.runs, group.promises = RecordColumns.of_values([]), [run], [Promise(future, 0, 0)]
        self._cut()
        return future

    async def append_if(
        self, record: Record | bytes, *, tail: Position | None, txid: int | None = None
    ) -> AppendResult:
        """Append a record if ``tail`` is the position of the stream's last one (None: if it has none).

        Raises:
            TailMovedError: it is not, or other appends of this writer are under way. Nothing was appended; the error's
            ``position`` is the last record's. And as append().
        """
        if self.pending:
            await self.flush()
        if self.pending or self.tail != tail:
            raise TailMovedError(
                f"the last record of stream {self.name} stands at {self.tail or 'no position'}, not at "
                f"{tail or 'no position'}",
                stream=self.name,
                position=self.tail,
            )
        return await self.append_nowait(record, txid=txid)

    async def room(self) -> None:
        """Wait until append_nowait() has room again. Those who wait longest come first."""
        self._require_here()
        if self._easy < 0 and not self.closed:
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append(_Waiting(waiter, None))
            await waiter

    async def in_turn(self, submit: Callable[[], asyncio.Future[AppendResult]]) -> asyncio.Future[AppendResult]:
        """Submit something when there is room and those who wait longer were served. Raises: what ``submit`` raises."""
        self._require_here()
        if self.has_room:
            return submit()
        waiter: asyncio.Future[asyncio.Future[AppendResult]] = self._loop.create_future()
        self._waiting.append(_Waiting(waiter, submit))
        return await waiter

    # -- waiting ----------------------------------------------------------------------------------------

    async def flush(self) -> Position | None:
        """Wait until everything that was appended so far is settled; return the position of the last durable record.

        Raises:
            OwnershipLostError, StreamClosedError: what ended the writer.
        """
        self._require_here()
        self._flush_group()
        await self._until_settled()
        if self._output.ended is not None and self._closing is None:
            raise lost_for(self._output.ended, Applied.NO)
        return self.tail

    async def _until_settled(self) -> None:
        """Wait until all groups that were cut so far are settled; later ones do not matter."""
        if self._settles < self._cuts:
            settled: asyncio.Future[None] = self._loop.create_future()
            self._flushing.append((self._cuts, settled))
            await settled

    async def commit(self) -> Position | None:
        """Flush, and let readers see it at once, also where the stream's settings leave that to the next entry.

        Raises: as flush.
        """
        tail = await self.flush()
        self._output.control()
        return tail

    async def roll(self) -> StreamSegment:
        """End the open segment and start the next one. Returns the one that ended.

        Raises:
            StreamNotReadyError: it has no records, or bookies or metadata are away; the segment goes on.
        """
        self._require_here()
        self._flush_group()
        return await self._output.roll()

    # -- the end ----------------------------------------------------------------------------------------

    async def close(self, *, complete: bool = True) -> None:
        """Flush, complete the segment, and leave the stream to the next writer. Idempotent.

        Without ``complete`` the segment stays open, and the next writer recovers it.

        Raises:
            OwnershipLostError: another writer has the stream. StreamMetadataError: the metadata store is away; the next
            writer completes the segment. Everything that was acknowledged is durable in any case.
        """
        await self._end(complete=complete, seal=False)

    async def seal(self) -> Position | None:
        """Flush, complete the segment, and end the stream for good: nothing can be appended any more. Returns the
        position of its last record.

        Raises: as close.
        """
        await self._end(complete=True, seal=True)
        return self.tail

    async def _end(self, *, complete: bool, seal: bool) -> None:
        self._require_here()
        if self._closing is None:
            self._flush_group()
            self._easy = _REFUSE
            self._closing = self._loop.create_task(self._close(complete=complete, seal=seal))
        await asyncio.shield(self._closing)

    async def _close(self, *, complete: bool, seal: bool) -> None:
        try:
            await self._until_settled()
            if not self.lost.is_set():
                await self._output.close(complete=complete, seal=seal)
                await self._allocator.close(discard=complete)
                if complete:
                    await self._allocator.sweep()
        finally:
            await self._stop(StreamClosedError(f"the writer of stream {self.name} is closed", stream=self.name))

    async def abort(self) -> None:
        """End at once, without flushing: what is pending fails with an unknown outcome, and the next writer recovers
        the segment. Idempotent."""
        self._require_here()
        if self._closing is None or not self._closing.done():
            error = StreamClosedError(f"the writer of stream {self.name} was aborted", stream=self.name)
            if self._closing is None:
                self._closing = self._loop.create_task(self._abort(error))
        await asyncio.shield(self._closing)

    async def _abort(self, error: StreamError) -> None:
        self._flush_group()
        self._easy = _REFUSE
        await self._output.abort(error)
        await self._allocator.close(discard=False)
        await self._stop(error)

    async def _stop(self, error: StreamError) -> None:
        self._easy = _REFUSE
        if self._watch is not None:
            self._watch.close()
        if self._timer is not None:
            self._timer.cancel()
        await self._output.lose(error)
        await self._tasks.close()
        self._wake()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.close()
        except StreamError:
            if error is None:
                raise

    # -- what the output tells --------------------------------------------------------------------------

    def on_settled(self, group: Group) -> None:
        """Everybody who waits for this group was told what became of it."""
        self._pending_bytes -= group.bytes
        self._settles += 1
        if self._waiting or self._easy < 0:
            self._wake()
        while self._flushing and self._flushing[0][0] <= self._settles:
            _, settled = self._flushing.popleft()
            if not settled.done():
                settled.set_result(None)

    def on_progress(self) -> None:
        """An entry is durable: send what was gathered meanwhile."""
        if self._group.items and not self._scheduled and self._timer is None:
            self._scheduled = True
            self._loop.call_soon(self._on_turn)

    def on_ended(self, error: StreamError) -> None:
        """Nothing can be written any more."""
        self._easy = _REFUSE
        self._flush_group()
        if self._closing is None:
            self.lost.set()
            self._loop.call_soon(self._let_go)
        self._wake()

    def _let_go(self) -> None:
        """After the stream was lost: release the ledger that was made in advance, and stop watching."""
        if self._watch is not None:
            self._watch.close()
        self._tasks.start(self._allocator.close(discard=True), "give up the ledger made in advance")

    # -- inside -----------------------------------------------------------------------------------------

    def _require_here(self) -> None:
        require_loop(self._loop, f"the writer of stream {self.name}", "append where it was opened")

    def _ensure_room(self) -> None:
        self._require_here()
        if self._easy >= 0:
            return
        if self._output.ended is not None and self._closing is None:
            raise lost_for(self._output.ended, Applied.NO)
        if self._closing is not None:
            raise StreamClosedError(f"the writer of stream {self.name} is closed", stream=self.name)
        if not self._admitting:
            raise StreamOverloadedError(
                f"stream {self.name} has {self.pending_bytes} bytes of appends pending, and limits.pending_bytes "
                f"allows {self._pending_max}; await room() before the next append_nowait",
                stream=self.name,
            )

    def _check_txids(self, txids: Sequence[int | None]) -> None:
        known = [txid for txid in txids if txid is not None]
        if not known:
            return
        if self._config.txid != "application":
            raise TxidOrderError(
                f"stream {self.name} takes no transaction ids from its writer: its setting txid is {self._config.txid}",
                stream=self.name,
            )
        last = self._last_txid
        for txid in known:
            if txid < 0 or (last is not None and txid < last):
                raise TxidOrderError(
                    f"transaction id {txid} is lower than {last if last is not None else 0}, the one before it in "
                    f"stream {self.name}",
                    stream=self.name,
                    last=last,
                )
            last = txid
        self._last_txid = last

    def _make_room(self, size: int) -> None:
        """Cut the open group if this would make it larger than an entry."""
        if self._group.bytes and self._group.bytes + size > GROUP_MAX:
            self._cut()

    def _add(self, record: Record | bytes, txid: int | None) -> None:
        group = self._group
        group.items.append(record)
        if type(record) is Record:
            group.general = True
        elif txid is not None:
            group.with_txid(txid)

    def _added(self, size: int) -> None:
        group = self._group
        group.room -= size
        if group.room <= 0 or len(group.items) >= self._records_max:
            self._cut()
        elif not self._scheduled:
            self._schedule()

    def _schedule(self) -> None:
        """The first append of a group has come: arrange that the group is sent."""
        self._require_here()
        when = self._grouping.when(self._output.under_way)
        if when is Send.NOW:
            self._cut()
        elif when is Send.AT_THE_TURN:
            self._scheduled = True
            self._loop.call_soon(self._on_turn)
        elif isinstance(when, Linger) and self._timer is None:
            self._timer = self._loop.call_later(when.seconds, self._on_linger)

    def _on_turn(self) -> None:
        self._scheduled = False
        self._flush_group()

    def _on_linger(self) -> None:
        self._timer = None
        self._flush_group()

    def _flush_group(self) -> None:
        if self._group.items:
            self._cut()

    def _cut(self) -> None:
        """What was gathered becomes an entry."""
        group, self._group = self._group, Group(self._room)
        self._grouping.on_cut(len(group.items), self._output.under_way)
        self._pending_bytes += group.bytes
        self._cuts += 1
        if self._pending_bytes >= self._pending_max:
            self._easy = _REFUSE
        self._output.submit(group)

    def _wake(self) -> None:
        """There is room, or never will be: let those who wait go on, at the next turn."""
        if not self._waking and (self.closed or self._pending_bytes < self._pending_max):
            self._waking = True
            self._loop.call_soon(self._admit)

    def _admit(self) -> None:
        """Serve those who wait, as long as there is room; those who waited longest come first."""
        self._waking = False
        self._admitting = True
        try:
            while self._waiting and (self.closed or self.pending_bytes < self._pending_max):
                waiter, submit = self._waiting.popleft()
                if waiter.done():
                    continue  # cancelled before anything was appended
                try:
                    waiter.set_result(None if submit is None else submit())
                except Exception as error:
                    waiter.set_exception(error)
        finally:
            self._admitting = False
        if not self._waiting and not self.closed and self._pending_bytes < self._pending_max:
            self._easy = min(EASY_BYTES, self._config.limits.record_bytes)

    async def _within(self, timeout: float, record: Record | bytes, txid: int | None) -> AppendResult:
        limit = asyncio.timeout(timeout)
        future: asyncio.Future[AppendResult] | None = None
        try:
            async with limit:
                future = await self.in_turn(partial(self.append_nowait, record, txid=txid))
                return await asyncio.shield(future)
        except TimeoutError as error:
            if not limit.expired():
                raise
            if future is None:
                raise StreamOverloadedError(
                    f"stream {self.name} had no room within {timeout} s; nothing was appended", stream=self.name
                ) from error
            future.add_done_callback(_looked_at)
            raise AppendOutcomeUnknownError(
                f"the record was not durable in stream {self.name} within {timeout} s; it may be later",
                stream=self.name,
            ) from error


async def _joined(futures: Sequence[asyncio.Future[AppendResult]]) -> AppendResult:
    """The result of a batch that was cut into parts."""
    results = [await future for future in futures]
    return results[0]._replace(last=results[-1].last, txid=results[-1].txid)


def _looked_at(future: asyncio.Future[AppendResult]) -> None:
    if not future.cancelled():
        future.exception()  # marks it as read, so that asyncio logs nothing
