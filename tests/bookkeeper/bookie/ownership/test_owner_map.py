"""Owners in memory: a dict tells what is right."""

from __future__ import annotations

import sys

from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.access import Resource
from bookkeeper.bookie.ownership.owner_map import RECENT_MAX, OwnerMap

NAMES = [Resource.parse(f"ledgers:{name}") for name in "abc"]


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 2), st.booleans())), st.sets(st.integers(0, 60)))
def test_it_is_like_a_dict(puts: list[tuple[int, int, bool]], gone: set[int]) -> None:
    owners, model = OwnerMap(), {}
    for ledger, name, merge in puts:
        owners.put(ledger, NAMES[name])
        model[ledger] = NAMES[name]
        if merge:
            owners._merge()
    assert {each: owners.get(each) for each in range(61)} == {each: model.get(each) for each in range(61)}
    other = owners.copy()
    owners.put(7, NAMES[0])
    assert other.get(7) == model.get(7)
    assert {each for each, _ in other.unwanted(lambda each: each not in gone)} == gone & set(model)
    other.forget(gone)
    by_owner = {ledger: owner for owner, ledgers in other.by_owner().items() for ledger in ledgers}
    assert by_owner == {ledger: owner for ledger, owner in model.items() if ledger not in gone}


def test_a_hundred_thousand_ledgers_take_twelve_bytes_each() -> None:
    owners = OwnerMap()
    for ledger in range(100_000):
        owners.put(ledger, NAMES[ledger % 3])
    assert len(owners) == 100_000 and owners.get(99_999) == NAMES[0]
    kept = sys.getsizeof(owners._ids) + sys.getsizeof(owners._owners)
    assert kept < 100_000 * 14 and len(owners._recent) <= RECENT_MAX + 100_000 // 8
