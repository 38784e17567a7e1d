"""What a writer knows to be missing on which bookie.

A bookie that was away while a ledger grew lacks what was confirmed without it. When it is back, or replaced, and once
more at close, the ledger is entered into the cluster's list of under-replicated ledgers
(:mod:`bookkeeper.meta.records.under_replication`), so that whoever re-replicates finds it, also if the writer never
gets to its close.
"""

from __future__ import annotations

from bookkeeper.ids import BookieId


class MissingCopies:
    """Which bookies lack how many confirmed entries of one ledger."""

    def __init__(self) -> None:
        self.ranges: dict[BookieId, list[tuple[int, int]]] = {}
        """Bookie -> (first, last) of what it lacks its share of."""

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
