"""Runs of plain reads of entries that are at hand: looked up, read without waiting, verified (B7), made into replies.

A run ends before the first entry that is not at hand, not here, damaged, or larger than was thought. Nothing is said
about that entry: whoever reads it with ``EntryReader.read`` is told.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Final

from bookkeeper.codec import RECORD_HEADER, Answers, Reads, answer_reads
from bookkeeper.errors import CorruptionError
from bookkeeper.storage.index.entry_index import LOG_SHIFT, OFFSET_MASK, Extent
from bookkeeper.storage.ledger_descriptor import LedgerDescriptor
from bookkeeper.storage.reads.entry_reader import HINT_UNIT, EntryReader, PageMissing

RUN_BYTES: Final = 256 * 1024
"""Bytes of records that are read for one run, or one record."""

RUN_MAX: Final = 256
"""Reads of one run."""


class CachedReads:
    """Answers runs of reads. Owned by the loop's thread."""

    def __init__(self, reader: EntryReader) -> None:
        self._reader = reader
        self._room = memoryview(bytearray())
        """Used again for every run: fresh memory costs more than the read."""

    def answer(self, state: LedgerDescriptor, reads: Reads, i0: int, frame_max: int) -> Answers:
        """Replies to the reads from ``i0`` on, which is one of this ledger: as many as are, and are at hand."""
        step = state.read_hint
        limit = min(RUN_MAX, max(1, RUN_BYTES // step))
        ids = reads.entry_ids[i0 : i0 + _same(reads.ledger_ids, i0, limit)]
        records = self._room_for(len(ids) * step)
        ready = self._read(state, ids, records, step)
        answers = answer_reads(reads, i0, ready, records, step, state.lac, frame_max)
        if answers.n:
            self._reader.stats.reads_inline += answers.n
            if not 0 <= step - answers.largest - RECORD_HEADER < HINT_UNIT:
                self._reader.learn(state, answers.largest)
        return answers

    def _room_for(self, size: int) -> memoryview:
        if size > RUN_BYTES:
            return memoryview(bytearray(size))
        if not self._room:
            self._room = memoryview(bytearray(RUN_BYTES))
        return self._room

    def _read(self, state: LedgerDescriptor, ids: array[int], records: memoryview, step: int) -> int:
        """Read records into ``records``, one each ``step`` bytes; how many could be had without waiting."""
        file_of, written = self._reader.entry_logs.file, self._reader.groups.logged_below
        log_id, ready, at = -1, 0, 0
        try:
            for found in self._places(state, ids):
                if not found or found >= written:
                    break
                if found >> LOG_SHIFT != log_id:
                    log_id = found >> LOG_SHIFT
                    read = file_of(log_id).pread_cached_into
                end = at + step
                got = read(records[at:end], found & OFFSET_MASK)
                if got is None:
                    break
                if got != step:  # the end of the log: what an earlier read has left there is no part of it
                    records[at + got : end] = bytes(step - got)
                at = end
                ready += 1
        except (PageMissing, CorruptionError, OSError):
            pass  # met again, and told, by whoever reads it then
        return ready

    def _places(self, state: LedgerDescriptor, ids: array[int]) -> Iterable[int]:
        """Where the entries lie; 0: not here.

        Raises:
            PageMissing, CorruptionError, OSError: while it is gone through.
        """
        tail = state.index.tail
        first, places = tail.first, tail.places
        if places and min(ids) >= first and max(ids) < first + len(places):
            found = [places[entry_id - first] for entry_id in ids]
            if all(found):
                return found
        if (settled := state.index.settled) is not None:
            return self._in_segments(*settled, ids)
        return (self._reader.find(state, entry_id) for entry_id in ids)

    def _in_segments(self, firsts: array[int], extents: list[Extent], ids: array[int]) -> Iterator[int]:
        reader = self._reader
        page_of = reader.pages.get
        for entry_id in ids:
            extent = extents[bisect_right(firsts, entry_id) - 1]
            at = entry_id - extent.first
            if not 0 <= at < extent.count:
                return
            page = page_of(extent)
            yield (page if page is not None else reader.page(extent))[at]


def _same(ledger_ids: array[int], i0: int, limit: int) -> int:
    """How many from ``i0`` on are of one ledger, counted up to ``limit``."""
    ledger_id, i1 = ledger_ids[i0], i0 + 1
    if i1 == len(ledger_ids) or ledger_ids[i1] != ledger_id:
        return 1
    some = ledger_ids[i0 : i0 + limit]
    if some.count(ledger_id) == len(some):
        return len(some)
    return next(count for count, other in enumerate(some) if other != ledger_id)
