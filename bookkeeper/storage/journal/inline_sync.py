"""Whether a group is written on the loop's thread itself instead of the journal's worker.

Handing a group to a thread and its result back costs two wake-ups; where a sync takes a few dozen microseconds
that is most of what an add takes. On a disk that is slower the loop must not wait. On one that is slow now and then
it must not wait often: it goes back to the worker at the first slow sync, and stays away in proportion to what that
one took, so that slow syncs never take more than a small share of the loop's time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

INLINE_BYTES: Final = 64 * 1024
"""Larger groups always go to the worker: while they are written the loop receives the next one."""

SLOW: Final = 8
"""A sync that takes this many times the limit is a slow one."""

OUTLIER: Final = 4
"""Counted in the average as this many times the limit at most: one checkpoint's hiccup says nothing about the disk."""

ROW: Final = 16
"""Fast syncs in a row that the worker must have done since then before the loop tries again."""

AWAY: Final = 20
"""And this many times what the slow sync took: of the loop's time they take a twentieth at most."""


@dataclass(slots=True)
class InlineSync:
    """Told of each small sync; owned by the loop's thread."""

    limit_s: float
    """The average above which syncs belong on the worker; 0 = always."""
    on: bool = False
    average_s: float = 0.0
    """Moving, over the last sixteen or so."""
    _row: int = 0
    """Not slow ones on the worker, one after the other."""
    _not_before: float = 0.0

    def note(self, began: float, took_s: float, size: int) -> None:
        """A group of ``size`` bytes, handed over at ``began`` (s), took so long, waiting for threads not counted."""
        if not self.limit_s or size > INLINE_BYTES:
            return
        slow = took_s > SLOW * self.limit_s
        self.average_s += (min(took_s, OUTLIER * self.limit_s) - self.average_s) / 16
        if self.on:
            if slow or self.average_s > 2 * self.limit_s:
                self.on, self._row = False, 0
                self._not_before = began + (1 + AWAY) * took_s
            return
        self._row = 0 if slow else self._row + 1
        if self._row >= ROW and self.average_s <= self.limit_s and began >= self._not_before:
            self.on = True
