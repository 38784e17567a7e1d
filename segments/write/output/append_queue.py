"""Hands appends to their machine, sends the groups that it cuts, and admits waiting callers in their order.

:mod:`segments.write.output.entry_output` writes the groups and resolves their futures.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from bookkeeper.client.loop_affinity import require_loop
from bookkeeper.outcome import Outcome
from segments.config import StreamConfig
from segments.entries.columns import RecordColumns
from segments.errors import StreamClosedError, StreamError
from segments.record import AppendResult, Record
from segments.write.appends.append_machine import AppendMachine, ProducerRecords
from segments.write.appends.grouping import Group, Linger, ProducerRun, Send
from segments.write.output.entry_output import EntryOutput
from segments.write.state.stream_owner import error_for_caller


class _Waiting(NamedTuple):
    """A caller that waits for room; ``submit`` is its append, None if it only waits."""

    waiter: asyncio.Future[Any]
    submit: Callable[[], asyncio.Future[AppendResult]] | None


class AppendQueue:
    """The appends of one writer. Belongs to the loop that made it; ``begin`` comes first."""

    def __init__(self, name: str, config: StreamConfig, last_txid: int | None, on_lost: Callable[[], None]) -> None:
        """``on_lost`` is called once if the stream's end is lost before close()."""
        self.name = name
        """Of the stream."""
        self._what = f"the writer of stream {name}"
        self.machine = AppendMachine(name, config, last_txid)
        self._loop = asyncio.get_running_loop()
        self.new_future: Callable[[], asyncio.Future[AppendResult]] = self._loop.create_future
        """Makes what an append waits for."""
        self._output: EntryOutput
        self._on_lost = on_lost
        self._scheduled = False
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: deque[_Waiting] = deque()
        self._waking = self._admitting = False
        self._flushing: deque[tuple[int, asyncio.Future[None]]] = deque()
        """Those who wait until so many groups are settled."""
        self._closing = False

    def begin(self, output: EntryOutput) -> None:
        """Send groups to this output from now on."""
        self._output = output

    @property
    def has_room(self) -> bool:
        """Whether submit() would take a record."""
        return self.machine.fast_path_max >= 0 or self.closed

    @property
    def closed(self) -> bool:
        """Whether nothing can be appended any more."""
        return self._closing or self._output.ended is not None

    def on_added(self) -> None:
        """A value was added to the machine's group: it may have to be cut, or to be given a time."""
        if self.machine.is_group_full:
            self._flush_group()
        elif not self._scheduled:
            self._schedule()

    def submit_one(
        self, record: Record | bytes, txid: int | None, of: ProducerRecords | None = None
    ) -> asyncio.Future[AppendResult]:
        """Take any record."""
        self._ensure_room()
        future = self.new_future()
        self._send(self.machine.take_one(record, txid, future, of))
        return future

    def submit_batch(
        self, batch: list[Record | bytes], *, atomic: bool, of: ProducerRecords | None = None
    ) -> asyncio.Future[AppendResult]:
        """Take a batch, in one entry if ``atomic``."""
        self._ensure_room()
        if not atomic and len(parts := self.machine.parts(batch)) > 1:
            futures = [self.submit_batch(batch[start:end], atomic=True) for start, end in parts]
            return self._loop.create_task(_joined(futures))
        future = self.new_future()
        self._send(self.machine.take_batch(batch, future, of))
        return future

    def submit_columns(self, columns: RecordColumns) -> asyncio.Future[AppendResult]:
        """Take records that are columns already, as an entry of their own."""
        self._ensure_room()
        future = self.new_future()
        self._send(self.machine.take_columns(columns, future))
        return future

    def submit_epoch(self, run: ProducerRun) -> asyncio.Future[AppendResult]:
        """Take an entry without records that says which epoch a producer has."""
        self._ensure_room()
        future = self.new_future()
        self._send(self.machine.take_epoch(run, future))
        return future

    async def room(self) -> None:
        """Wait until there is room again. Those who wait longest come first."""
        self.require_here()
        if not self.has_room:
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append(_Waiting(waiter, None))
            await waiter

    async def in_turn(self, submit: Callable[[], asyncio.Future[AppendResult]]) -> asyncio.Future[AppendResult]:
        """Submit something when there is room and those who wait longer were served. Raises: what ``submit`` raises."""
        self.require_here()
        if self.has_room:
            return submit()
        waiter: asyncio.Future[asyncio.Future[AppendResult]] = self._loop.create_future()
        self._waiting.append(_Waiting(waiter, submit))
        return await waiter

    async def flush(self) -> None:
        """Send what was gathered, and wait until all groups that were cut so far are settled.

        Raises:
            StreamError: what ended the writer.
        """
        self.require_here()
        self._flush_group()
        await self.until_settled()
        if self._output.ended is not None and not self._closing:
            raise error_for_caller(self._output.ended, Outcome.REJECTED)

    async def until_settled(self) -> None:
        """Wait until all groups that were cut so far are settled; later ones do not matter."""
        if self.machine.settled_count < self.machine.cut_count:
            settled: asyncio.Future[None] = self._loop.create_future()
            self._flushing.append((self.machine.cut_count, settled))
            await settled

    def send_gathered(self) -> None:
        """Send what was gathered now."""
        self.require_here()
        self._flush_group()

    def close(self) -> None:
        """Send what was gathered, and take nothing more."""
        self._flush_group()
        self.machine.refuse()
        self._closing = True

    def stop(self) -> None:
        """Everything is settled: wake the callers that wait for room, which fail."""
        if self._timer is not None:
            self._timer.cancel()
        self._wake()

    def on_settled(self, group: Group) -> None:
        """Every caller of this group has its result."""
        self.machine.on_settled(group)
        if self._waiting or self.machine.fast_path_max < 0:
            self._wake()
        while self._flushing and self._flushing[0][0] <= self.machine.settled_count:
            _, settled = self._flushing.popleft()
            if not settled.done():
                settled.set_result(None)

    def on_progress(self) -> None:
        """An entry is durable: send what was gathered meanwhile."""
        if self.machine.group.items and not self._scheduled and self._timer is None:
            self._scheduled = True
            self._loop.call_soon(self._on_turn)

    def on_ended(self, error: StreamError) -> None:
        """Nothing can be written any more."""
        self.machine.refuse()
        self._flush_group()
        if not self._closing:
            self._on_lost()
        self._wake()

    def require_here(self) -> None:
        """Check that this runs in the writer's loop. Raises: as ``require_loop``."""
        require_loop(self._loop, self._what, "append where it was opened")

    def _ensure_room(self) -> None:
        self.require_here()
        if self.machine.fast_path_max >= 0:
            return
        if self._closing:
            raise StreamClosedError(f"the writer of stream {self.name} is closed", stream=self.name)
        if self._output.ended is not None:
            raise error_for_caller(self._output.ended, Outcome.REJECTED)
        if not self._admitting:
            raise self.machine.overloaded()

    def _schedule(self) -> None:
        """The first append of a group has come: arrange that the group is sent."""
        self.require_here()
        when = self.machine.send_time(self._output.sender.under_way)
        if when is Send.NOW:
            self._flush_group()
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
        for group in self.machine.cut():
            self._submit(group)

    def _send(self, groups: Sequence[Group]) -> None:
        for group in groups:
            self._submit(group)
        if self.machine.group.items and not self._scheduled:
            self._schedule()

    def _submit(self, group: Group) -> None:
        self.machine.on_sent(group, self._output.sender.under_way)
        self._output.submit(group)

    def _wake(self) -> None:
        """Wake the waiting callers at the next turn, because there is room, or the writer has ended."""
        if not self._waking and (self.closed or not self.machine.is_full):
            self._waking = True
            self._loop.call_soon(self._admit)

    def _admit(self) -> None:
        """Admit waiting callers while there is room, in their order."""
        machine, self._waking, self._admitting = self.machine, False, True
        try:
            while self._waiting and (self.closed or machine.pending_bytes < machine.limit):
                waiter, submit = self._waiting.popleft()
                if waiter.done():
                    continue  # cancelled before anything was appended
                try:
                    waiter.set_result(None if submit is None else submit())
                except Exception as error:
                    waiter.set_exception(error)
        finally:
            self._admitting = False
        if not self._waiting and not self.closed and not machine.is_full:
            machine.admit()


async def _joined(futures: Sequence[asyncio.Future[AppendResult]]) -> AppendResult:
    """The result of a batch that was cut into parts."""
    results = [await future for future in futures]
    return results[0]._replace(last=results[-1].last, txid=results[-1].txid)
