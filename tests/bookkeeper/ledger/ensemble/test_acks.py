"""Marks and runs against a plain set of ids."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.ledger.ensemble.acks import Acks
from bookkeeper.ledger.quorum import QuorumSpec
from tests.bookkeeper.ledger.test_quorum import shapes

RUNS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8)), max_size=12)


@pytest.mark.rule("W1")
@given(spec=st.sampled_from(list(shapes(5))), data=st.data(), runs=RUNS, start=st.integers(0, 10))
def test_runs_in_any_order_are_remembered_like_a_set(
    spec: QuorumSpec, data: st.DataObject, runs: list[tuple[int, int]], start: int
) -> None:
    position = data.draw(st.integers(0, spec.ensemble_size - 1))
    acks, seen = Acks(spec, position, start), set[int]()
    held = [e for e in range(start, 60) if spec.holds(position, e)]
    for first, count in runs:
        news = {e for e in range(first, first + count) if e in held} - seen
        assert acks.add(first, first + count) == bool(news)
        seen |= news
        assert acks.mark == next(e for e in held if e not in seen)
        for entry in held:
            by_set = next(e for e in held if e >= entry and e not in seen)
            assert max(acks.end_from(entry), entry) == by_set
    missing = {e for first, last in acks.missing(start, 45) for e in range(first, last + 1)}
    assert {e for e in missing if e in held} == {e for e in held if e <= 45} - seen


@pytest.mark.rule("W1")
def test_acks_in_order_leave_nothing_but_a_number() -> None:
    acks = Acks(QuorumSpec(ensemble_size=3, write_quorum=3, ack_quorum=2), 0, 0)
    for n in range(1000):
        acks.add(n, n + 1)
    assert (acks.mark, acks._ahead) == (1000, [])


@pytest.mark.rule("W1")
def test_striped_acks_in_order_leave_nothing_but_a_number() -> None:
    spec = QuorumSpec(ensemble_size=5, write_quorum=2, ack_quorum=2)
    acks = Acks(spec, 3, 0)
    for entry in spec.stripe(3, 0, 1000):
        acks.add(entry, entry + 1)
    assert (acks.mark, acks._ahead) == (spec.next_held(3, 1000), [])


def test_a_second_ack_is_no_news() -> None:
    acks = Acks(QuorumSpec(ensemble_size=1, write_quorum=1, ack_quorum=1), 0, 0)
    assert acks.add(5, 9)
    assert not acks.add(6, 8)
    assert not acks.add(5, 5)
    assert acks.add(0, 5)
    assert repr(acks) == "<9"
