"""Turns the payloads of one segment into entries with records, in order, and notices what is missing (pure).

Every entry says the sequence number of its first record, or of the next one if it has none. So a record that is missing
is noticed at the next good entry, or at the end of the segment, wherever the loss came from.

    on_run(first, payloads)   good entries, and gaps between them
    on_broken(entry, ...)     an entry that cannot be read; its number of records is known at the next good entry
    on_end(end)               the segment has ended, and its records with it
    take_unsized_gap()        nothing follows for now: report a gap although its size is not known
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from segments.chain import StreamSegment
from segments.entries.layout import EntryKind
from segments.entries.lone_entries import LoneEntries
from segments.entries.stored_entry import StoredEntry, decode_entry
from segments.errors import EntryCorruptError
from segments.position import Position
from segments.record import Gap, GapKind

BEFORE: Final = -1
"""The slot of the position directly before an entry, where a gap with an unknown last slot ends."""

Item: TypeAlias = StoredEntry | LoneEntries | Gap


class EntrySequence:
    """The entries of a segment from ``first_entry`` on. ``expected`` is the number of the next record; None: unknown,
    until an entry tells. ``base`` is that of the segment."""

    __slots__ = ("_base", "_broken", "_first_entry", "_next_entry", "_pieces", "_segment", "earlier_entry", "expected")

    def __init__(self, segment: int, first_entry: int, expected: int | None, base: int = 0) -> None:
        self._segment = segment
        self._base = base
        self._first_entry = first_entry
        self._next_entry = first_entry
        self._pieces: list[StoredEntry] = []
        self._broken: tuple[int, GapKind, str] | None = None
        """The first broken entry since the last good one, and why."""
        self.expected = expected
        self.earlier_entry: int | None = None
        """Begin anew at this entry: the first one holds a later piece of a record."""

    def on_run(self, first: int, payloads: Sequence[bytes]) -> list[Item]:
        """Take entries. Those without records are not handed on; lone ones that follow each other come as one.

        Raises:
            UnsupportedStreamFormatError: a newer program wrote one of them.
        """
        found: list[Item] = []
        segment, base, following, end = self._segment, self._base, first, first + len(payloads)
        while following < end:
            entry_id = following
            if self._broken is None:
                run = LoneEntries.found(payloads, entry_id - first, segment, entry_id, self.expected, base)
                if run is not None:
                    following = self._next_entry = entry_id + run.count
                    self.expected = run.first_seq_no + run.count
                    found.append(run)
                    continue
            following = self._next_entry = entry_id + 1
            try:
                entry = decode_entry(payloads[entry_id - first], segment, entry_id, base)
                if entry.kind is EntryKind.PIECE:
                    whole = self._on_piece(entry)
                    if self.earlier_entry is not None:
                        return []
                    if whole is None:
                        continue
                    entry = whole
            except EntryCorruptError as error:
                self.on_broken(entry_id, GapKind.CORRUPT, str(error))
                continue
            if entry.first_seq_no != self.expected or self._broken is not None:
                if self.expected is not None and entry.first_seq_no < self.expected:
                    text = f"entry {entry_id} begins with record {entry.first_seq_no}, but {self.expected} is next"
                    self.on_broken(entry_id, GapKind.CORRUPT, text)
                    continue
                if (gap := self._gap_before(entry.first_seq_no, entry_id)) is not None:
                    found.append(gap)
            self.expected = entry.first_seq_no + entry.count
            if entry.count:
                found.append(entry)
        return found

    def on_broken(self, entry: int, kind: GapKind, why: str) -> None:
        """An entry cannot be read."""
        self._next_entry = entry + 1
        self._pieces.clear()
        if self._broken is None:
            self._broken = (entry, kind, why)

    def on_end(self, end_seq_no: int | None) -> Gap | None:
        """The segment has ended. ``end_seq_no`` is the number behind its last record; None: unknown."""
        if end_seq_no is None or self.expected is None:
            return self.take_unsized_gap()
        gap = self._gap_before(end_seq_no, self._next_entry) if end_seq_no > self.expected else None
        self._broken, self.expected = None, max(end_seq_no, self.expected)
        return gap

    def take_unsized_gap(self) -> Gap | None:
        """The gap of broken entries at the end, of unknown size; None if no entry is broken."""
        if self._broken is None:
            return None
        first, kind, why = self._broken
        self._broken, self.expected = None, None
        last = Position(self._segment, self._next_entry, BEFORE)
        return Gap(Position(self._segment, first, 0), last, kind, None, why)

    def _gap_before(self, seq_no: int, entry: int) -> Gap | None:
        """The gap before ``entry``, which begins with record ``seq_no``."""
        first, kind, why = self._broken or (entry, GapKind.LOST, "records are missing between two entries")
        was_broken, self._broken = self._broken is not None, None
        missing = None if self.expected is None else seq_no - self.expected
        if missing == 0 or (missing is None and not was_broken):
            return None
        last = Position(self._segment, entry, BEFORE)
        return Gap(min(Position(self._segment, first, 0), last), last, kind, missing, why)

    def _on_piece(self, entry: StoredEntry) -> StoredEntry | None:
        """The entry with all pieces, once the last one has come."""
        info = entry.piece
        assert info is not None
        if info.number == 0:
            self._pieces.clear()
        elif (
            not self._pieces
            and self._broken is None
            and entry.entry == self._first_entry
            and info.number <= entry.entry  # else it is damaged
        ):
            self.earlier_entry = entry.entry - info.number
            return None
        self._pieces.append(entry)
        if not info.is_last:
            return None
        pieces, self._pieces = self._pieces, []
        return entry.assembled(pieces)


def truncated(first: Position, beginning: Position, missing: int | None) -> Gap:
    """The stream begins behind ``first`` by now. ``missing`` is the number of records; None: unknown."""
    before = Position(beginning.segment, beginning.entry, beginning.slot - 1)
    text = f"the stream was truncated: it begins at {beginning}"
    return Gap(first, max(first, before), GapKind.TRUNCATED, missing, text)


def lost_before(segment: StreamSegment, expected: int | None) -> Gap | None:
    """The records from number ``expected`` to the beginning of the segment; None if there are none, or nobody knows."""
    if expected is None or segment.start_seq_no <= expected:
        return None
    before = Position(segment.number, 0, -1)
    text = f"segment {segment} begins with record {segment.start_seq_no}, but {expected} is next"
    return Gap(before, before, GapKind.LOST, segment.start_seq_no - expected, text)


def lost_with(segment: StreamSegment, first: Position, expected: int | None) -> Gap:
    """The rest of a segment whose ledger does not exist, from ``first``, the record number ``expected``, on."""
    missing = None
    if segment.end_seq_no is not None and expected is not None:
        missing = segment.end_seq_no - expected
    last = Position(segment.number + 1, 0, -1)
    return Gap(first, last, GapKind.LOST, missing, f"the ledger of segment {segment} does not exist any more")
