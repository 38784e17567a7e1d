"""What a reader is to an application, wherever its stream is: batches, Arrow, iteration, and gaps on the way."""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from collections.abc import AsyncIterator, Sequence
from math import inf
from typing import Any, NoReturn

from segments.arguments import check_timeout, checked_seek
from segments.closing import Closing
from segments.entries.lone_entries import LoneEntries
from segments.entries.stored_entry import StoredEntry
from segments.errors import PositionTruncatedError, StreamClosedError, StreamError, StreamGapError
from segments.position import Position
from segments.read.batches.ready_queue import ReadyQueue
from segments.read.batches.record_batch import RecordBatch, Slice, sliced
from segments.read.fetch.reader_state import Lag, ReaderState
from segments.read.options import BATCH_RECORDS, OnGap
from segments.record import Gap, GapKind, StoredRecord
from segments.seek import Seek

_log = logging.getLogger(__name__)


class ReaderFront(Closing):
    """Reads one stream, for one task at a time. ``async with`` closes it. Iterating gives records, and gaps with
    ``on_gap="yield"``."""

    __slots__ = ("_busy", "_closed", "_last_append_ms", "_on_gap", "_ready", "skipped_gaps")

    def __init__(self, ready: ReadyQueue, on_gap: OnGap) -> None:
        self._ready = ready
        self._on_gap = on_gap
        self.skipped_gaps = 0
        """Gaps that were passed over with ``on_gap="skip"``."""
        self._busy = self._closed = False
        self._last_append_ms: int | None = None
        """When the last record that was handed out was appended."""

    # -- what a side does -----------------------------------------------------------------------------------

    @property
    @abstractmethod
    def _stream_name(self) -> str:
        """For messages."""

    @property
    @abstractmethod
    def _next_position(self) -> Position:
        """Directly behind the last record that was handed out, if nothing is ready."""

    @abstractmethod
    async def _fill(self, timeout: float | None) -> bool:
        """Have something to hand out. False: nothing within ``timeout``, or nothing follows."""

    @abstractmethod
    async def _go_to(self, seek: Seek) -> None:
        """Drop what is ready, and go on elsewhere."""

    @abstractmethod
    async def _end(self) -> None:
        """The reader is closed: let go of everything, and end a read that waits. Idempotent."""

    @abstractmethod
    def _hand_out(self, slices: Sequence[Slice]) -> None:
        """Note what is handed out."""

    def _hand_out_one(self, entry: StoredEntry | LoneEntries, slot: int) -> None:
        """The same for one record."""
        self._hand_out([sliced(entry, slot, slot + 1)])

    def _put_back(self, slices: Sequence[Slice]) -> None:
        """What was handed out did not arrive: it comes next again."""
        self._ready.put_back(slices)

    def _drop_gap(self) -> Gap:
        """Take the gap that comes next."""
        return self._ready.take_gap()

    # -- where it is, and what it does ----------------------------------------------------------------------

    @property
    def position(self) -> Position:
        """Where the next record is, or directly behind the last one that was handed out. Behind gateways this is
        EARLIEST before anything came, if reading began at a seek that is no position."""
        if self._ready:
            item = self._ready.first
            return item.first if isinstance(item, Gap) else item.entry.position(item.a)
        return self._next_position

    @property
    @abstractmethod
    def caught_up(self) -> bool:
        """Whether everything that was confirmed, as far as this reader knows, was handed out."""

    @property
    @abstractmethod
    def ended(self) -> bool:
        """Whether no record follows: the stop was reached, or a sealed stream's end, or any end without ``follow``."""

    @abstractmethod
    async def lag(self) -> Lag:
        """How far this reader is behind the stream's end. Raises: StreamNotFoundError, StreamUnavailableError;
        GatewayTooOldError."""

    @abstractmethod
    async def state(self) -> ReaderState:
        """Whether this reader is idle, because nothing is written, or stuck, because something fails. It asks.

        Raises: StreamNotFoundError: the stream was deleted. GatewayTooOldError.
        """

    async def seek(self, seek: Seek) -> None:
        """Go on elsewhere. Nothing that was fetched before is handed out afterwards.

        Raises: SeekFormatError: it names no position. RuntimeError: another task reads just now. StreamClosedError.
        """
        seek = checked_seek(seek)
        self._ensure_alone("seeks while another one reads")
        self._ensure_open()
        await self._go_to(seek)
        self._last_append_ms = None

    async def close(self) -> None:
        """Close the reader. A read that waits raises StreamClosedError. Idempotent."""
        self._closed = True
        await self._end()

    # -- reading --------------------------------------------------------------------------------------------

    async def next(self, timeout: float | None = None) -> StoredRecord | Gap | None:
        """The next record. None: it did not come within ``timeout`` seconds, or there is none (``ended`` tells).

        Raises:
            PositionTruncatedError, StreamGapError: records are missing here, and ``on_gap`` is ``"raise"``.
            StreamNotFoundError: the stream was deleted. ReaderIdleError. StreamUnavailableError, StreamMetadataError:
            call again. StreamClosedError. RuntimeError: another task reads just now.
        """
        while True:
            if not self._ready and not await self._wait(timeout):
                return None
            item = self._ready.first
            if isinstance(item, Gap):
                if self._pass_gap(item):
                    return item
                continue
            entry, slot = self._ready.take_one()
            self._hand_out_one(entry, slot)
            return entry.record(slot)

    async def next_batch(
        self, max_records: int = BATCH_RECORDS, *, max_bytes: int | None = None, wait: float | None = None
    ) -> RecordBatch:
        """The next records: at least one, at most ``max_records``, and about ``max_bytes``.

        With ``wait`` this collects for up to so many seconds until it has ``max_records``; otherwise it returns what
        there is as soon as there is something. The batch is empty if nothing came within ``wait``, or if the reader has
        ended. An error that comes while it collects ends the collecting: what it has is returned. Cancelling it loses
        nothing: what it has comes next again.

        Raises: as next, where there is nothing to return.
        """
        check_timeout(wait)
        loop = asyncio.get_running_loop()
        before = self._last_append_ms
        until = None if wait is None else loop.time() + wait
        slices: list[Slice] = []
        left, size = max_records, float(inf if max_bytes is None else max_bytes)
        while left > 0:
            if not self._ready:
                if slices and until is None:
                    break
                try:
                    if not await self._wait(None if until is None else max(0.0, until - loop.time())):
                        break
                except StreamError:
                    if not slices:
                        raise
                    break  # what was taken is not lost; reading again meets the error, if it lasts
                except BaseException:
                    if slices and not self._closed:
                        self._put_back(slices)
                        self._last_append_ms = before
                    raise
                continue
            if isinstance(gap := self._ready.first, Gap):
                if slices:
                    break
                if self._pass_gap(gap):
                    return RecordBatch(gap=gap)
                continue
            taken = self._ready.take(left, size, at_least_one=not slices)
            if not taken:
                break
            self._hand_out(taken)
            slices += taken
            left -= sum(s.b - s.a for s in taken)
            if size != inf:
                size -= sum(s.entry.share(s.a, s.b) for s in taken)
        return RecordBatch(slices)

    async def batches(
        self, max_records: int = BATCH_RECORDS, max_bytes: int | None = None
    ) -> AsyncIterator[RecordBatch]:
        """The records in batches, as fast as they come, until the reader has ended. Raises: as next."""
        while batch := await self.next_batch(max_records, max_bytes=max_bytes):
            yield batch

    async def arrow_batches(
        self, max_records: int = BATCH_RECORDS, *, columns: Sequence[str] | None = None
    ) -> AsyncIterator[Any]:
        """The records as ``pyarrow.RecordBatch``es, which share the memory of the entries. With ``columns`` only these
        are made. Raises: as next, and MissingLibraryError: pyarrow is not installed."""
        names = None if columns is None else tuple(columns)
        async for batch in self.batches(max_records):
            for each in batch.arrow(names):
                yield each

    async def __aiter__(self) -> AsyncIterator[StoredRecord | Gap]:
        while batch := await self.next_batch():
            if batch.gap is not None:
                yield batch.gap
            for record in batch.records():
                yield record

    async def skip_gap(self) -> Gap | None:
        """Pass over the gap that comes next, which was raised; return it. None, and nothing is passed, if records come
        next."""
        if self._ready and isinstance(self._ready.first, Gap):
            return self._drop_gap()
        return None

    async def _wait(self, timeout: float | None) -> bool:
        """Have something to hand out, for one task at a time. False: nothing came in time, or nothing follows."""
        check_timeout(timeout)
        self._ensure_alone("reads while another one does")
        self._busy = True
        try:
            return await self._fill(timeout)
        finally:
            self._busy = False

    def _ensure_alone(self, what: str) -> None:
        if self._busy:
            raise RuntimeError(
                f"two tasks use one reader of stream {self._stream_name} at the same time: this one {what}; give each "
                "its own reader"
            )

    def _ensure_open(self) -> None:
        if self._closed:
            raise StreamClosedError(f"this reader of stream {self._stream_name} is closed", stream=self._stream_name)

    def _pass_gap(self, gap: Gap) -> bool:
        """Deal with the gap that comes next. Returns whether to hand it out."""
        if self._on_gap == "raise":
            self._raise_gap(gap)
        self._drop_gap()
        if self._on_gap == "skip":
            self.skipped_gaps += 1
            _log.warning("a reader of stream %s passes over a gap: %s", self._stream_name, _gap_text(gap))
            return False
        return True

    def _raise_gap(self, gap: Gap) -> NoReturn:
        """The gap stays: reading again raises again, until ``skip_gap()`` passes it."""
        text = f"stream {self._stream_name}: {_gap_text(gap)}"
        if gap.kind in (GapKind.TRUNCATED, GapKind.EXPIRED):
            raise PositionTruncatedError(text, stream=self._stream_name, position=gap.last.next)
        raise StreamGapError(text, stream=self._stream_name, position=gap.first)


def _gap_text(gap: Gap) -> str:
    many = "records" if gap.records is None else f"{gap.records} record{'' if gap.records == 1 else 's'}"
    return f"{many} from {gap.first} to {gap.last} cannot be read ({gap.kind.value}): {gap.detail}"
