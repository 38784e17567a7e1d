"""What a reader is to an application, wherever its stream is: batches, Arrow, iteration, and gaps on the way."""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from collections.abc import AsyncIterator, Sequence
from math import inf
from typing import Any, NoReturn

from segments.closing import Closing
from segments.errors import PositionTruncatedError, StreamError, StreamGapError
from segments.read.batches.ready_queue import ReadyQueue
from segments.read.batches.record_batch import EntrySlice, RecordBatch
from segments.read.options import BATCH_RECORDS, OnGap
from segments.record import Gap, GapKind, StoredRecord

_log = logging.getLogger(__name__)


class ReaderFront(Closing):
    """Reads one stream. ``async with`` closes it. Iterating gives records, and gaps with ``on_gap="yield"``."""

    __slots__ = ("_on_gap", "_ready", "skipped_gaps")

    def __init__(self, ready: ReadyQueue, on_gap: OnGap) -> None:
        self._ready = ready
        self._on_gap = on_gap
        self.skipped_gaps = 0
        """Gaps that were passed over with ``on_gap="skip"``."""

    @property
    @abstractmethod
    def _stream_name(self) -> str:
        """For messages."""

    @abstractmethod
    async def _fill(self, timeout: float | None) -> bool:
        """Have something to hand out. False: nothing within ``timeout``, or nothing follows."""

    @abstractmethod
    def _hand_out(self, slices: Sequence[EntrySlice]) -> None:
        """Note what is handed out."""

    def _drop_gap(self) -> Gap:
        """Take the gap that comes next."""
        return self._ready.take_gap()

    async def next_batch(
        self, max_records: int = BATCH_RECORDS, *, max_bytes: int | None = None, wait: float | None = None
    ) -> RecordBatch:
        """The next records: at least one, at most ``max_records``, and about ``max_bytes``.

        With ``wait`` this collects for up to so many seconds until it has ``max_records``; otherwise it returns what
        there is as soon as there is something. The batch is empty if nothing came within ``wait``, or if the reader has
        ended. An error that comes while it collects ends the collecting: what it has is returned.

        Raises: as next, where there is nothing to return.
        """
        loop = asyncio.get_running_loop()
        until = None if wait is None else loop.time() + wait
        slices: list[EntrySlice] = []
        left, size = max_records, float(inf if max_bytes is None else max_bytes)
        while left > 0:
            if not self._ready:
                if slices and until is None:
                    break
                try:
                    if not await self._fill(None if until is None else max(0.0, until - loop.time())):
                        break
                except StreamError:
                    if not slices:
                        raise
                    break  # what was taken is not lost; reading again meets the error, if it lasts
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

    async def skip_gap(self) -> Gap | None:
        """Pass over the gap that comes next, which was raised; return it. None, and nothing is passed, if records come
        next."""
        if self._ready and isinstance(self._ready.first, Gap):
            return self._drop_gap()
        return None

    def _pass_gap(self, gap: Gap) -> bool:
        """Deal with the gap that comes next. Returns whether to hand it out."""
        if self._on_gap == "raise":
            self._raise_gap(gap)
        self._drop_gap()
        if self._on_gap == "skip":
            self.skipped_gaps += 1
            _log.warning("a reader of stream %s passes over a gap: %s", self._stream_name, _told(gap))
            return False
        return True

    def _raise_gap(self, gap: Gap) -> NoReturn:
        """The gap stays: reading again raises again, until ``skip_gap()`` passes it."""
        text = f"stream {self._stream_name}: {_told(gap)}"
        if gap.kind in (GapKind.TRUNCATED, GapKind.EXPIRED):
            raise PositionTruncatedError(text, stream=self._stream_name, position=gap.last.next)
        raise StreamGapError(text, stream=self._stream_name, position=gap.first)


def _told(gap: Gap) -> str:
    many = "records" if gap.records is None else f"{gap.records} record{'' if gap.records == 1 else 's'}"
    return f"{many} from {gap.first} to {gap.last} cannot be read ({gap.kind.value}): {gap.detail}"
