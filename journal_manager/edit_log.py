"""The edit log: numbers edits, makes them durable in groups, rolls segments.

    log = await EditLog.open("file:///data/edits")     # claim an epoch, fence, recover
    async for op in log.read(snapshot_txid + 1): ...   # replay
    txid = await log.log(b"...")                       # durable
    await log.roll(); await log.purge(snapshot_txid + 1)
    await log.close()

Group commit without a timer: edits that arrive while a batch is being made durable form the next batch.

A failure is final. After it the log takes nothing more, and every call raises an error with the reason. The outcome of
edits that were not acknowledged is unknown, and the next ``open`` recovers. A failure never ends the process.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from journal_manager.backend import JournalWriter, NamespaceInfo, RecoveryReport, SegmentWriter
from journal_manager.double_buffer import DoubleBuffer
from journal_manager.edit_reader import read_ops
from journal_manager.errors import (
    JournalClosedError,
    JournalError,
    JournalFailedError,
    JournalFencedError,
    JournalOverloadedError,
    OpTooLargeError,
)
from journal_manager.fencing_token import FencingToken, fenced
from journal_manager.open_journal import open_writer
from journal_manager.ops import Batch, Op, encode_batch
from journal_manager.segment import SegmentInfo
from journal_manager.snapshots import Chunks, SnapshotInfo
from journal_manager.txid import TxId

T = TypeVar("T")
Waiter = asyncio.Future[TxId]


@dataclass(frozen=True, slots=True, kw_only=True)
class EditLogConfig:
    """The settings of an edit log."""

    layout_version: int = 1
    """The version of the edits' bodies, kept with each segment."""
    max_batch_bytes: int = 1 << 20
    """The most bytes that become durable at once. A longer group is refused. The backend has its own limit, too."""
    max_pending_bytes: int = 64 << 20
    """The most bytes that may wait to become durable; above this, JournalOverloadedError."""
    segment_bytes: int = 64 << 20
    """The log rolls by itself before a segment grows beyond this."""


class EditLog:
    """One writer's log. Everything runs on one event loop; any number of tasks may log at once."""

    @classmethod
    async def open(
        cls,
        uri: str,
        *,
        namespace: NamespaceInfo | None = None,
        owner: str = "",
        create: bool = True,
        config: EditLogConfig | None = None,
        **options: object,
    ) -> EditLog:
        """Become the writer of the journal at ``uri``: claim the next epoch, fence, recover.

        Nothing is written yet: the first edit begins the first segment. Raises as ``Backend.open_writer``.
        """
        writer = await open_writer(uri, namespace=namespace, owner=owner, create=create, **options)
        return cls(writer, config)

    def __init__(self, writer: JournalWriter, config: EditLogConfig | None = None) -> None:
        self._writer = writer
        self._config = config or EditLogConfig()
        self._max_batch = min(self._config.max_batch_bytes, writer.max_batch_bytes)
        self._buffer: DoubleBuffer[Waiter] = DoubleBuffer(TxId(writer.recovery.last_txid + 1))
        self._segment: SegmentWriter | None = None
        self._segment_bytes = 0
        self._step = asyncio.Lock()
        """Held by the task that changes the journal: the one that syncs, rolls, purges or closes."""
        self._syncing: asyncio.Task[None] | None = None
        self._steps: list[asyncio.Future[Any]] = []
        self._progress = asyncio.Event()
        """Set, and then replaced, when more is durable or the log has failed."""
        self._room = asyncio.Event()
        self._room.set()
        self._failure: BaseException | None = None
        self._closing = self._closed = False
        self._ended = asyncio.Event()

    @property
    def token(self) -> FencingToken:
        """The token of this writer's epoch: hand it to side effects that must be fenced as well."""
        return self._writer.token

    @property
    def recovery(self) -> RecoveryReport:
        """What opening found; ``recovery.last_txid`` is the last edit to replay."""
        return self._writer.recovery

    @property
    def next_txid(self) -> TxId:
        """The id the next edit gets."""
        return self._buffer.next_txid

    @property
    def durable_txid(self) -> TxId:
        """Every edit up to this one is durable."""
        return self._buffer.durable_txid

    @property
    def failure(self) -> BaseException | None:
        """Why this log takes nothing more; None while it does."""
        return self._failure

    def log(self, body: bytes, opcode: int = 0) -> asyncio.Future[TxId]:
        """Give ``body`` the next id and make it durable. The future returns the id; futures end in order of ids.

        Cancelling the future, or the task that awaits it, does not withdraw the edit.

        Raises (at once):
            OpTooLargeError, JournalOverloadedError: nothing was logged; the log goes on.
            JournalClosedError; JournalFencedError, JournalFailedError: the log has failed before.
        Raises (the future):
            JournalFencedError: another writer has the journal; JournalFailedError. The outcome is unknown.
        """
        return self.log_group([(opcode, body)])

    def log_group(self, ops: Iterable[tuple[int, bytes]]) -> asyncio.Future[TxId]:
        """Log ``(opcode, body)`` edits that become durable together or not at all. The future returns the last id.

        Raises as ``log``; ValueError: no edits.
        """
        self._ensure_open()
        batch = encode_batch(self._buffer.next_txid, ops)
        if not batch.count:
            raise ValueError("a group needs at least one edit")
        if len(batch.frames) > self._max_batch:
            raise OpTooLargeError(
                f"a group of {len(batch.frames)} bytes cannot become durable at once; at most {self._max_batch} "
                "bytes can"
            )
        if not self._room.is_set():
            raise JournalOverloadedError(
                f"{self._buffer.pending_bytes} bytes wait to become durable already: wait with room() before "
                "you log more"
            )
        loop = asyncio.get_running_loop()
        waiter: Waiter = loop.create_future()
        self._buffer.add(batch, waiter)
        self._note_room()
        if self._syncing is None:
            self._syncing = loop.create_task(self._sync_all())
        return waiter

    async def room(self) -> None:
        """Wait until less than the allowed number of bytes waits to become durable. Raises as ``log``."""
        await self._room.wait()
        self._ensure_open()

    async def sync(self, upto: TxId | None = None) -> TxId:
        """Wait until ``upto`` (default: everything logged so far) is durable; returns ``durable_txid``.

        Raises:
            ValueError: ``upto`` was not logged yet. Otherwise as the futures of ``log``.
        """
        wanted = TxId(self._buffer.next_txid - 1) if upto is None else upto
        if wanted >= self._buffer.next_txid:
            raise ValueError(f"edit {wanted} was not logged yet; the next edit is {self._buffer.next_txid}")
        self._ensure_usable()
        while self._buffer.durable_txid < wanted:
            await self._progress.wait()
            self._ensure_usable()
        return self._buffer.durable_txid

    async def roll(self) -> SegmentInfo | None:
        """Make everything logged so far durable and final. Returns the finalized segment; None if none was open.

        The next edit begins a new segment. Needed before ``purge`` can remove what was written so far.
        """
        self._ensure_usable()
        wanted = self._buffer.next_txid - 1

        async def roll() -> SegmentInfo | None:
            while self._buffer.durable_txid < wanted:
                await self._sync_batch()
            return await self._finalize()

        return await self._step_of(roll)

    def read(self, start: TxId, end: TxId | None = None) -> AsyncGenerator[Op, None]:
        """The durable edits from ``start`` up to ``end`` (default: ``durable_txid``), in order.

        Raises (while iterating):
            JournalGapError: an edit is missing, for instance because it was purged.
        """
        return read_ops(self._writer, start, self.durable_txid if end is None else end)

    async def segments(self) -> tuple[SegmentInfo, ...]:
        """All segments, in order."""
        return await self._writer.segments()

    async def purge(self, below: TxId) -> tuple[SegmentInfo, ...]:
        """Remove whole final segments that end below ``below`` (never the newest); return them."""
        self._ensure_usable()
        return await self._step_of(lambda: self._writer.purge(below))

    async def save_snapshot(self, at: TxId, chunks: Chunks) -> SnapshotInfo:
        """Keep the state after edit ``at``. It is durable when this returns, and the log goes on meanwhile.

        Raises:
            SnapshotAheadError: ``at`` is not durable yet. JournalFencedError: another writer has the journal (the log
            has failed then). JournalUnavailableError, JournalError: the snapshot was not kept; the log goes on.
        """
        return await self._as_owner(lambda: self._writer.save_snapshot(at, chunks))

    async def delete_snapshot(self, at: TxId) -> None:
        """Remove a snapshot. It is no error if there is none. Raises as ``save_snapshot``."""
        await self._as_owner(lambda: self._writer.delete_snapshot(at))

    async def adopt_snapshots(self) -> tuple[SnapshotInfo, ...]:
        """Keep the newest snapshot that a standby has offered. Returns what is new. Raises as ``save_snapshot``."""
        return await self._as_owner(self._writer.adopt_snapshots)

    async def ensure_owner(self) -> None:
        """Ask the journal whether this writer still has it.

        Raises:
            JournalFencedError: not any more (the log has failed then). JournalUnavailableError: it cannot tell.
        """
        await self._as_owner(self._writer.ensure_owner)

    async def close(self) -> None:
        """Make everything durable, finalize the segment, and release everything.

        Idempotent: concurrent calls wait for the same end. After a failure it only releases.

        Raises:
            The error of the last sync or finalize, for the first caller. Everything is released anyway.
        """
        if self._closing:
            await self._ended.wait()
            return
        self._closing = True
        try:
            if self._failure is None:
                await self.roll()
        finally:
            await self.abort()

    async def abort(self) -> None:
        """Release without waiting, as a crash would: edits that are not durable yet are unknown. Never raises."""
        if self._closed:
            await self._ended.wait()
            return
        self._closing = self._closed = True
        if self._failure is None:
            self._failure = JournalClosedError("the edit log was closed")
        try:
            running = [task for task in (self._syncing, *self._steps) if task is not None]
            for task in running:
                task.cancel()
            if running:
                await asyncio.wait(running)
            self._fail(self._failure)
            if self._segment is not None:
                await self._segment.abort()
            await self._writer.close()
        finally:
            self._ended.set()

    async def __aenter__(self) -> EditLog:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    # -- changing the journal --------------------------------------------------------------------------

    async def _sync_all(self) -> None:
        """Write batch after batch until nothing waits."""
        try:
            while not self._buffer.idle:
                await self._perform(self._sync_batch)
        except Exception as error:
            self._fail(error)  # everyone who waits, or calls later, gets the error
        finally:
            self._syncing = None

    async def _as_owner(self, step: Callable[[], Awaitable[T]]) -> T:
        """Run a step beside the others. Only being fenced is the log's own failure."""
        self._ensure_usable()
        try:
            return await step()
        except JournalFencedError as error:
            self._fail(error)
            raise

    async def _step_of(self, step: Callable[[], Awaitable[T]]) -> T:
        """Run a step to its end, even if the task that asked for it is cancelled."""
        task = asyncio.ensure_future(self._perform(step))
        self._steps.append(task)
        task.add_done_callback(self._step_ended)
        return await asyncio.shield(task)

    def _step_ended(self, task: asyncio.Future[Any]) -> None:
        self._steps.remove(task)
        if not task.cancelled():
            task.exception()  # self._failure has it, also if nobody awaits the task

    async def _perform(self, step: Callable[[], Awaitable[T]]) -> T:
        """Run one step that changes the journal, and no other at the same time. Its failure is final."""
        async with self._step:
            self._ensure_usable()
            try:
                return await step()
            except BaseException as error:
                self._fail(error)
                raise

    async def _sync_batch(self) -> None:
        batch = self._buffer.take(self._max_batch)
        if batch is None:
            return
        segment = await self._segment_for(batch)
        await segment.append(batch)
        self._segment_bytes += len(batch.frames)
        for group in self._buffer.synced():
            if not group.waiter.done():
                group.waiter.set_result(group.batch.last)
        self._note_progress()

    async def _segment_for(self, batch: Batch) -> SegmentWriter:
        if self._segment is not None and self._segment_bytes + len(batch.frames) > self._config.segment_bytes:
            await self._finalize()
        if self._segment is None:
            self._segment = await self._writer.start_segment(batch.first, self._config.layout_version)
            self._segment_bytes = 0
        return self._segment

    async def _finalize(self) -> SegmentInfo | None:
        if self._segment is None:
            return None
        segment = self._segment
        await segment.close()
        final = await self._writer.finalize_segment(segment.info.first, self._buffer.durable_txid)
        self._segment = None
        return final

    # -- failure and room ------------------------------------------------------------------------------

    def _ensure_open(self) -> None:
        self._ensure_usable()
        if self._closing:
            raise JournalClosedError("the edit log was closed")

    def _ensure_usable(self) -> None:
        if isinstance(self._failure, JournalClosedError):
            raise JournalClosedError(str(self._failure))
        if self._failure is not None:
            raise self._failed()

    def _failed(self) -> JournalError:
        """Make a new exception for each caller: one instance in many futures would collect their tracebacks."""
        if isinstance(self._failure, JournalFencedError):
            return fenced(self.token, self._failure.by)
        error = JournalFailedError(f"the edit log failed: {str(self._failure) or type(self._failure).__name__}")
        error.__cause__ = self._failure
        return error

    def _fail(self, failure: BaseException) -> None:
        if self._failure is None:
            self._failure = failure
        for group in self._buffer.drop():
            if not group.waiter.done():
                group.waiter.set_exception(self._failed())
        self._note_progress()

    def _note_progress(self) -> None:
        progress, self._progress = self._progress, asyncio.Event()
        progress.set()
        self._note_room()

    def _note_room(self) -> None:
        if self._failure is not None or self._buffer.pending_bytes < self._config.max_pending_bytes:
            self._room.set()
        else:
            self._room.clear()
