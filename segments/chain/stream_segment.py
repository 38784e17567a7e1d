"""One segment of a stream: a ledger, and what is known of the records in it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum

from bookkeeper.amounts import counted
from segments.errors import ChainStepError
from segments.position import Position
from segments.record import from_ms


class StreamSegmentState(Enum):
    """Whether a segment can still grow."""

    OPEN = "open"
    COMPLETED = "completed"


@dataclass(frozen=True, slots=True)
class SegmentContents:
    """What a segment holds: found by its writer, or by a recovery. Times are milliseconds since 1970."""

    records: int = 0
    bytes: int = 0
    """Of the entries in the ledger, as stored once."""
    last_entry: int = -1
    """The ledger's last entry; -1 if it has none."""
    last: tuple[int, int] | None = None
    """Entry and slot of the last user record."""
    first_txid: int | None = None
    last_txid: int | None = None
    first_append_ms: int | None = None
    last_append_ms: int | None = None
    min_event_ms: int | None = None
    max_event_ms: int | None = None
    footer_entry: int | None = None
    """The entry with the footer; None in a segment whose writer died before it wrote one."""


NO_CONTENTS = SegmentContents()


@dataclass(frozen=True, slots=True)
class StreamSegment:
    """A segment as the chain lists it. The contents of an open segment are not known here."""

    number: int
    """Counts the segments of a stream from 1; a number is never used again."""
    ledger_id: int
    start_seq_no: int
    """The sequence number of its first record."""
    created_ms: int
    epoch: int = 0
    """Of the owner that started it."""
    completed_ms: int | None = None
    """None as long as the segment is open."""
    contents: SegmentContents = NO_CONTENTS
    is_published: bool = False
    """Whether it was written elsewhere and published whole: the sequence numbers in its entries and its footer count
    from its own first record, and it says nothing of producers."""

    @property
    def base(self) -> int:
        """What to add to the sequence numbers in its entries."""
        return self.start_seq_no if self.is_published else 0

    @property
    def state(self) -> StreamSegmentState:
        """Whether it can still grow."""
        return StreamSegmentState.OPEN if self.completed_ms is None else StreamSegmentState.COMPLETED

    @property
    def is_open(self) -> bool:
        """Whether it can still grow."""
        return self.completed_ms is None

    @property
    def records(self) -> int:
        """How many user records it holds; 0 while it is open."""
        return self.contents.records

    @property
    def bytes(self) -> int:
        """The bytes of its entries, as stored once; 0 while it is open."""
        return self.contents.bytes

    @property
    def end_seq_no(self) -> int | None:
        """The sequence number behind its last record; None while it is open."""
        return None if self.is_open else self.start_seq_no + self.contents.records

    @property
    def first(self) -> Position:
        """No record of the segment is before this position."""
        return Position(self.number, 0, 0)

    @property
    def last(self) -> Position | None:
        """The position of its last record; None if it has none, or is open."""
        return None if self.contents.last is None else Position(self.number, *self.contents.last)

    @property
    def created(self) -> datetime:
        """When it was started."""
        return from_ms(self.created_ms)

    @property
    def completed(self) -> datetime | None:
        """When it was completed; None while it is open."""
        return None if self.completed_ms is None else from_ms(self.completed_ms)

    def complete(self, contents: SegmentContents, completed_ms: int) -> StreamSegment:
        """The same segment with a fixed end.

        Raises:
            ChainStepError: it has another end already.
        """
        if not self.is_open:
            if contents == self.contents:
                return self
            raise ChainStepError(f"segment {self.number} is completed, with another end")
        return replace(self, completed_ms=completed_ms, contents=contents)

    def __str__(self) -> str:
        end = "open" if self.is_open else f"{counted(self.records, 'record')}"
        return f"{self.number} (ledger {self.ledger_id}, {end})"
