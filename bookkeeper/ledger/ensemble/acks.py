"""What one bookie has acknowledged: a high-water mark and a few runs beyond it.

Everything that the bookie holds below ``mark`` is acknowledged. Acks that overtook others wait in ``_ahead`` as sorted
runs that do not touch. On a striped ledger (E > Qw) a bookie holds only some ids. A run then means *every entry of it
that the bookie holds*, and ends at the next id that it holds. So successive runs of one bookie touch, and the mark
always stands on an id that is missing.
"""

from __future__ import annotations

from bisect import bisect_left

from bookkeeper.errors import check
from bookkeeper.ledger.quorum import QuorumSpec


class Acks:
    """The acknowledged entries of the bookie at ``position``, from ``start`` on."""

    __slots__ = ("_ahead", "_position", "_spec", "_striped", "mark")

    def __init__(self, spec: QuorumSpec, position: int, start: int) -> None:
        self._spec = spec
        self._position = position
        self._striped = spec.is_striped
        self._ahead: list[tuple[int, int]] = []
        self.mark = self._held_from(start)
        """The lowest id at or above ``start`` that the bookie holds and has not acknowledged."""

    def __repr__(self) -> str:
        runs = "".join(f" {first}..{end - 1}" for first, end in self._ahead)
        return f"<{self.mark}{runs}"

    def _held_from(self, entry_id: int) -> int:
        return self._spec.next_held(self._position, entry_id) if self._striped else entry_id

    def add(self, first: int, end: int) -> bool:
        """The bookie acknowledged what it holds of ``first .. end - 1``. True if any of it is news."""
        if self._striped:
            first, end = self._held_from(first), self._held_from(end)
        if end <= self.mark or first >= end:
            return False
        if first > self.mark:
            return self._add_ahead(first, end)
        self.mark = end
        if self._ahead:
            self._absorb()
        return True

    def _absorb(self) -> None:
        """Move the mark over the runs that it has reached."""
        reached = 0
        for first, end in self._ahead:
            if first > self.mark:
                break
            self.mark = max(self.mark, end)
            reached += 1
        del self._ahead[:reached]

    def _add_ahead(self, first: int, end: int) -> bool:
        """Insert a run, joining those that it touches."""
        runs = self._ahead
        low = bisect_left(runs, first, key=lambda run: run[1])
        high = low
        while high < len(runs) and runs[high][0] <= end:
            high += 1
        if high == low + 1 and runs[low][0] <= first and end <= runs[low][1]:
            return False
        if high > low:
            first, end = min(first, runs[low][0]), max(end, runs[high - 1][1])
        runs[low:high] = [(first, end)]
        return True

    def end_from(self, entry_id: int) -> int:
        """How far acks go without a gap from ``entry_id`` on: the next id that the bookie holds and that is missing."""
        if entry_id < self.mark or not self._ahead:
            return self.mark
        held = self._held_from(entry_id)
        for first, end in self._ahead:
            if first <= held < end:
                return end
        return held

    def missing(self, first: int, last: int) -> list[tuple[int, int]]:
        """The gaps in ``first .. last``, as inclusive runs of which the bookie acknowledged nothing of its share."""
        gaps = []
        at = max(first, self.mark)
        for run_first, run_end in self._ahead:
            if run_first > last:
                break
            if run_first > at:
                gaps.append((at, run_first - 1))
            at = max(at, run_end)
        if at <= last:
            gaps.append((at, last))
        return gaps

    def validate_state(self) -> None:
        """Derive again what must hold between the mark and the runs beyond it. For tests.

        Raises: InvariantError.
        """
        check(self._held_from(self.mark) == self.mark, "W1", self)
        low = self.mark
        for first, end in self._ahead:
            check(low < first < end, "W1", self)
            low = end
