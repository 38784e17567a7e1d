"""Remembers which confirmed entries are missing on which bookie.

A bookie that was away while a ledger grew lacks what was confirmed without it. When the bookie is back or replaced, and
once more at close, the writer enters the ledger into the cluster's list of under-replicated ledgers
(:mod:`bookkeeper.meta.records.under_replication`). So whoever re-replicates finds it, also if the writer never closes.
"""

from __future__ import annotations

from typing import Final

from bookkeeper.ids import BookieId

CATCH_UP_S: Final = 0.05
"""How long the end of a ledger waits for a bookie that has not acknowledged everything, before it is marked."""


class MissingCopies:
    """Which bookies lack how many confirmed entries of one ledger."""

    def __init__(self) -> None:
        self.ranges: dict[BookieId, list[tuple[int, int]]] = {}
        """Bookie -> (first, last) of each range of which it lacks its share."""

    def note(self, bookie: BookieId, first: int, last: int) -> None:
        ranges = self.ranges.setdefault(bookie, [])
        if (first, last) not in ranges:
            ranges.append((first, last))

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def __str__(self) -> str:
        return "; ".join(
            f"{bookie} lacks its share of {', '.join(f'{first}..{last}' for first, last in ranges)}"
            for bookie, ranges in self.ranges.items()
        )
