"""Answers runs of plain reads whose entries are in memory: finds, reads and verifies them (B7), and makes replies.

A run ends before the first entry that is not in memory, not here, damaged, or larger than expected. This module does
not answer for that entry; the caller reads it with ``EntryReader.read``.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Final

from bookkeeper.codec import RECORD_HEADER, Answers, Reads, answer_reads
from bookkeeper.errors import CorruptionError
from bookkeeper.storage.index.entry_index import LOG_SHIFT, OFFSET_MASK, Extent
from bookkeeper.storage.index.ledger_descriptor import LedgerDescriptor
from bookkeeper.storage.reads.entry_places import PageMissing
from bookkeeper.storage.reads.entry_reader import HINT_UNIT, EntryReader

RUN_BYTES: Final = 256 * 1024
"""Bytes of records that are read for one run. A single record may be larger."""

RUN_MAX: Final = 256
"""The most reads of one run."""


class CachedReads:
    """Answers runs of reads. Runs on the loop's thread."""

    def __init__(self, reader: EntryReader) -> None:
        self._reader = reader
        self._room = memoryview(bytearray())
        """Memory that every run uses again, because fresh memory costs more than the read."""
        self._one = self._room
        """The part of it that the latest single record had."""

    def answer(self, state: LedgerDescriptor, reads: Reads, i0: int, frame_max: int) -> Answers:
        """Replies to the reads from ``i0`` on, as far as they are of this ledger and in memory."""
        step = state.read_hint
        if len(reads.entry_ids) == i0 + 1:  # whoever waits for each entry asks for one at a time
            records = self._one
            if len(records) != step:
                records = self._one = self._room_for(step)[:step]
            ready = self._read_one(state, reads.entry_ids[i0], records)
        else:
            fitting = RUN_BYTES // step or 1
            limit = fitting if fitting < RUN_MAX else RUN_MAX
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

    def _read_one(self, state: LedgerDescriptor, entry_id: int, records: memoryview) -> int:
        """Read one record; 1 if it was in memory, else 0."""
        reader = self._reader
        try:
            found = reader.places.find(state, entry_id)
            if not found or found >= reader.unwritten.cached_below:
                return 0
            got = reader.source_of(found >> LOG_SHIFT).pread_cached_into(records, found & OFFSET_MASK)
        except (PageMissing, CorruptionError, OSError):
            return 0  # EntryReader.read meets the error again, and reports it
        if got is None:
            return 0
        if got != len(records):  # the end of the log; behind it are bytes of an earlier record
            records[got:] = bytes(len(records) - got)
        return 1

    def _read(self, state: LedgerDescriptor, ids: array[int], records: memoryview, step: int) -> int:
        """Read records into ``records``, one at every ``step`` bytes. Returns how many were in memory."""
        source_of, written = self._reader.source_of, self._reader.unwritten.cached_below
        log_id, ready, at = -1, 0, 0
        try:
            for found in self._places(state, ids):
                if not found or found >= written:
                    break
                if found >> LOG_SHIFT != log_id:
                    log_id = found >> LOG_SHIFT
                    read = source_of(log_id).pread_cached_into
                end = at + step
                got = read(records[at:end], found & OFFSET_MASK)
                if got is None:
                    break
                if got != step:  # the end of the log; behind it are bytes of an earlier run
                    records[at + got : end] = bytes(step - got)
                at = end
                ready += 1
        except (PageMissing, CorruptionError, OSError):
            pass  # EntryReader.read meets the error again, and reports it
        return ready

    def _places(self, state: LedgerDescriptor, ids: array[int]) -> Iterable[int]:
        """The entries' places; 0 for one that is not here.

        Raises:
            PageMissing, CorruptionError, OSError: during the iteration.
        """
        tail = state.index.tail
        first, places = tail.first, tail.places
        if places and min(ids) >= first and max(ids) < first + len(places):
            found = [places[entry_id - first] for entry_id in ids]
            if all(found):
                return found
        if (settled := state.index.settled) is not None:
            return self._in_segments(*settled, ids)
        return (self._reader.places.find(state, entry_id) for entry_id in ids)

    def _in_segments(self, firsts: array[int], extents: list[Extent], ids: array[int]) -> Iterator[int]:
        known = self._reader.places
        page_of = known.pages.get
        for entry_id in ids:
            extent = extents[bisect_right(firsts, entry_id) - 1]
            at = entry_id - extent.first
            if not 0 <= at < extent.count:
                return
            page = page_of(extent)
            yield (page if page is not None else known.page(extent))[at]


def _same(ledger_ids: array[int], i0: int, limit: int) -> int:
    """How many ids from ``i0`` on are of one ledger, up to ``limit``."""
    ledger_id, i1 = ledger_ids[i0], i0 + 1
    if i1 == len(ledger_ids) or ledger_ids[i1] != ledger_id:
        return 1
    some = ledger_ids[i0 : i0 + limit]
    if some.count(ledger_id) == len(some):
        return len(some)
    return next(count for count, other in enumerate(some) if other != ledger_id)
