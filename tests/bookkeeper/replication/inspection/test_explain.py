"""What further failures would lose: every small ensemble against counting entry by entry."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger import QuorumSpec
from bookkeeper.replication.inspection.explain import (
    CopyState,
    ExplainedCopy,
    ExplainedRange,
    Loss,
    explain_range,
    holders,
    total,
    without_copy,
    worst_loss,
)

NAMES = [BookieId(f"b{n}") for n in range(4)]
SHAPES = [
    QuorumSpec(ensemble_size=size, write_quorum=write, ack_quorum=1)
    for size in (1, 2, 3, 4)
    for write in range(1, size + 1)
]


def kinds(name: BookieId) -> list[ExplainedCopy]:
    """A copy in every state; two that lack different entries."""
    return [
        ExplainedCopy(name, CopyState.SEEN),
        ExplainedCopy(name, CopyState.LACKING, lacks=(range(2, 4),)),
        ExplainedCopy(name, CopyState.LACKING, lacks=(range(3, 5), range(6, 9))),
        ExplainedCopy(name, CopyState.BELIEVED),
        ExplainedCopy(name, CopyState.GONE),
    ]


def good(spec: QuorumSpec, copies: tuple[ExplainedCopy, ...], entry: int, trusting: bool = False) -> set[BookieId]:
    """Straight from the definition."""
    found = set()
    for position, copy in enumerate(copies):
        if not spec.holds(position, entry):
            continue
        lacks = {each for some in copy.lacks for each in some}
        if copy.state is CopyState.SEEN or (copy.state is CopyState.LACKING and entry not in lacks):
            found.add(copy.bookie)
        if trusting and copy.state is CopyState.BELIEVED:
            found.add(copy.bookie)
    return found


def most_lost(spec: QuorumSpec, copies: tuple[ExplainedCopy, ...], entries: range, failures: int) -> int:
    names = [copy.bookie for copy in copies]
    return max(
        sum(good(spec, copies, entry) <= set(fail) for entry in entries)
        for fail in combinations(names, min(failures, len(names)))
    )


@pytest.mark.parametrize("spec", SHAPES, ids=str)
@pytest.mark.parametrize("entries", [range(8), range(1, 7), range(5, 6), range(5, 5)], ids=str)
def test_every_small_ensemble_agrees_with_counting_entry_by_entry(spec: QuorumSpec, entries: range) -> None:
    for copies in product(*map(kinds, NAMES[: spec.ensemble_size])):
        found = explain_range(spec, EntryId(entries.start), EntryId(entries.stop - 1), True, copies)
        assert found.unseen == sum(not good(spec, copies, entry) for entry in entries), copies
        assert found.lost == sum(not good(spec, copies, entry, trusting=True) for entry in entries), copies
        bare = [entry for some in without_copy(spec, entries.start, entries.stop - 1, copies) for entry in some]
        assert bare == [entry for entry in entries if not good(spec, copies, entry)], copies
        for failures, loss in ((1, found.one_more), (2, found.two_more)):
            assert loss.entries == most_lost(spec, copies, entries, failures), (copies, failures)
            assert len(loss.bookies) <= failures
            left = sum(good(spec, copies, entry) <= set(loss.bookies) for entry in entries)
            assert left == loss.entries, "the bookies that are named lose so many"
            assert bool(loss.bookies) == (loss.entries > found.unseen)


def test_only_bookies_whose_failure_matters_are_named() -> None:
    spec = QuorumSpec(ensemble_size=3, write_quorum=3, ack_quorum=2)
    copies = [ExplainedCopy(NAMES[0], CopyState.SEEN), *(ExplainedCopy(n, CopyState.GONE) for n in NAMES[1:3])]
    found = explain_range(spec, EntryId(0), EntryId(9), True, copies)
    assert found.one_more == found.two_more == Loss(10, (NAMES[0],))
    assert (found.unseen, found.lost, found.span) == (0, 0, "entries 0..9")


def test_of_an_unknown_end_nothing_is_said_and_an_empty_range_loses_nothing() -> None:
    spec = QuorumSpec(ensemble_size=1, write_quorum=1, ack_quorum=1)
    gone = [ExplainedCopy(NAMES[0], CopyState.GONE)]
    unknown = explain_range(spec, EntryId(3), None, False, gone)
    assert (unknown.lost, unknown.two_more, unknown.span) == (0, Loss(0, ()), "entries 3..?")
    empty = explain_range(spec, EntryId(3), EntryId(2), True, gone)
    assert (empty.lost, empty.span) == (0, "no entries")


def test_the_ranges_of_a_ledger_are_counted_together() -> None:
    spec = QuorumSpec(ensemble_size=2, write_quorum=2, ack_quorum=1)

    def of(first: int, last: int, *copies: ExplainedCopy) -> ExplainedRange:
        return explain_range(spec, EntryId(first), EntryId(last), True, copies)

    a, b, c = NAMES[:3]
    seen, gone = CopyState.SEEN, CopyState.GONE
    ranges = [
        of(0, 9, ExplainedCopy(a, seen), ExplainedCopy(b, seen)),
        of(10, 14, ExplainedCopy(a, gone), ExplainedCopy(b, seen)),
        of(15, 17, ExplainedCopy(c, seen), ExplainedCopy(a, gone)),
    ]
    counted = total(ranges, spec)
    assert counted == {frozenset({a, b}): 10, frozenset({b}): 5, frozenset({c}): 3}
    assert worst_loss(counted, 1) == Loss(5, (b,)) and worst_loss(counted, 2) == Loss(15, (a, b))
    assert holders(spec, 0, 9, ranges[0].copies) == {frozenset({a, b}): 10}
