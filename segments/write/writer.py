"""Appends records to a stream. The writer owns the stream until another one takes it over.

There is one future per append, and nothing else per record: the appends of a turn of the loop become an entry, entries
become durable in order, and the futures of an entry are resolved from one place, in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from bookkeeper.client.tasks import Tasks
from segments.chain import StreamSegment
from segments.config import StreamConfig
from segments.entries.columns import RecordColumns
from segments.errors import StreamClosedError, StreamError, TailMovedError
from segments.position import Position
from segments.record import AppendResult, Record
from segments.write.appends.grouping import RECORD_COST, ProducerRun
from segments.write.ledgers.ledger_allocator import LedgerAllocator
from segments.write.output.append_queue import AppendQueue
from segments.write.output.changed_settings import ReadConfig
from segments.write.output.entry_output import EntryOutput
from segments.write.output.writer_metrics import WriterMetrics
from segments.write.segment.segment_change import EndedSegment
from segments.write.state.stream_owner import StreamOwner
from segments.write.state.write_state import WriteState
from segments.write.writer_front import WriterFront

if TYPE_CHECKING:
    from bookkeeper import BookKeeper, WriteHandle
    from bookkeeper.meta.store import Watch

T = TypeVar("T")


class Writer(WriterFront):
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
        super().__init__(owner.node.name, owner.epoch)
        self._owner, self._allocator, self._tasks = owner, allocator, tasks
        self._wall_ms = client.services.seams.clock.wall_ms
        self.appends = AppendQueue(self.name, config, state.last_txid, self._on_lost)
        """For producers of this writer."""
        self._machine, self._new_future = self.appends.machine, self.appends.new_future
        self._output = EntryOutput(client, owner, allocator, state, config, tasks, self.appends, location, read_config)
        self.appends.begin(self._output)
        self._watch: Watch | None = None
        self._closing: asyncio.Task[None] | None = None
        self._aborted: StreamError | None = None
        """What callers that wait for close() are told, because of an abort()."""

    async def begin(self, handle: WriteHandle, recovered: EndedSegment | None) -> None:
        """Start the first segment; a take-over calls this."""
        await self._output.begin(handle, recovered)
        self._watch = self._owner.node.watch(self._output.check_owner)

    def __repr__(self) -> str:
        return f"<Writer of stream {self.name}, epoch {self.epoch}, {self.pending} pending>"

    @property
    def state(self) -> WriteState:
        """What the stream holds, for producers of this writer."""
        return self._output.sender.state

    @property
    def metrics(self) -> WriterMetrics:
        """What the client's writers count together."""
        return self._output.sender.metrics

    @property
    def tail(self) -> Position | None:
        """The position of the last durable record; None in a stream without records."""
        return self._output.sender.state.tail

    @property
    def next_seq_no(self) -> int:
        """The sequence number of the next record that is sent."""
        return self._output.sender.state.next_seq_no

    @property
    def segment(self) -> int:
        """The number of the open segment."""
        return self._output.sender.segment

    @property
    def pending(self) -> int:
        """Groups of appends that are not settled: those under way, and the one that is being gathered."""
        return self._machine.pending

    @property
    def pending_bytes(self) -> int:
        """Bytes that were appended and are not known to be durable."""
        return self._machine.pending_bytes

    @property
    def last_txid(self) -> int | None:
        """The greatest transaction id that was appended."""
        return self._machine.last_txid

    @property
    def has_room(self) -> bool:
        """Whether append_nowait() would take a record."""
        return self.appends.has_room

    @property
    def closed(self) -> bool:
        """Whether nothing can be appended any more."""
        return self.appends.closed

    async def room(self) -> None:
        """Wait until append_nowait() has room again. Those who wait longest come first."""
        await self.appends.room()

    def now_ms(self) -> int:
        """Milliseconds since 1970, by the client's clock."""
        return self._wall_ms()

    async def _in_turn(self, submit: Callable[[], asyncio.Future[AppendResult]]) -> asyncio.Future[AppendResult]:
        return await self.appends.in_turn(submit)

    def start(self, work: Coroutine[Any, Any, T], what: str) -> asyncio.Task[T]:
        """Run ``work`` until it ends, or the writer does."""
        return self._tasks.start(work, what)

    def append_nowait(self, record: Record | bytes, *, txid: int | None = None) -> asyncio.Future[AppendResult]:
        """Append without waiting: the future resolves like append(). Futures resolve in the order of the calls.

        Raises:
            StreamOverloadedError: too many bytes are pending; nothing was appended. Await room() first.
            RecordTooLargeError, TxidOrderError, StreamClosedError, OwnershipLostError: nothing was appended.
        """
        machine = self._machine
        if type(record) is bytes and txid is None and (size := len(record)) <= machine.fast_path_max:
            future = self._new_future()
            group = machine.group
            items = group.items
            items.append(record)
            if group.promises is None:
                group.futures.append(future)
            else:
                group.promise(future, 1)
            room = group.room = group.room - size - RECORD_COST
            count = len(items)
            if room <= 0 or count == 1 or count >= machine.records_max:
                self.appends.on_added()
            return future
        return self.appends.submit_one(record, txid)

    def append_batch_nowait(
        self, records: Iterable[Record | bytes] | RecordColumns, *, atomic: bool = True
    ) -> asyncio.Future[AppendResult]:
        """The same without waiting for room. Raises: as append_nowait."""
        if isinstance(records, RecordColumns):
            return self.appends.submit_columns(records)
        batch = records if type(records) is list else list(records)
        return self.appends.submit_batch(batch, atomic=atomic)

    async def announce(self, producer: str, epoch: int, next_sequence: int) -> None:
        """Write an entry without records that says which epoch a producer has. Raises: as append."""
        run = ProducerRun(producer, epoch, next_sequence, 0, 0)
        await (await self.appends.in_turn(partial(self.appends.submit_epoch, run)))

    async def ensure_current(self) -> None:
        """Check that this writer still owns the stream. Raises: OwnershipLostError, StreamMetadataError."""
        await self._owner.ensure_current()

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
                f"the last node of stream {self.name} stands at {self.tail or 'no position'}, not at "
                f"{tail or 'no position'}",
                stream=self.name,
                position=self.tail,
            )
        return await self.append_nowait(record, txid=txid)

    async def flush(self) -> Position | None:
        """Wait until everything that was appended so far is settled; return the position of the last durable record.

        Raises:
            OwnershipLostError, StreamClosedError: what ended the writer.
        """
        await self.appends.flush()
        return self.tail

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
            SegmentEmptyError: it has no records.
            StreamNotReadyError: bookies or metadata are away, and the segment goes on; or its bookies failed before a
                record was durable, and the stream went on in another one.
        """
        self.appends.send_gathered()
        return await self._output.roll()

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
        self.appends.require_here()
        if self._closing is None:
            self.appends.close()
            self._closing = asyncio.get_running_loop().create_task(self._close(complete=complete, seal=seal))
        closing = self._closing
        await asyncio.wait([closing])
        if closing.cancelled() and self._aborted is not None:
            raise self._aborted
        closing.result()

    async def _close(self, *, complete: bool, seal: bool) -> None:
        try:
            await self.appends.until_settled()
            if not self.lost.is_set():
                await self._output.close(complete=complete, seal=seal)
                await self._allocator.close(discard=complete)
                if complete:
                    await self._allocator.sweep()
        finally:
            if self._aborted is None:
                await self._stop(StreamClosedError(f"the writer of stream {self.name} is closed", stream=self.name))

    async def abort(self) -> None:
        """End at once, without flushing: what is pending fails with an unknown outcome, and the next writer recovers
        the segment. A close() that is under way ends, too: its callers get StreamClosedError. Idempotent."""
        self.appends.require_here()
        closing = self._closing
        if self._aborted is None and (closing is None or not closing.done()):
            self._aborted = StreamClosedError(f"the writer of stream {self.name} was aborted", stream=self.name)
            self.appends.close()
            self._closing = asyncio.get_running_loop().create_task(self._abort(self._aborted, closing))
        assert self._closing is not None
        await asyncio.shield(self._closing)

    async def _abort(self, error: StreamError, closing: asyncio.Task[None] | None) -> None:
        if closing is not None:
            closing.cancel()
            await asyncio.wait([closing])
        await self._output.abort(error)
        await self._allocator.close(discard=False)
        await self._stop(error)

    async def _stop(self, error: StreamError) -> None:
        if self._watch is not None:
            self._watch.close()
        await self._output.fail(error)
        await self._tasks.close()
        self.appends.stop()

    def _on_lost(self) -> None:
        self.metrics.lost.add()
        self.lost.set()
        asyncio.get_running_loop().call_soon(self._release)

    def _release(self) -> None:
        """After the stream was lost: release the ledger that was made in advance, and stop watching."""
        if self._watch is not None:
            self._watch.close()
        self._tasks.start(self._allocator.close(discard=True), "give up the ledger made in advance")
