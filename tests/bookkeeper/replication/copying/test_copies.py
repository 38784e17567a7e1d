"""What a bookie holds of a ledger, by metadata."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger import LedgerMetadata, QuorumSpec
from bookkeeper.replication.copying import copies_of
from bookkeeper.replication.copying.copies import Copy, copy_at

NAMES = [BookieId(f"b{i}") for i in range(9)]


def ledger(spec: QuorumSpec, ends: list[int], last: int | None) -> LedgerMetadata:
    """Fragments that begin at 0 and after each of ``ends``, each with another ensemble; closed at ``last``."""
    found = LedgerMetadata.create(spec, NAMES[: spec.ensemble_size])
    for i, end in enumerate(ends, 1):
        found = found.change_ensemble(end + 1, NAMES[i : i + spec.ensemble_size])
    return found if last is None else found.close(last, 7)


@pytest.mark.rule("A6", "A3")
def test_a_copy_ends_where_its_fragment_ends_and_the_last_of_an_open_ledger_has_no_end() -> None:
    spec = QuorumSpec(ensemble_size=3, write_quorum=3, ack_quorum=2)
    found = ledger(spec, [9, 20], None)
    assert [str(copy) for copy in copies_of(found, NAMES[2])] == [
        "entries 0..9 on b2",
        "entries 10..20 on b2",
        "entries 21..? on b2",
    ]
    assert [copy.is_decided for copy in copies_of(found, NAMES[2])] == [True, True, False]
    undecided = copies_of(found, NAMES[2])[-1]
    assert undecided.held(spec) == 0 and list(undecided.runs(spec, 5)) == []
    assert copies_of(found.close(30, 1), NAMES[2])[-1].end == 30
    empty = copies_of(found.close(20, 1), NAMES[2])[-1]
    assert empty.held(spec) == 0, "a fragment may be empty"
    assert str(empty) == "the empty fragment at 21 on b2"
    assert copy_at(found, 10, 1) == Copy(EntryId(10), EntryId(20), 1, NAMES[2])
    assert copy_at(found, 11, 1) is None
    assert len(copies_of(found)) == 9


@given(st.data())
@pytest.mark.rule("Q1", "A6")
def test_the_runs_of_all_copies_hold_each_entry_once_per_member_of_its_write_set(data: st.DataObject) -> None:
    e = data.draw(st.integers(1, 5))
    w = data.draw(st.integers(1, e))
    spec = QuorumSpec(ensemble_size=e, write_quorum=w, ack_quorum=1)
    ends = sorted(data.draw(st.sets(st.integers(0, 40), max_size=3)))
    last = data.draw(st.integers(ends[-1] if ends else -1, 60))
    found = ledger(spec, ends, last)
    holders: dict[int, list[BookieId]] = {}
    for copy in copies_of(found):
        runs = list(copy.runs(spec, data.draw(st.integers(1, 7))))
        assert sum(map(len, runs)) == copy.held(spec)
        ids = [entry for run in runs for entry in run]
        assert ids == sorted(ids)
        for entry in ids:
            holders.setdefault(entry, []).append(copy.bookie)
    assert {entry: sorted(found.write_set(entry)) for entry in range(last + 1)} == {
        entry: sorted(names) for entry, names in holders.items()
    }
