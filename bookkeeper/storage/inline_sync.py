"""Whether a group is written on the loop's thread itself instead of the journal's worker (D7).

Handing a group to a thread and its result back costs two wake-ups; where a sync takes a few dozen microseconds
that is most of what an add takes. On a disk that is slower, or slow now and then, the loop must not wait: it goes
back to the worker at the first slow sync, and comes back when a row of the worker's syncs was fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

INLINE_BYTES: Final = 64 * 1024
"""Larger groups always go to the worker: while they are written the loop receives the next one."""

SLOW: Final = 8
"""A sync that takes this many times the limit is a slow one."""

ROW: Final = 64
"""Syncs the worker must have done since then before the loop tries again."""


@dataclass(slots=True)
class InlineSync:
    """Told of each small sync; owned by the loop's thread."""

    limit_s: float
    """The average above which syncs belong on the worker; 0 = always."""
    on: bool = False
    average_s: float = 0.0
    """Moving, over the last sixteen or so."""
    _seen: int = 0
    """On the worker, since the loop last gave up."""

    def note(self, took_s: float, size: int) -> None:
        """A group of ``size`` bytes took so long, the waiting for threads not counted."""
        if not self.limit_s or size > INLINE_BYTES:
            return
        self.average_s += (took_s - self.average_s) / 16
        if self.on:
            if took_s > SLOW * self.limit_s or self.average_s > 2 * self.limit_s:
                self.on, self._seen = False, 0
            return
        self._seen += 1
        if self._seen >= ROW and self.average_s <= self.limit_s:
            self.on = True
