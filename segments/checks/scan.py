"""Finds out from a segment's entries what it holds (a machine: it is given the entries in order).

Its answer is what the stream's node should say: numbers, last record, transaction ids, times. An entry that cannot be
read is counted and named; the scan goes on behind it.
"""

from __future__ import annotations

from segments.chain import SegmentContents
from segments.checks.findings import ScannedSegment
from segments.entries.layout import EntryKind
from segments.entries.stored_entry import StoredEntry, decode_entry
from segments.errors import StreamCorruptError, UnsupportedStreamFormatError


class SegmentScanner:
    """Takes the entries of one segment, from the first one on. ``base`` is that of the segment."""

    def __init__(self, segment: int, base: int = 0) -> None:
        self._segment, self._base = segment, base
        self._records = self._bytes = 0
        self._last_entry = -1
        self._last: tuple[int, int] | None = None
        self._start_seq_no: int | None = None
        self._next_seq_no: int | None = None
        self._txids: list[int] = []
        self._append: list[int] = []
        self._events: list[int] = []
        self._footer: int | None = None
        self._pieces: list[StoredEntry] = []
        self._damaged: list[str] = []

    def add(self, entry_id: int, data: bytes | memoryview) -> None:
        """Take the next entry."""
        if entry_id != self._last_entry + 1:
            self.missing(self._last_entry + 1, entry_id - 1)
        self._last_entry = entry_id
        self._bytes += len(data)
        self._footer = None
        try:
            self._take(decode_entry(data, self._segment, entry_id, self._base))
        except (StreamCorruptError, UnsupportedStreamFormatError) as error:
            self._damaged.append(str(error))
            self._next_seq_no = None
            self._pieces.clear()

    def missing(self, first: int, last: int, why: str = "") -> None:
        """Note that entries cannot be had."""
        said = f"entry {first} is missing" if first == last else f"entries {first} to {last} are missing"
        self._damaged.append(f"{said}: {why}" if why else said)
        self._last_entry = max(self._last_entry, last)
        self._next_seq_no = None
        self._pieces.clear()

    def _take(self, entry: StoredEntry) -> None:
        if entry.kind is EntryKind.FOOTER:
            self._footer = entry.entry
            return
        if entry.piece is not None:
            self._pieces.append(entry)
            if not entry.piece.is_last:
                return
            entry, self._pieces = entry.assembled(self._pieces), []
        else:
            self._pieces.clear()
        if not entry.count:
            return
        if self._next_seq_no is not None and entry.first_seq_no != self._next_seq_no:
            self._damaged.append(
                f"entry {entry.entry} begins at record {entry.first_seq_no}, and record {self._next_seq_no} comes next"
            )
        if self._start_seq_no is None:
            self._start_seq_no = entry.first_seq_no - self._records
        self._next_seq_no = entry.first_seq_no + entry.count
        self._records += entry.count
        self._last = (entry.entry, entry.count - 1)
        self._append = _ends([*self._append, entry.append_ms])
        self._txids = _ends([*self._txids, *(txid for txid in entry.txids() if txid is not None)])
        self._events = _extremes([*self._events, *(ms for ms in entry.event_times_ms() if ms is not None)])

    def result(self) -> ScannedSegment:
        """What the entries up to now say."""
        contents = SegmentContents(
            records=self._records,
            bytes=self._bytes,
            last_entry=self._last_entry,
            last=self._last,
            first_txid=self._txids[0] if self._txids else None,
            last_txid=self._txids[-1] if self._txids else None,
            first_append_ms=self._append[0] if self._append else None,
            last_append_ms=self._append[-1] if self._append else None,
            min_event_ms=self._events[0] if self._events else None,
            max_event_ms=self._events[-1] if self._events else None,
            footer_entry=self._footer,
        )
        return ScannedSegment(contents, self._start_seq_no, tuple(self._damaged))


def _ends(values: list[int]) -> list[int]:
    return values if len(values) < 3 else [values[0], values[-1]]


def _extremes(values: list[int]) -> list[int]:
    return values if len(values) < 2 else [min(values), max(values)]
