"""Decides the next position of a fetch, which records are handed out, and which are missing. Pure.

    restart --begin--> next_segment --entered--> on_run … --on_end--> next_segment …
                            |                       |
                            v                       v
                       wait, or ended      truncated, deleted, lost: a gap is reported

A shell finds positions, opens segments and waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from segments.chain import StreamChain, StreamSegment
from segments.position import EARLIEST, Position
from segments.read.batches.entry_sequence import EntrySequence, Item, lost_before, lost_with, truncated
from segments.read.batches.ready_queue import ReadyQueue
from segments.read.options import Parts
from segments.record import GapKind
from segments.seek import Seek


class NoSegment(Enum):
    """No segment is to be opened now."""

    WAIT = "there is none yet"
    CONTINUE = "one was passed, or this is the end"


class FetchMachine:
    """The position of one fetcher, and what it has fetched."""

    __slots__ = (
        "_base",
        "_cursor_seq_no",
        "_expected",
        "_parts",
        "_position",
        "_sequence",
        "caught_up",
        "ended",
        "ready",
        "seek",
        "stop",
    )

    def __init__(self, start: Seek) -> None:
        self.ready = ReadyQueue()
        """What was fetched and not handed out."""
        self.stop: Position | None = None
        """Where this ends, as far as that is found."""
        self._parts: Parts | None = None
        self._position = EARLIEST
        self._cursor_seq_no: int | None = None
        """The number of the record at the position where this began, if that is a cursor's."""
        self._sequence: EntrySequence | None = None
        self._base = 0
        """Of the segment that is read."""
        self.restart(start)

    def restart(self, seek: Seek) -> None:
        """Continue at another position; begin() follows. What is ready is dropped."""
        self.ready.clear()
        self.leave()
        self.seek: Seek | None = seek
        """Where to begin; None once that is found."""
        self.ended = self.caught_up = False
        self._expected: int | None = None
        """The number of the next record to fetch; None: unknown."""

    def begin(
        self, position: Position, *, stop: Position | None, parts: Parts | None, cursor_seq_no: int | None = None
    ) -> None:
        """The position was found. Hand out ``parts`` of what comes up to ``stop``; None: all of it, to the end."""
        self._position, self.stop, self._parts, self._cursor_seq_no = position, stop, parts, cursor_seq_no
        self.seek, self._expected = None, None

    @property
    def position(self) -> Position:
        """The next position to fetch."""
        return self.seek if isinstance(self.seek, Position) else self._position

    @property
    def resume_seek(self) -> Seek:
        """The next position to fetch; before the first fetch the seek that it begins with."""
        return self._position if self.seek is None else self.seek

    def is_truncated(self, chain: StreamChain) -> bool:
        """Whether this position was truncated; pass_truncated() follows."""
        return self._position < chain.first_position

    def missing_before(self, chain: StreamChain) -> int | None:
        """How many records were truncated from this position on; None: only the entries can tell."""
        expected = self._cursor_seq_no if self._expected is None else self._expected
        if chain.begin_seq_no is None or expected is None:
            return None
        return max(0, chain.begin_seq_no - expected)

    def pass_truncated(self, chain: StreamChain, missing: int | None) -> None:
        """Continue at the stream's beginning and report a gap of so many records; None: unknown."""
        first, self._position, self._expected = self._position, chain.first_position, chain.begin_seq_no
        if missing != 0:
            self.ready.add([truncated(first, self._position, missing)])

    def next_segment(self, chain: StreamChain) -> StreamSegment | NoSegment:
        """The segment of the next record. entered() or on_ledger_deleted() follows."""
        here = self._position
        if self.stop is not None and here >= self.stop:
            self.ended = True
            return NoSegment.CONTINUE
        segment = chain.from_number(here.segment)
        if segment is None:
            return NoSegment.WAIT
        if segment.number > here.segment:
            self._position = here = segment.first
        if not segment.is_open and (segment.last is None or here > segment.last):
            self._finish(segment, self._expected if here > segment.first else segment.start_seq_no)
            return NoSegment.CONTINUE
        if here == segment.first:
            if (gap := lost_before(segment, self._expected)) is not None:
                self._take([gap])
            self._expected = segment.start_seq_no
        return segment

    def entered(self, segment: StreamSegment) -> None:
        """The segment is read, from the next position on."""
        here, self._base = self._position, segment.base
        self._sequence = EntrySequence(segment.number, here.entry, None if here.slot else self._expected, self._base)

    def leave(self) -> None:
        """No segment is read."""
        self._sequence = None

    def on_run(self, segment: int, first: int, payloads: Sequence[bytes], next_entry: int) -> int | None:
        """Entries came. Returns None, or the earlier entry from which to read again, because a record's first pieces
        are there."""
        sequence = self._current_sequence()
        items = sequence.on_run(first, payloads)
        if (earlier := sequence.earlier_entry) is not None:
            self._sequence = EntrySequence(segment, earlier, None, self._base)
            return earlier
        self._take(items)
        self._expected = sequence.expected
        self._position = max(self._position, Position(segment, next_entry, 0))
        if self.stop is not None and self._position >= self.stop:
            self.ended = True
        return None

    def on_broken(self, entry: int, kind: GapKind, why: str) -> None:
        """An entry cannot be read from any bookie."""
        self._current_sequence().on_broken(entry, kind, why)

    def report_broken(self) -> bool:
        """Report a gap for a broken entry at the end, whose number of records is not known. Returns whether there is
        one."""
        gap = self._current_sequence().take_unsized_gap()
        if gap is not None:
            self._take([gap])
            self._expected = None
        return gap is not None

    def on_confirmed_end(self, *, follows: bool) -> None:
        """Everything that is confirmed was taken; with ``follows`` more may come."""
        self.caught_up = True
        self.ended = self.ended or not follows

    def on_end(self, segment: StreamSegment, now: StreamSegment | None) -> None:
        """The segment was read to its end. ``now`` is the segment as the node lists it; None: it does not any more."""
        sequence = self._current_sequence()
        if now is not None and (gap := sequence.on_end(now.end_seq_no)) is not None:
            self._take([gap])
        self.leave()
        self._finish(now or segment, sequence.expected)

    def on_ledger_deleted(self, segment: StreamSegment, chain: StreamChain) -> bool:
        """The segment's ledger was deleted. If the node still lists the segment, its records are reported as lost.
        Returns whether the node lists it as open: wait until its owner has ended it."""
        now = chain.find(segment.number)
        if self.is_truncated(chain):
            return False  # pass_truncated() reports the gap
        if now is None:  # it was dropped: it had no record
            self._position = max(self._position, Position(segment.number + 1, 0, 0))
            if chain.first_position < self._position:
                self._expected = None
            return False
        self._take([lost_with(now, self._position, self._expected)])
        if now.is_open:
            return True
        self._finish(now, None)
        return False

    def _current_sequence(self) -> EntrySequence:
        assert self._sequence is not None
        return self._sequence

    def _finish(self, segment: StreamSegment, expected: int | None) -> None:
        """Continue behind a segment."""
        self._expected = segment.end_seq_no if segment.end_seq_no is not None else expected
        self._position = Position(segment.number + 1, 0, 0)

    def _take(self, items: Sequence[Item]) -> None:
        """Make entries and gaps ready to be handed out: from the wanted position on, up to the stop."""
        if items:
            self.caught_up = False
        if self.ready.add_wanted(items, self._position, self.stop, self._parts):
            self.ended = True
