"""A journal's writer that keeps figures of what it does, for one journal: per batch, never per edit.

stats = JournalStats(metrics, "bk+zk://…")           # metrics: a bookkeeper.metrics.Metrics, shown by its exposition
log = await EditLog.open(uri, wrap=stats.measured)   # or replicated(…, wrap=…), or Member(…, wrap=…)
stats.now()                                          # the same as plain data
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from bookkeeper.metrics import Metrics
from journal_manager.edits.discarded_edits import DiscardedEdits
from journal_manager.edits.ops import Batch
from journal_manager.edits.segment import SegmentInfo
from journal_manager.errors import JournalError
from journal_manager.fencing_token import FencingToken
from journal_manager.journals.backend import JournalWriter, RecoveryReport, SegmentWriter
from journal_manager.snapshots.snapshots import Chunks, SnapshotInfo
from journal_manager.txid import TxId

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class JournalFigures:
    """How a journal does at one moment."""

    appended_txid: TxId
    """The last edit that was handed to the journal."""
    durable_txid: TxId
    """The last edit that is durable."""
    lag_edits: int
    """Edits that were handed over and are not durable yet."""
    lag_s: float
    """Seconds that the oldest of them waits."""
    syncs: int
    """Batches that became durable."""
    sync_s_mean: float
    sync_s_max: float
    edits: int
    bytes: int
    errors: int
    last_error: str
    """The last failure of this journal, in words; empty if there was none."""


class JournalStats:
    """The figures of one journal, as metrics and as plain data."""

    def __init__(self, metrics: Metrics, journal: str, now: Callable[[], float] | None = None) -> None:
        """``journal`` is the label of the metrics. ``now`` is a clock in seconds; by default the running loop's."""
        labels = {"journal": journal}
        self._now = now or (lambda: asyncio.get_running_loop().time())
        self._sync = metrics.histogram("edit_journal_sync_seconds", "From an append until it is durable", **labels)
        self._edits = metrics.counter("edit_journal_edits", "Edits that became durable", **labels)
        self._bytes = metrics.counter("edit_journal_bytes", "Bytes of edits that became durable", **labels)
        self._errors = metrics.counter("edit_journal_errors", "Steps of the journal that failed", **labels)
        self._durable = metrics.gauge("edit_journal_durable_txid", "The last durable edit", **labels)
        self._lag_edits = metrics.gauge("edit_journal_lag_edits", "Edits handed over and not durable yet", **labels)
        self._lag_s = metrics.gauge("edit_journal_lag_seconds", "How long the oldest of them waits", **labels)
        self._waiting: deque[tuple[Batch, float]] = deque()
        self._appended: TxId = 0
        self._sync_max = 0.0
        self._last_error = ""

    def measured(self, writer: JournalWriter) -> MeasuredWriter:
        """The same writer, with these figures."""
        return MeasuredWriter(writer, self)

    def begins_at(self, durable: TxId) -> None:
        """The writer was opened, and the journal is durable up to there."""
        self._appended = durable
        self._durable.value = durable

    def appended(self, batch: Batch) -> tuple[Batch, float]:
        """A batch is handed to the journal. Returns its ticket."""
        ticket = (batch, self._now())
        self._waiting.append(ticket)
        self._appended = batch.last
        self._note_lag()
        return ticket

    def ended(self, ticket: tuple[Batch, float], error: BaseException | None = None) -> None:
        """The batch of a ticket is durable, or failed."""
        batch, since = ticket
        self._waiting = deque(each for each in self._waiting if each is not ticket)
        if error is None:
            took = self._now() - since
            self._sync.observe(took)
            self._sync_max = max(self._sync_max, took)
            self._edits.add(batch.count)
            self._bytes.add(len(batch.frames))
            self._durable.value = max(self._durable.value, batch.last)
        else:
            self.failed(error)
        self._note_lag()

    def failed(self, error: BaseException) -> None:
        """A step failed."""
        self._errors.add()
        self._last_error = str(error) or type(error).__name__

    def _note_lag(self) -> None:
        self._lag_edits.value = sum(batch.count for batch, _ in self._waiting)
        self._lag_s.value = self._now() - self._waiting[0][1] if self._waiting else 0.0

    def refresh(self) -> None:
        """Bring the gauges up to date; for the exposition, before it shows them."""
        self._note_lag()

    def now(self) -> JournalFigures:
        """All figures as they are now."""
        self._note_lag()
        syncs = self._sync.count
        return JournalFigures(
            appended_txid=self._appended,
            durable_txid=int(self._durable.value),
            lag_edits=int(self._lag_edits.value),
            lag_s=self._lag_s.value,
            syncs=syncs,
            sync_s_mean=self._sync.total / syncs if syncs else 0.0,
            sync_s_max=self._sync_max,
            edits=self._edits.value,
            bytes=self._bytes.value,
            errors=self._errors.value,
            last_error=self._last_error,
        )


class _MeasuredSegment(SegmentWriter):
    def __init__(self, segment: SegmentWriter, stats: JournalStats) -> None:
        self._segment, self._stats = segment, stats

    @property
    def info(self) -> SegmentInfo:
        return self._segment.info

    def append(self, batch: Batch) -> Awaitable[None]:
        ticket = self._stats.appended(batch)
        try:
            appended = self._segment.append(batch)
        except BaseException as error:
            self._stats.ended(ticket, error)
            raise
        return self._wait_until_durable(ticket, appended)

    async def _wait_until_durable(self, ticket: tuple[Batch, float], appended: Awaitable[None]) -> None:
        try:
            await appended
        except BaseException as error:
            self._stats.ended(ticket, error)
            raise
        self._stats.ended(ticket)

    async def close(self) -> None:
        await self._segment.close()

    async def abort(self) -> None:
        await self._segment.abort()


class MeasuredWriter(JournalWriter):
    """The same writer, with figures. Its capabilities are asked of ``inner``."""

    def __init__(self, inner: JournalWriter, stats: JournalStats) -> None:
        self.inner, self.stats = inner, stats
        stats.begins_at(inner.durable_txid)

    @property
    def token(self) -> FencingToken:
        return self.inner.token

    @property
    def recovery(self) -> RecoveryReport:
        return self.inner.recovery

    @property
    def max_batch_bytes(self) -> int:
        return self.inner.max_batch_bytes

    @property
    def durable_txid(self) -> TxId:
        return self.inner.durable_txid

    async def start_segment(self, first: TxId, layout_version: int) -> SegmentWriter:
        return _MeasuredSegment(await self._noted(self.inner.start_segment(first, layout_version)), self.stats)

    async def finalize_segment(self, first: TxId, last: TxId) -> SegmentInfo:
        return await self._noted(self.inner.finalize_segment(first, last))

    async def discard_segment(self, first: TxId) -> None:
        await self._noted(self.inner.discard_segment(first))

    async def purge(self, min_txid: TxId) -> tuple[SegmentInfo, ...]:
        return await self._noted(self.inner.purge(min_txid))

    async def save_snapshot(self, at: TxId, chunks: Chunks) -> SnapshotInfo:
        return await self._noted(self.inner.save_snapshot(at, chunks))

    async def delete_snapshot(self, at: TxId) -> None:
        await self._noted(self.inner.delete_snapshot(at))

    async def adopt_snapshots(self) -> tuple[SnapshotInfo, ...]:
        return await self._noted(self.inner.adopt_snapshots())

    async def ensure_owner(self) -> None:
        await self._noted(self.inner.ensure_owner())

    async def segments(self) -> tuple[SegmentInfo, ...]:
        return await self.inner.segments()

    def read(self, segment: SegmentInfo, start: TxId) -> AsyncGenerator[Batch, None]:
        return self.inner.read(segment, start)

    async def discarded(self) -> DiscardedEdits:
        return await self.inner.discarded()

    async def changed(self, timeout_s: float) -> None:
        await self.inner.changed(timeout_s)

    async def close(self) -> None:
        await self.inner.close()

    async def _noted(self, step: Awaitable[T]) -> T:
        try:
            return await step
        except JournalError as error:
            self.stats.failed(error)
            raise
