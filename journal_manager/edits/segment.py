"""A segment: a contiguous run of edits that is stored as one unit (a file, a ledger).

start            -->  IN_PROGRESS          first known, last unknown
finalize(last)   IN_PROGRESS --> FINALIZED both ends fixed, for ever (C7)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from journal_manager.errors import SegmentMismatchError
from journal_manager.txid import TxId


class SegmentState(Enum):
    """Where a segment is in its life."""

    IN_PROGRESS = "in progress"
    FINALIZED = "finalized"


@dataclass(frozen=True, slots=True)
class SegmentInfo:
    """What is known about a segment without reading it."""

    first: TxId
    last: TxId | None
    """None while the segment is in progress."""
    layout_version: int
    """The application's version of the edits' bodies. The writer gives it at the start, and readers get it."""
    epoch: int
    """The epoch of the writer that started it."""
    location: str
    """Where the segment is, for people and for the backend that made it."""

    @property
    def state(self) -> SegmentState:
        return SegmentState.IN_PROGRESS if self.last is None else SegmentState.FINALIZED

    @property
    def in_progress(self) -> bool:
        return self.last is None

    def finalized(self, last: TxId) -> SegmentInfo:
        """This segment with its end fixed at ``last``. The same end again is no change.

        Raises:
            SegmentMismatchError: the end is fixed elsewhere, or lies before the first edit.
        """
        if self.last == last:
            return self
        if self.last is not None:
            raise SegmentMismatchError(f"segment {self} is final, and cannot end at edit {last}")
        if last < self.first:
            raise SegmentMismatchError(f"segment {self} begins after edit {last}, and cannot end there")
        return replace(self, last=last)

    def __str__(self) -> str:
        return f"[{self.first}, {'...' if self.last is None else self.last}]"
