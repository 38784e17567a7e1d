"""Gathers appends into groups, bounds what is pending, and lets those who wait for room go on in their order.

What a group becomes, and when it is durable, is the business of :mod:`segments.write.entry_output`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bookkeeper.client.loop_affinity import require_loop
from segments.config import StreamConfig
from segments.entries import BODY_MAX, RecordColumns
from segments.errors import (
    Applied,
    RecordTooLargeError,
    StreamClosedError,
    StreamOverloadedError,
    TxidOrderError,
)
from segments.record import AppendResult, Record
from segments.write.entry_output import EntryOutput
from segments.write.grouping import RECORD_COST, Group, Grouping, Linger, ProducerRun, Promise, Send, split
from segments.write.record_checks import checked, record_size
from segments.write.stream_owner import lost_for

if TYPE_CHECKING:
    pass


EASY_BYTES: Final = 64 * 1024
"""A value up to this size may be the last of an entry that is nearly full; a larger one is looked at first."""

GROUP_MAX: Final = BODY_MAX - 16 * 1024
"""What fits into an entry for certain, with the columns' own bytes."""

REFUSE: Final = -1
"""No value is easy: the writer is full, or at its end."""


class _Waiting(NamedTuple):
    """Someone who waits for room, to submit something or only to know."""

    waiter: asyncio.Future[Any]
    submit: Callable[[], asyncio.Future[AppendResult]] | None


class AppendQueue:
    """The appends of one writer until they are settled. Belongs to the loop that made it."""

    def __init__(self, name: str, config: StreamConfig, last_txid: int | None) -> None:
        self.name = name
        """Of the stream."""
        self._config = config
        self._loop = asyncio.get_running_loop()
        self._output: EntryOutput
        self._room = config.flush.max_bytes
        self._records_max = config.flush.max_records
        self._grouping = Grouping(config.flush.linger_ms / 1000)
        self._group = Group(self._room)
        self._scheduled = False
        self._timer: asyncio.TimerHandle | None = None
        self._easy = min(EASY_BYTES, config.limits.record_bytes)
        """A value up to this size goes the short way."""
        self._pending_bytes = 0
        """Of groups that were cut and are not settled."""
        self._pending_max = config.limits.pending_bytes
        self._cuts = self._settles = 0
        """Groups that were cut, and groups that are settled, in order."""
        self._last_txid = last_txid
        self._waiting: deque[_Waiting] = deque()
        self._waking = self._admitting = False
        self._flushing: deque[tuple[int, asyncio.Future[None]]] = deque()
        """Those who wait until so many groups are settled."""
        self._closing: asyncio.Task[None] | None = None

    @property
    def pending_bytes(self) -> int:
        """Bytes that were appended and are not known to be durable."""
        return self._pending_bytes + self._group.bytes

    @property
    def pending(self) -> int:
        """Groups of appends that are not settled: those under way, and the one that is being gathered."""
        return self._cuts - self._settles + bool(self._group.items)

    @property
    def last_txid(self) -> int | None:
        """The greatest transaction id that was appended."""
        return self._last_txid

    @property
    def has_room(self) -> bool:
        """Whether append_nowait() would take a record."""
        return self._easy >= 0 or self.closed

    @property
    def closed(self) -> bool:
        """Whether nothing can be appended any more."""
        return self._closing is not None or self._output.ended is not None

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
        limited = size if len(batch) > 1 else size - RECORD_COST
        if limited > self._config.limits.record_bytes:
            what = "a record" if len(batch) == 1 else f"an atomic batch of {len(batch)} records"
            raise RecordTooLargeError(
                f"{what} of {limited} bytes is larger than the stream allows: limits.record_bytes is "
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
        if columns.txids is not None:
            self._check_txids([columns.first_txid, columns.last_txid])
        self._flush_group()
        future: asyncio.Future[AppendResult] = self._loop.create_future()
        group = self._group
        group.columns = columns
        group.promises = [Promise(future, 0, columns.count)]
        group.room -= columns.size
        self._cut()
        return future

    def _submit_epoch(self, run: ProducerRun) -> asyncio.Future[AppendResult]:
        self._ensure_room()
        self._flush_group()
        future: asyncio.Future[AppendResult] = self._loop.create_future()
        group = self._group
        group.columns, group.runs, group.promises = RecordColumns.of_values([]), [run], [Promise(future, 0, 0)]
        self._cut()
        return future

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

    async def _until_settled(self) -> None:
        """Wait until all groups that were cut so far are settled; later ones do not matter."""
        if self._settles < self._cuts:
            settled: asyncio.Future[None] = self._loop.create_future()
            self._flushing.append((self._cuts, settled))
            await settled

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
            self._easy = REFUSE
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


async def _joined(futures: Sequence[asyncio.Future[AppendResult]]) -> AppendResult:
    """The result of a batch that was cut into parts."""
    results = [await future for future in futures]
    return results[0]._replace(last=results[-1].last, txid=results[-1].txid)
