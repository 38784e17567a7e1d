"""The records of a piece of an entry log, by ledger, and which of them live. Pure: arrays in, arrays out.

Work is done in runs. Only records whose ids do not ascend, and pages in which something has changed, are looked at one
by one.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from operator import le
from struct import Struct

from bookkeeper.codec import RECORD_HEADER, record_places
from bookkeeper.codec.shapes import Scan
from bookkeeper.errors import CorruptionError
from bookkeeper.storage.entry_log.entry_log_file import Usage
from bookkeeper.storage.index.entry_index import PAGE, place
from bookkeeper.storage.index.moved_entries import MovedEntries, all_at, pages

_LAC = Struct(">q")


class UnindexedRecordsError(CorruptionError):
    """An entry log has records of a ledger that the index lacks: a missing entry of it is answered "unknown"."""

    def __init__(self, ledger_id: int, reason: str) -> None:
        super().__init__(reason)
        self.ledger_id = ledger_id


def _no_places() -> array[int]:
    return array("q")


@dataclass(slots=True)
class LedgerRecords:
    """Entries of one ledger in a chunk. Ids ascend; all are parallel."""

    ledger_id: int
    entry_ids: array[int] = field(default_factory=_no_places)
    places: array[int] = field(default_factory=_no_places)
    """Where they are in the source."""
    runs: list[tuple[int, int]] = field(default_factory=list)
    """(first, end): which records of the chunk they are, in the same order."""

    def only(self, kept: Sequence[int]) -> LedgerRecords:
        """Those of them, by their place in the arrays."""
        records = [record for run in self.runs for record in range(*run)]
        return LedgerRecords(
            self.ledger_id,
            array("q", [self.entry_ids[at] for at in kept]),
            array("q", [self.places[at] for at in kept]),
            [(records[at], records[at] + 1) for at in kept],
        )


class Chunk:
    """Consecutive records of one log that passed their checks."""

    def __init__(self, data: bytes, at: int, log_id: int, scan: Scan) -> None:
        """
        Args:
            at: where ``data`` begins in the log.
            scan: its records; there is at least one.
        """
        self.data, self.scan = data, scan
        self.end = at + scan.next
        """Where the next record begins in the log."""
        self.states: list[int] = []
        """Which of the records are state records."""
        self._ends = scan.offsets[1:]
        self._ends.append(scan.next)
        self._base = place(log_id, at)
        parts: dict[int, LedgerRecords] = {}
        begin = 0
        for ledger_id, group in groupby(scan.ledger_ids):
            end = begin + len(list(group))
            self._add(parts, ledger_id, begin, end)
            begin = end
        self.parts = [
            part if _ascends(part.entry_ids) else part.only(_order(part.entry_ids)) for part in parts.values()
        ]
        """The entries, by ledger."""

    def _add(self, parts: dict[int, LedgerRecords], ledger_id: int, begin: int, end: int) -> None:
        ids = self.scan.entry_ids
        if min(ids[begin:end]) < 0:
            self.states += [at for at in range(begin, end) if ids[at] < 0]
            kept = [(at, at + 1) for at in range(begin, end) if ids[at] >= 0]
        else:
            kept = [(begin, end)]
        for first, stop in kept:
            part = parts.setdefault(ledger_id, LedgerRecords(ledger_id))
            part.entry_ids += ids[first:stop]
            part.places += record_places(self._ends, first, stop, self.scan.offsets[0], self._base)
            part.runs.append((first, stop))

    def state(self, at: int) -> tuple[int, int, int]:
        """(ledger, kind, LAC) of a state record."""
        (lac,) = _LAC.unpack_from(self.data, self.scan.offsets[at] + RECORD_HEADER + 16)
        return self.scan.ledger_ids[at], self.scan.entry_ids[at], lac

    def copy(
        self, parts: Sequence[LedgerRecords], states: Sequence[int], log_id: int, offset: int
    ) -> tuple[bytes, list[MovedEntries], Usage]:
        """The bytes of these records for ``offset`` of log ``log_id``, where their entries are then, and whose they
        are."""
        pieces: list[memoryview] = []
        moves: list[MovedEntries] = []
        usage: Usage = {}
        view, size = memoryview(self.data), 0
        for part in parts:
            begin, new = size, array("q")
            for first, stop in part.runs:
                start, end = self.scan.offsets[first], self._ends[stop - 1]
                new += record_places(
                    self._ends, first, stop, self.scan.offsets[0], place(log_id, offset + size) - start
                )
                pieces.append(view[start:end])
                size += end - start
            moves.append(MovedEntries(part.ledger_id, part.entry_ids, part.places, new))
            _count(usage, part.ledger_id, size - begin, len(new))
        for at in states:
            start, end = self.scan.offsets[at], self._ends[at]
            pieces.append(view[start:end])
            size += end - start
            _count(usage, self.scan.ledger_ids[at], end - start, 1)
        return b"".join(pieces), moves, usage


def living(part: LedgerRecords, page_of: Callable[[int], array[int]]) -> LedgerRecords | None:
    """The entries whose place in the index is the one in the source; None if there are none.

    Args:
        page_of: the places of a page, by number. What it raises is passed on.

    Raises:
        UnindexedRecordsError: the index has no place at all for one of them.
    """
    kept: list[int] = []
    for number, i0, i1 in pages(part.entry_ids):
        page = page_of(number)
        if all_at(page, PAGE * number, part.entry_ids, i0, i1, part.places):
            kept += range(i0, i1)
            continue
        for at in range(i0, i1):
            found = page[part.entry_ids[at] - PAGE * number]
            if not found:
                entry = f"entry {part.entry_ids[at]} of ledger {part.ledger_id}"
                raise UnindexedRecordsError(part.ledger_id, f"it holds {entry}, which the index does not know")
            if found == part.places[at]:
                kept.append(at)
    if len(kept) == len(part.entry_ids):
        return part
    return part.only(kept) if kept else None


def _ascends(entry_ids: array[int]) -> bool:
    return all(map(le, entry_ids, islice(entry_ids, 1, None)))


def _order(entry_ids: array[int]) -> list[int]:
    return sorted(range(len(entry_ids)), key=entry_ids.__getitem__)


def _count(usage: Usage, ledger_id: int, size: int, records: int) -> None:
    row = usage.setdefault(ledger_id, [0, 0])
    row[0] += size
    row[1] += records
