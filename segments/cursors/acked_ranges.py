"""Which records of a stream a cursor has done: all below its mark, and ranges above it (pure).

Records are counted by their sequence numbers, which have no gaps, so ranges that touch become one. A range that touches
the mark becomes part of it. The number of ranges has a bound: a range that would exceed it is refused, because a
cursor that dropped ranges would deliver records twice without telling anybody.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from segments.position import Position


class Mark(NamedTuple):
    """Everything below is done."""

    seq_no: int
    """The first record that is not done."""
    position: Position
    """Reading goes on here: at that record, or directly behind the one before it."""


class AckedRange(NamedTuple):
    """Records ``first .. end - 1``, all done, above the mark."""

    first: int
    end: int
    after: Position
    """Directly behind the last of them."""


@dataclass(frozen=True, slots=True)
class FrozenRanges:
    """Ranges as a value: sorted, apart from each other, in columns, because there may be thousands."""

    firsts: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()
    afters: tuple[Position, ...] = ()

    @classmethod
    def of(cls, ranges: Sequence[AckedRange]) -> FrozenRanges:
        """These ranges."""
        return cls(*zip(*ranges, strict=True)) if ranges else NO_RANGES

    def __len__(self) -> int:
        return len(self.firsts)

    def __iter__(self) -> Iterator[AckedRange]:
        return map(AckedRange, self.firsts, self.ends, self.afters)

    @property
    def records(self) -> int:
        """How many records are in them."""
        return sum(self.ends) - sum(self.firsts)


NO_RANGES: Final = FrozenRanges()


class AckedRanges:
    """The mark and the ranges above it, while they change."""

    __slots__ = ("_afters", "_ends", "_firsts", "changed", "limit", "mark")

    def __init__(self, mark: Mark, ranges: FrozenRanges = NO_RANGES, *, limit: int) -> None:
        self.mark = mark
        self.limit = limit
        self.changed = False
        self._firsts = list(ranges.firsts)
        self._ends = list(ranges.ends)
        self._afters = list(ranges.afters)

    def __len__(self) -> int:
        return len(self._firsts)

    def freeze(self) -> FrozenRanges:
        """The ranges as a value."""
        return FrozenRanges(tuple(self._firsts), tuple(self._ends), tuple(self._afters))

    def holds(self, seq_no: int) -> bool:
        """Whether the record is done."""
        if seq_no < self.mark.seq_no:
            return True
        i = bisect_right(self._firsts, seq_no) - 1
        return i >= 0 and seq_no < self._ends[i]

    def add(self, first: int, end: int, after: Position) -> bool:
        """Note that the records ``first .. end - 1`` are done. ``after`` is directly behind the last of them.

        Returns False, and changes nothing, if that would make one range more than ``limit``.
        """
        if first <= self.mark.seq_no:
            if end > self.mark.seq_no:
                self.mark, self.changed = Mark(end, after), True
                self._absorb()
            return True
        i, j = bisect_left(self._ends, first), bisect_right(self._firsts, end)
        if i == j:
            if len(self._firsts) >= self.limit:
                return False
            self._firsts.insert(i, first)
            self._ends.insert(i, end)
            self._afters.insert(i, after)
            self.changed = True
            return True
        if self._firsts[i] <= first and end <= self._ends[i]:
            return True
        self.changed = True
        if self._ends[j - 1] >= end:
            end, after = self._ends[j - 1], self._afters[j - 1]
        self._firsts[i:j] = [min(first, self._firsts[i])]
        self._ends[i:j] = [end]
        self._afters[i:j] = [after]
        return True

    def _absorb(self) -> None:
        """Make the ranges that the mark has reached part of it."""
        done = bisect_right(self._firsts, self.mark.seq_no)
        if done and self._ends[done - 1] > self.mark.seq_no:
            self.mark = Mark(self._ends[done - 1], self._afters[done - 1])
        del self._firsts[:done], self._ends[:done], self._afters[:done]

    def validate_state(self) -> None:
        """What must hold between any two calls. For tests."""
        assert len(self._firsts) == len(self._ends) == len(self._afters) <= self.limit
        below = self.mark.seq_no
        for first, end in zip(self._firsts, self._ends, strict=True):
            assert below < first < end, "ranges overlap, touch, or are empty"
            below = end


def undone(mark: Mark, ranges: FrozenRanges, first: int, end: int) -> list[tuple[int, int]]:
    """The parts of the records ``first .. end - 1`` that are not done, in order, as (first, end)."""
    found: list[tuple[int, int]] = []
    at = max(first, mark.seq_no)
    for i in range(bisect_right(ranges.ends, at), bisect_left(ranges.firsts, end)):
        if ranges.firsts[i] > at:
            found.append((at, ranges.firsts[i]))
        at = ranges.ends[i]
    if at < end:
        found.append((at, end))
    return found


def nth_undone(mark: Mark, ranges: FrozenRanges, count: int, *, count_done: bool) -> int:
    """The number of the record that is ``count`` records behind the mark; records that are done count only if
    ``count_done`` is set."""
    at = mark.seq_no + count
    if count_done:
        return at
    for each in ranges:
        if each.first >= at:
            break
        at += each.end - each.first
    return at
