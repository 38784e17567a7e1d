"""What is sent again to a bookie without room, and when; with timers in client/bookies/test_back_pressure.py."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from bookkeeper.errors import InvariantError
from bookkeeper.ids import BookieId
from bookkeeper.ledger.write.refused_adds import RefusedAdds
from tests.examples_of import examples

B1, B2 = BookieId("b1"), BookieId("b2")


def pauses() -> Iterator[float]:
    pause = 1.0
    while True:
        yield pause
        pause *= 2


def test_what_was_refused_is_due_after_one_pause_the_lowest_first() -> None:
    adds = RefusedAdds(pauses)
    assert [adds.on_refused(B1, 5, 2), adds.on_refused(B1, 7, 1), adds.on_refused(B1, 3, 1)] == [1.0, None, None]
    assert (adds.lowest, list(adds.pending())) == (3, [(B1, 5, 7), (B1, 3, 3)])
    assert adds.on_refused(B2, 9, 1) == 1.0, "each bookie has its own pause"
    assert adds.take_due(B1) == [(3, 4), (5, 8)]
    adds.on_sent_again(B1, [(3, 4), (5, 8)])
    adds.validate_state()
    assert list(adds.pending()) == [(B1, 3, 7), (B2, 9, 9)], "sent, and not answered"


def test_the_pause_grows_until_the_bookie_takes_what_was_sent_again() -> None:
    adds = RefusedAdds(pauses)
    adds.on_refused(B1, 5, 3)
    for pause in (2.0, 4.0):
        adds.on_sent_again(B1, adds.take_due(B1))
        assert adds.on_refused(B1, 5, 3) == pause
    adds.on_sent_again(B1, adds.take_due(B1))
    adds.on_refused(B1, 8, 1)
    adds.on_accepted(B1, 5, 3)
    assert list(adds.pending()) == [(B1, 8, 8)]
    adds.on_sent_again(B1, adds.take_due(B1))
    assert adds.on_refused(B1, 8, 1) == 1.0, "the pauses began anew"
    adds.on_sent_again(B1, adds.take_due(B1))
    adds.on_accepted(B1, 8, 1)
    assert (adds.busy, adds.lowest) == ({}, None)


@pytest.mark.rule("W12")
def test_nothing_is_kept_for_an_answer_that_cannot_come() -> None:
    adds = RefusedAdds(pauses)
    adds.on_refused(B1, 3, 1)
    adds.on_refused(B1, 6, 2)
    assert adds.take_due(B1) == [(3, 4), (6, 8)]
    adds.on_sent_again(B1, [(6, 8)])
    assert list(adds.pending()) == [(B1, 6, 7)]
    adds.on_refused(B1, 6, 2)
    assert adds.take_due(B1) == [(6, 8)]
    adds.on_sent_again(B1, [])
    assert adds.busy == {}


def test_a_bookie_that_is_forgotten_while_it_is_sent_something_stays_forgotten() -> None:
    adds = RefusedAdds(pauses)
    adds.on_refused(B1, 3, 1)
    due = adds.take_due(B1)
    adds.forget(B1)
    adds.on_sent_again(B1, due)
    assert adds.busy == {}
    adds.on_accepted(B1, 3, 1)
    adds.forget(B1)


@pytest.mark.rule("W12")
def test_a_bookie_for_which_nothing_is_due_is_found() -> None:
    adds = RefusedAdds(pauses)
    adds.on_refused(B1, 3, 1)
    adds.busy[B1].refused.clear()
    with pytest.raises(InvariantError, match="W15"):
        adds.validate_state()


@pytest.mark.rule("W12")
def test_a_bookie_that_refused_nothing_and_is_kept_all_the_same_is_found() -> None:
    adds = RefusedAdds(pauses)
    adds.on_refused(B1, 3, 1)
    adds.on_sent_again(B1, adds.take_due(B1))
    adds.validate_state()
    adds.busy[B1].again = None
    with pytest.raises(InvariantError, match="W12"):
        adds.validate_state()


class BusyBookies(RuleBasedStateMachine):
    """Two bookies that refuse, take and are forgotten in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.adds = RefusedAdds(pauses)
        self.pausing: set[BookieId] = set()

    @rule(bookie=st.sampled_from([B1, B2]), first=st.integers(0, 9), count=st.integers(1, 4))
    def refuses(self, bookie: BookieId, first: int, count: int) -> None:
        pause = self.adds.on_refused(bookie, first, count)
        assert (pause is None) == (bookie in self.pausing)
        self.pausing.add(bookie)

    @rule(bookie=st.sampled_from([B1, B2]), first=st.integers(0, 9), count=st.integers(1, 14))
    def takes(self, bookie: BookieId, first: int, count: int) -> None:
        self.adds.on_accepted(bookie, first, count)

    @rule(bookie=st.sampled_from([B1, B2]), kept=st.booleans())
    def pause_ends(self, bookie: BookieId, kept: bool) -> None:
        if bookie in self.pausing:
            self.pausing.remove(bookie)
            runs = self.adds.take_due(bookie)
            assert runs == sorted(runs) != []
            self.adds.on_sent_again(bookie, runs if kept else [])

    @rule(bookie=st.sampled_from([B1, B2]))
    def leaves(self, bookie: BookieId) -> None:
        self.adds.forget(bookie)
        self.pausing.discard(bookie)

    @invariant()
    def holds(self) -> None:
        self.adds.validate_state()
        assert {bookie for bookie, busy in self.adds.busy.items() if busy.pausing} == self.pausing


TestBusyBookies = BusyBookies.TestCase
TestBusyBookies.settings = settings(max_examples=examples(60), deadline=None)
