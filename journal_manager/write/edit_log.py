"""The edit log: numbers edits, makes them durable in groups, rolls segments.

    log = await EditLog.open("file:///data/edits")     # claim an epoch, fence, recover
    async for op in log.read(snapshot_txid + 1): ...   # replay
    txid = await log.log(b"...")                       # durable
    await log.roll(); await log.purge(snapshot_txid + 1)
    await log.close()

Group commit without a timer: edits that arrive while a batch is being made durable form the next batch. When they are
more than ``transmit_bytes`` they are sent at once, behind the batch that is not durable yet.

A segment ends by itself before it grows beyond a size, at a number of edits, and at an age. A step that only needs the
store again (begin, end or remove a segment) is repeated for ``patience_s`` seconds while the store does not answer.

A failure is final. After it the log takes nothing more, and every call raises an error with the reason. The outcome of
edits that were not acknowledged is unknown, and the next ``open`` recovers. A failure never ends the process.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import TypeVar

from journal_manager.edits.discarded_edits import DiscardedEdits
from journal_manager.edits.fencing import fenced
from journal_manager.edits.ops import Batch, EditRun, Op, encode_batch
from journal_manager.edits.requests import RequestAnswer, RequestId, RequestTable
from journal_manager.edits.segment import SegmentInfo
from journal_manager.edits.selection import MissingEdits
from journal_manager.errors import (
    JournalClosedError,
    JournalError,
    JournalFailedError,
    JournalFencedError,
    JournalOverloadedError,
    OpTooLargeError,
)
from journal_manager.fencing_token import FencingToken
from journal_manager.journals.backend import JournalWriter, NamespaceInfo, RecoveryReport
from journal_manager.journals.open_journal import open_writer
from journal_manager.read.edit_reader import read_ops, read_runs
from journal_manager.snapshots.snapshots import Chunks, SnapshotInfo
from journal_manager.txid import TxId
from journal_manager.write.double_buffer import DoubleBuffer
from journal_manager.write.edit_log_config import EditLogConfig
from journal_manager.write.growing_segment import GrowingSegment, patiently
from journal_manager.write.journal_steps import JournalSteps

_log = logging.getLogger(__name__)

T = TypeVar("T")
Waiter = asyncio.Future[TxId]


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
        requests: RequestTable | None = None,
        wrap: Callable[[JournalWriter], JournalWriter] | None = None,
        **options: object,
    ) -> EditLog:
        """Become the writer of the journal at ``uri``: claim the next epoch, fence, recover.

        Nothing is written yet: the first edit begins the first segment. ``requests`` notices repeated requests: fill
        it from the snapshot and the replay before the first ``log``. ``wrap`` goes around the journal's writer, for
        instance ``JournalStats(…).measured``. Raises as ``Backend.open_writer``.
        """
        writer = await open_writer(uri, namespace=namespace, owner=owner, create=create, **options)
        return cls(writer if wrap is None else wrap(writer), config, requests)

    def __init__(
        self, writer: JournalWriter, config: EditLogConfig | None = None, requests: RequestTable | None = None
    ) -> None:
        self._writer = writer
        self._requests = requests
        self._config = config or EditLogConfig()
        self._max_batch = min(self._config.max_batch_bytes, writer.max_batch_bytes)
        pipelined = self._config.max_transmitted if self._config.transmit_bytes is not None else 1
        self._buffer: DoubleBuffer[Waiter] = DoubleBuffer(TxId(writer.recovery.last_txid + 1), pipelined)
        self._segment = GrowingSegment(
            writer,
            layout_version=self._config.layout_version,
            max_bytes=self._config.segment_bytes,
            max_edits=self._config.segment_edits,
            max_s=self._config.segment_s,
            patience_s=self._config.patience_s,
            on_age=self._roll_at_age,
        )
        self._sent: deque[asyncio.Future[None]] = deque()
        """The appends that are not durable yet, oldest first."""
        self._transmitting = False
        """Whether a batch is being made durable, so that others may be sent behind it."""
        self._steps = JournalSteps(self._ensure_usable, self._fail)
        """What changes the journal: to sync, to roll, to purge."""
        self._syncing: asyncio.Task[None] | None = None
        self._progress = asyncio.Event()
        """Set, and then replaced, when more is durable or the log has failed."""
        self._room = asyncio.Event()
        self._room.set()
        self._failure: BaseException | None = None
        self._over = asyncio.Event()
        """Set when the log has failed."""
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

    async def wait_failed(self) -> BaseException:
        """Wait until this log takes nothing more, also because it was closed. Returns why."""
        await self._over.wait()
        assert self._failure is not None
        return self._failure

    def log(
        self, body: bytes, opcode: int = 0, *, request: RequestId | None = None, since: TxId | None = None
    ) -> asyncio.Future[TxId]:
        """Give ``body`` the next id and make it durable. The future returns the id; futures end in order of ids.

        ``request`` is kept with the edit. If the log was opened with a table of requests, a request that it knows logs
        nothing: the future returns the first id as soon as that edit is durable. ``since`` is an edit that was there
        when the request's client began (:meth:`RequestTable.answer_to`).

        Cancelling the future, or the task that awaits it, does not withdraw the edit.

        Raises (at once):
            RequestForgottenError: the request is too old to tell whether it was logged.
            OpTooLargeError, JournalOverloadedError: nothing was logged; the log goes on.
            JournalClosedError; JournalFencedError, JournalFailedError: the log has failed before.
        Raises (the future):
            JournalFencedError: another writer has the journal; JournalFailedError. The outcome is unknown.
        """
        return self.log_group([(opcode, body)], request=request, since=since)

    def log_group(
        self, ops: Iterable[tuple[int, bytes]], *, request: RequestId | None = None, since: TxId | None = None
    ) -> asyncio.Future[TxId]:
        """Log ``(opcode, body)`` edits that become durable together or not at all. The future returns the last id.

        ``request`` is kept with the last edit. Raises as ``log``; ValueError: no edits.
        """
        self._ensure_open()
        if request is not None and self._requests is not None:
            known = self._requests.answer_to(request, since, self._buffer.next_txid - 1)
            if known is not None:
                return asyncio.ensure_future(self._durable(known.txid))
        batch = self._encode(ops, request)
        if request is not None and self._requests is not None:
            self._requests.record(request, RequestAnswer(batch.last))
        loop = asyncio.get_running_loop()
        waiter: Waiter = loop.create_future()
        self._buffer.add(batch, waiter)
        self._note_room()
        if self._syncing is None:
            self._syncing = loop.create_task(self._sync_all())
        elif self._transmitting:
            self._transmit()
        return waiter

    def ensure_loggable(self, body: bytes, opcode: int = 0, *, request: RequestId | None = None) -> None:
        """Find out whether ``log`` would take this edit now. Raises as ``log`` does at once, and changes nothing."""
        self._ensure_open()
        self._encode([(opcode, body)], request)

    def _encode(self, ops: Iterable[tuple[int, bytes]], request: RequestId | None) -> Batch:
        batch = encode_batch(self._buffer.next_txid, ops, request)
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
        return batch

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

        return await self._steps.run(roll)

    def read(self, start: TxId, end: TxId | None = None) -> AsyncGenerator[Op, None]:
        """The durable edits from ``start`` up to ``end`` (default: ``durable_txid``), in order.

        Raises (at once):
            JournalGapError: ``start`` is beyond the id after ``durable_txid``, and no ``end`` is given.
        Raises (while iterating):
            JournalGapError: an edit is missing, for instance because it was purged.
        """
        self._ensure_not_beyond(start, end)
        return read_ops(self._writer, start, self.durable_txid if end is None else end)

    def read_runs(self, start: TxId, end: TxId | None = None) -> AsyncGenerator[EditRun, None]:
        """The same edits as ``read`` gives, in lists of edits that follow each other. For a fast replay."""
        self._ensure_not_beyond(start, end)
        return read_runs(self._writer, start, self.durable_txid if end is None else end)

    def _ensure_not_beyond(self, start: TxId, end: TxId | None) -> None:
        if end is None and start > self.durable_txid + 1:
            raise MissingEdits(start, None, self.durable_txid).error()

    async def segments(self) -> tuple[SegmentInfo, ...]:
        """All segments, in order."""
        return await self._writer.segments()

    async def discarded(self) -> DiscardedEdits:
        """Which edits were discarded before this log was opened; nobody else does so while it has the journal. A state
        from before the opening is one of this journal if its last edit and that edit's epoch are not among them."""
        return await self._writer.discarded()

    async def purge(self, below: TxId) -> tuple[SegmentInfo, ...]:
        """Remove whole final segments that end below ``below`` (never the newest); return them.

        Raises:
            JournalFencedError: another writer has the journal (the log has failed then). JournalError: some may not be
            removed; the log goes on.
        """
        self._ensure_usable()

        async def purge() -> tuple[SegmentInfo, ...] | JournalError:
            try:
                return await patiently(lambda: self._writer.purge(below), self._config.patience_s)
            except JournalFencedError:
                raise
            except JournalError as error:
                return error

        gone = await self._steps.run(purge)
        if isinstance(gone, JournalError):
            raise gone
        return gone

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
        self._segment.stop_timer()
        if self._failure is None:
            self._failure = JournalClosedError("the edit log was closed")
        try:
            running = [task for task in (self._syncing, *self._steps.tasks) if task is not None]
            for task in running:
                task.cancel()
            if running:
                await asyncio.wait(running)
            self._fail(self._failure)
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
                await self._steps.perform(self._sync_batch)
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

    async def _sync_batch(self) -> None:
        """Make one batch durable, and those that are sent behind it meanwhile."""
        batch = self._buffer.take(self._max_batch, self._config.segment_edits)
        if batch is None:
            return
        await self._begin_segment_for(batch)
        self._sent.append(self._segment.append(batch))
        self._transmitting = True
        try:
            self._transmit()
            while self._sent:
                await self._sent[0]
                self._sent.popleft()
                for group in self._buffer.synced():
                    if not group.waiter.done():
                        group.waiter.set_result(group.batch.last)
                self._note_progress()
                self._transmit()
        finally:
            self._transmitting = False
            for append in self._sent:
                append.add_done_callback(_seen)
                append.cancel()
            self._sent.clear()

    def _transmit(self) -> None:
        """Send what waits if it is more than the threshold, does not need a new segment, and no step waits."""
        limit = self._config.transmit_bytes
        if limit is None or self._steps.tasks:
            return
        while self._buffer.filling_bytes > limit and self._buffer.may_take:
            most = min(self._buffer.filling_bytes, self._max_batch)
            if not self._segment.is_open or self._segment.is_full(most, TxId(self._buffer.next_txid - 1)):
                return
            batch = self._buffer.take(self._max_batch, self._config.segment_edits)
            assert batch is not None
            self._sent.append(self._segment.append(batch))

    async def _begin_segment_for(self, batch: Batch) -> None:
        if self._segment.is_open and self._segment.is_full(len(batch.frames), batch.last):
            await self._finalize()
        if not self._segment.is_open:
            await self._segment.begin(batch.first)

    def _roll_at_age(self) -> None:
        """End the segment behind what is being synced. A failure is final, and the next call raises it."""
        if self._failure is None and not self._closing:
            self._steps.begin(self._finalize)

    async def _finalize(self) -> SegmentInfo | None:
        return await self._segment.finalize(self._buffer.durable_txid)

    async def _durable(self, txid: TxId) -> TxId:
        await self.sync(txid)
        return txid

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
        self._over.set()
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


def _seen(append: asyncio.Future[None]) -> None:
    """Look at the result of an append whose batch was given up: the failure of an earlier one is what is told."""
    if not append.cancelled():
        append.exception()
