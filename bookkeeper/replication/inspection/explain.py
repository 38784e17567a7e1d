"""Which copies of a ledger are good, and what further failures would lose. Pure.

A range of entries (a fragment) has one copy on each bookie of its ensemble::

    entries 0..99       b1 seen   b2 lacking 10   b3 gone
                        one more failure (b1) loses 10, two more (b1 b2) lose all 100

Only copies that were seen count, and of a lacking copy those entries that the bookie has. A believed copy may be good;
nobody knows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations, pairwise

from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger import QuorumSpec

Holders = Mapping[frozenset[BookieId], int]
"""How many entries have good copies on exactly these bookies."""


class CopyState(StrEnum):
    """What is known of a copy."""

    SEEN = "seen"
    """Its bookie says that it holds all of it."""
    LACKING = "lacking"
    """Its bookie says that it lacks some of it."""
    BELIEVED = "believed"
    """Its bookie is registered, and did not say what it holds."""
    GONE = "gone"
    """Its bookie is not registered, and did not answer."""


@dataclass(frozen=True, slots=True)
class ExplainedCopy:
    """One bookie's share of a range."""

    bookie: BookieId
    state: CopyState
    missing: int = 0
    """How many of its entries a LACKING copy lacks."""
    lacks: tuple[range, ...] = ()
    """Where these are, ascending. A range may contain entries that belong to other bookies."""
    reason: str = ""
    """Why it is not known what the bookie holds: a sentence for people."""

    def has(self, entry: int) -> bool:
        """Whether the copy has this entry, which belongs to its share."""
        if self.state is CopyState.SEEN:
            return True
        if self.state is not CopyState.LACKING:
            return False
        at = bisect_right(self.lacks, entry, key=lambda some: some.start) - 1
        return at < 0 or entry not in self.lacks[at]


@dataclass(frozen=True, slots=True)
class Loss:
    """The most entries that have no good copy any more if a number of further bookies fail."""

    entries: int
    """How many, those included that have no good copy now."""
    bookies: tuple[BookieId, ...]
    """The bookies whose failure loses most; empty if no such failure loses anything that is not lost now."""


@dataclass(frozen=True, slots=True)
class ExplainedRange:
    """One fragment."""

    first_entry: EntryId
    end: EntryId | None
    """Its last entry; of an open ledger's last fragment the last add confirmed (``first_entry - 1``: nothing is
    confirmed). None: that is not known, and nothing can be said of losses."""
    is_decided: bool
    """Whether the fragment has an end: its writer adds no more entries."""
    copies: tuple[ExplainedCopy, ...]
    """By position in the ensemble."""
    unseen: int
    """How many entries have no good copy that was seen."""
    lost: int
    """How many entries have not even a believed copy: all their bookies are gone or lack them."""
    one_more: Loss
    two_more: Loss

    @property
    def span(self) -> str:
        """The entries, for people."""
        if self.end is None:
            return f"entries {self.first_entry}..?"
        if self.end < self.first_entry:
            return "no entries" if self.is_decided else "nothing confirmed"
        return f"entries {self.first_entry}..{self.end}"


def explain_range(
    spec: QuorumSpec, first_entry: EntryId, end: EntryId | None, is_decided: bool, copies: Sequence[ExplainedCopy]
) -> ExplainedRange:
    """Count what is good, and what one and two more failures would lose."""
    found = holders(spec, first_entry, end, copies)
    unseen, believed = found[frozenset()], _without_any(spec, first_entry, end, copies)
    return ExplainedRange(
        first_entry,
        end,
        is_decided,
        tuple(copies),
        unseen,
        believed,
        worst_loss(found, 1),
        worst_loss(found, 2),
    )


def holders(
    spec: QuorumSpec, first_entry: int, end: int | None, copies: Sequence[ExplainedCopy]
) -> Counter[frozenset[BookieId]]:
    """Count the entries of a range by the bookies that have good copies of them. ``copies``: by position."""
    counted: Counter[frozenset[BookieId]] = Counter()
    if end is None:
        return counted
    for begin, stop in _segments(first_entry, end, copies):
        for entry in spec.one_turn(begin, stop):
            having = (copies[position] for position in spec.positions(entry) if copies[position].has(begin))
            counted[frozenset(copy.bookie for copy in having)] += len(range(entry, stop, spec.ensemble_size))
    return counted


def _without_any(spec: QuorumSpec, first_entry: int, end: int | None, copies: Sequence[ExplainedCopy]) -> int:
    """How many entries have neither a good nor a believed copy."""
    trusting = [
        ExplainedCopy(copy.bookie, CopyState.SEEN) if copy.state is CopyState.BELIEVED else copy for copy in copies
    ]
    return holders(spec, first_entry, end, trusting)[frozenset()]


def worst_loss(counted: Holders, failures: int) -> Loss:
    """The most entries that lose their last good copy when ``failures`` further bookies fail."""
    worst = Loss(counted.get(frozenset(), 0), ())
    few = [having for having in counted if 0 < len(having) <= failures and counted[having]]
    names = sorted(set().union(*few))
    for fail in combinations(names, min(failures, len(names))):
        lost = sum(count for having, count in counted.items() if having <= set(fail))
        if lost > worst.entries:
            worst = Loss(lost, _needed(counted, fail, lost))
    return worst


def loss_of_places(counted: Holders, places: Mapping[BookieId, str]) -> dict[str, Loss]:
    """What the loss of each place (a rack, with these bookies in it) would lose of what has a good copy now."""
    found: dict[str, Loss] = {}
    for place in sorted(set(places.values())):
        there = frozenset(bookie for bookie in places if places[bookie] == place)
        lost = sum(count for having, count in counted.items() if having and having <= there)
        found[place] = Loss(lost, tuple(sorted(there)))
    return found


def _needed(counted: Holders, fail: Collection[BookieId], lost: int) -> tuple[BookieId, ...]:
    """``fail`` without bookies whose failure adds nothing."""
    needed = set(fail)
    for bookie in sorted(fail):
        if sum(count for having, count in counted.items() if having <= needed - {bookie}) == lost:
            needed.discard(bookie)
    return tuple(sorted(needed))


def total(ranges: Sequence[ExplainedRange], spec: QuorumSpec) -> Counter[frozenset[BookieId]]:
    """The holders of all ranges of a ledger together, for :func:`worst_loss` of the ledger."""
    counted: Counter[frozenset[BookieId]] = Counter()
    for each in ranges:
        counted.update(holders(spec, each.first_entry, each.end, each.copies))
    return counted


def without_copy(spec: QuorumSpec, first_entry: int, end: int, copies: Sequence[ExplainedCopy]) -> list[range]:
    """The entries of a range that have no good copy, ascending. ``copies``: by position."""
    found: list[range] = []
    for begin, stop in _segments(first_entry, end, copies):
        turns = spec.one_turn(begin, stop)
        bare = {e % spec.ensemble_size for e in turns if not any(copies[p].has(begin) for p in spec.positions(e))}
        if len(bare) == len(turns):
            _extend(found, range(begin, stop))
        elif bare:
            for entry in range(begin, stop):
                if entry % spec.ensemble_size in bare:
                    _extend(found, range(entry, entry + 1))
    return found


def _extend(found: list[range], some: range) -> None:
    """Append a range, or make the last one longer."""
    if found and found[-1].stop == some.start:
        found[-1] = range(found[-1].start, some.stop)
    else:
        found.append(some)


def _segments(first_entry: int, end: int, copies: Sequence[ExplainedCopy]) -> Iterator[tuple[int, int]]:
    """Cut a range where a copy begins or ends to lack entries: between two cuts a copy lacks all of its share or
    nothing."""
    edges = {edge for copy in copies for some in copy.lacks for edge in (some.start, some.stop)}
    return pairwise(sorted({first_entry, end + 1, *(edge for edge in edges if first_entry < edge <= end)}))
