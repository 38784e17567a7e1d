"""What an application holds to read a stream: records one by one, in batches, or as Arrow."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from math import inf
from typing import Any, NoReturn

from segments.arguments import check_timeout
from segments.closing import Closing
from segments.errors import PositionTruncatedError, StreamGapError
from segments.position import Position
from segments.read.fetcher import StreamFetcher
from segments.read.locator import Locator
from segments.read.options import BATCH_RECORDS, DEFAULT_OPTIONS, Parts, ReadOptions
from segments.read.reader_state import Lag, ReaderCondition, ReaderState, lag_at
from segments.read.record_batch import EntrySlice, RecordBatch
from segments.read.stream_source import StreamSource
from segments.record import Gap, GapKind, StoredRecord
from segments.seek import Seek

_log = logging.getLogger(__name__)


class Reader(Closing):
    """Reads one stream. ``async with`` closes it. Iterating gives records, and gaps with ``on_gap="yield"``."""

    __slots__ = ("_busy", "_fetcher", "_last_append_ms", "_locator", "_on_gap", "_ready", "_source", "skipped_gaps")

    def __init__(
        self,
        source: StreamSource,
        locator: Locator,
        start: Seek,
        options: ReadOptions = DEFAULT_OPTIONS,
        *,
        parts: Callable[[], Parts] | None = None,
    ) -> None:
        self._source = source
        self._locator = locator
        self._on_gap = options.on_gap
        self._fetcher = StreamFetcher(source, locator, start, options, parts)
        self._ready = self._fetcher.ready
        self._busy = False
        self._last_append_ms: int | None = None
        self.skipped_gaps = 0
        """Gaps that were passed over with ``on_gap="skip"``."""

    # -- what it says -------------------------------------------------------------------------------------

    @property
    def position(self) -> Position:
        """Where the next record is, or directly behind the last one that was handed out."""
        if self._ready:
            item = self._ready.first
            return item.first if isinstance(item, Gap) else item.entry.position(item.a)
        return self._fetcher.position

    @property
    def caught_up(self) -> bool:
        """Whether everything that was confirmed, as far as this reader knows, was handed out."""
        return self._fetcher.caught_up and not self._ready

    @property
    def ended(self) -> bool:
        """Whether no record follows: the stop was reached, or a sealed stream's end, or any end without ``follow``."""
        return self._fetcher.ended and not self._ready

    async def lag(self) -> Lag:
        """How far this reader is behind the stream's end. Raises: StreamNotFoundError, StreamUnavailableError."""
        place = self.position if self._ready else self._fetcher.place
        return await lag_at(self._source, self._locator, place, self._last_append_ms)

    async def state(self) -> ReaderState:
        """Whether this reader is idle, because nothing is written, or stuck, because something fails. It asks.

        Raises: StreamNotFoundError: the stream was deleted.
        """
        fetcher = self._fetcher
        condition = ReaderCondition(
            self._source, fetcher.feed, self.position, self.caught_up, self.ended, fetcher.quiet_since
        )
        return await condition.look()

    # -- reading ------------------------------------------------------------------------------------------

    async def next(self, timeout: float | None = None) -> StoredRecord | Gap | None:
        """The next record. None: it did not come within ``timeout`` seconds, or there is none (``ended`` tells).

        Raises:
            PositionTruncatedError, StreamGapError: records are missing here, and ``on_gap`` is ``"raise"``.
            StreamNotFoundError: the stream was deleted. ReaderIdleError. StreamUnavailableError, StreamMetadataError:
            call again. StreamClosedError.
        """
        while True:
            if not self._ready and not await self._fill(timeout):
                return None
            item = self._ready.first
            if isinstance(item, Gap):
                if self._pass_gap(item):
                    return item
                continue
            entry, slot = self._ready.take_one()
            self._last_append_ms = entry.append_ms
            return entry.record(slot)

    async def next_batch(
        self, max_records: int = BATCH_RECORDS, *, max_bytes: int | None = None, wait: float | None = None
    ) -> RecordBatch:
        """The next records: at least one, at most ``max_records``, and about ``max_bytes``.

        With ``wait`` this collects for up to so many seconds until it has ``max_records``; otherwise it returns what
        there is as soon as there is something. The batch is empty if nothing came within ``wait``, or if the reader has
        ended.

        Raises: as next.
        """
        loop = asyncio.get_running_loop()
        until = None if wait is None else loop.time() + wait
        slices: list[EntrySlice] = []
        left, size = max_records, float(inf if max_bytes is None else max_bytes)
        while left > 0:
            if not self._ready:
                if slices and until is None:
                    break
                if not await self._fill(None if until is None else max(0.0, until - loop.time())):
                    break
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
            slices += taken
            left -= sum(s.b - s.a for s in taken)
            if size != inf:
                size -= sum(s.entry.size * (s.b - s.a) // s.entry.count for s in taken)
        if slices:
            self._last_append_ms = slices[-1].entry.append_ms
        return RecordBatch(slices)

    async def batches(
        self, max_records: int = BATCH_RECORDS, max_bytes: int | None = None
    ) -> AsyncIterator[RecordBatch]:
        """The records in batches, as fast as they come, until the reader has ended. Raises: as next."""
        while batch := await self.next_batch(max_records, max_bytes=max_bytes):
            yield batch

    async def arrow_batches(self, max_records: int = BATCH_RECORDS) -> AsyncIterator[Any]:
        """The records as ``pyarrow.RecordBatch``es, which share the memory of the entries. Raises: as next, and
        MissingLibraryError: pyarrow is not installed."""
        async for batch in self.batches(max_records):
            for each in batch.arrow():
                yield each

    async def __aiter__(self) -> AsyncIterator[StoredRecord | Gap]:
        while batch := await self.next_batch():
            if batch.gap is not None:
                yield batch.gap
            for record in batch.records():
                yield record

    async def seek(self, seek: Seek) -> None:
        """Go on elsewhere. Nothing that was fetched before is handed out afterwards."""
        await self._fetcher.seek(seek)
        self._last_append_ms = None

    async def skip_gap(self) -> Gap | None:
        """Pass over the gap that comes next, which was raised; return it. None, and nothing is passed, if records come
        next."""
        if self._ready and isinstance(self._ready.first, Gap):
            return self._ready.take_gap()
        return None

    async def close(self) -> None:
        """Close the reader. A read that waits raises StreamClosedError. Idempotent."""
        await self._fetcher.close()

    # -- handing out --------------------------------------------------------------------------------------

    def _pass_gap(self, gap: Gap) -> bool:
        """Deal with the gap that comes next. Returns whether to hand it out."""
        if self._on_gap == "raise":
            self._raise_gap(gap)
        self._ready.take_gap()
        if self._on_gap == "skip":
            self.skipped_gaps += 1
            _log.warning("a reader of stream %s passes over a gap: %s", self._source.name, _told(gap))
            return False
        return True

    def _raise_gap(self, gap: Gap) -> NoReturn:
        """The gap stays: reading again raises again, until ``skip_gap()`` passes it."""
        text = f"stream {self._source.name}: {_told(gap)}"
        if gap.kind in (GapKind.TRUNCATED, GapKind.EXPIRED):
            raise PositionTruncatedError(text, stream=self._source.name, position=gap.last.next)
        raise StreamGapError(text, stream=self._source.name, position=gap.first)

    async def _fill(self, timeout: float | None) -> bool:
        """Fetch something to hand out. False: nothing within ``timeout``, or nothing follows."""
        check_timeout(timeout)
        if self._busy:
            raise RuntimeError(f"two tasks read from one reader of stream {self._source.name} at the same time")
        self._busy = True
        try:
            return await self._fetcher.fetch(timeout)
        finally:
            self._busy = False


def _told(gap: Gap) -> str:
    many = "records" if gap.records is None else f"{gap.records} record{'' if gap.records == 1 else 's'}"
    return f"{many} from {gap.first} to {gap.last} cannot be read ({gap.kind.value}): {gap.detail}"
