"""What is given up when a ledger is closed although an ordinary recovery is inconclusive. Pure.

The record stands in the ledger's custom metadata under :data:`KEY`, as JSON::

    {"closed_at": 41, "entries": ["10..14"], "entries_count": 5, "bytes": 5000, "silent": {"b2": "..."},
     "why": "...", "when_ms": 1700000000000}

Whatever was acknowledged after ``closed_at``, and is not among ``entries``, is given up, too: nobody knows what it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger import LedgerMetadata

KEY: Final = "bookkeeper-py.given-up"
"""The key of the record in a ledger's custom metadata."""

RANGES_MAX: Final = 100
"""Ranges of entries that a record names at most; it says how many entries there are."""


@dataclass(frozen=True, slots=True)
class ClosingLoss:
    """Where a ledger is closed, and what is given up by that."""

    last_entry: EntryId
    """Where the ledger is closed; -1: nothing of it can be read."""
    length: int
    """The ledger's payload bytes up to there, as its last readable entry says."""
    entries: tuple[range, ...]
    """Entries without a copy that can be read, ascending: gaps, and confirmed entries after ``last_entry``."""
    size: int | None
    """Payload bytes of the gaps; None: not known."""
    why: str
    """Why an ordinary recovery is inconclusive: a sentence for people."""
    silent: Mapping[BookieId, str] = field(default_factory=dict)
    """Bookies that did not say what they hold, with the reasons. What they hold may be given up."""

    @property
    def count(self) -> int:
        """How many entries are known to be given up."""
        return sum(map(len, self.entries))

    def spans(self, most: int = RANGES_MAX) -> list[str]:
        """The entries for people: the first ``most`` ranges."""
        return [f"{some.start}..{some.stop - 1}" for some in self.entries[:most]]

    def encode(self, now_ms: int) -> bytes:
        """The record."""
        return json.dumps(
            {
                "closed_at": self.last_entry,
                "entries": self.spans(),
                "entries_count": self.count,
                "bytes": self.size,
                "silent": self.silent,
                "why": self.why,
                "when_ms": now_ms,
            }
        ).encode()


def closing_entry(metadata: LedgerMetadata, readable: int) -> EntryId:
    """Where a ledger can be closed whose last readable entry is ``readable``: not before its last fragment begins,
    because the end of an earlier fragment is settled."""
    return EntryId(max(readable, metadata.last_fragment.first_entry - 1))


def lost_entries(gaps: Iterable[range], last_entry: int, confirmed: int) -> tuple[range, ...]:
    """What is known to be given up: the gaps up to ``last_entry``, and the confirmed entries after it.

    Args:
        gaps: entries without a readable copy, ascending.
        confirmed: the last entry that is known to be acknowledged.
    """
    found: list[range] = []
    cut = [range(gap.start, min(gap.stop, last_entry + 1)) for gap in gaps]
    for some in [*cut, range(last_entry + 1, confirmed + 1)]:
        if not some:
            continue
        if found and found[-1].stop == some.start:
            found[-1] = range(found[-1].start, some.stop)
        else:
            found.append(some)
    return tuple(found)


def size_of_gaps(gaps: Sequence[range], lengths: Mapping[int, tuple[int, int]]) -> int | None:
    """The payload bytes of gaps; None if a neighbour of a gap is not in ``lengths``.

    Args:
        lengths: of entries beside the gaps: the ledger's length up to and with the entry, and the entry's own.
    """
    total = 0
    for gap in gaps:
        after = lengths.get(gap.stop)
        before = lengths.get(gap.start - 1) if gap.start else (0, 0)
        if after is None or before is None:
            return None
        total += after[0] - after[1] - before[0]
    return total
