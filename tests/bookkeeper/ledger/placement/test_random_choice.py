"""Choosing bookies when there are enough, and when there are not."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.errors import NotEnoughBookiesError
from bookkeeper.ids import BookieId
from bookkeeper.ledger.placement import RandomChoice, WhenShort
from bookkeeper.ledger.quorum import QuorumSpec
from tests.bookkeeper.ledger.test_metadata import SPEC, bookies
from tests.bookkeeper.ledger.test_quorum import shapes

POLICY = RandomChoice()
UP = bookies("b1 b2 b3 b4 b5")


def test_the_first_candidates_are_taken() -> None:
    assert POLICY.new_ensemble(SPEC, UP) == bookies("b1 b2 b3")
    assert POLICY.new_ensemble(SPEC, UP, excluded=bookies("b2")) == bookies("b1 b3 b4")
    assert POLICY.new_ensemble(SPEC, bookies("b1 b1 b2 b2 b3")) == bookies("b1 b2 b3")


@pytest.mark.rule("W13")
def test_avoided_bookies_come_last_but_they_do_come() -> None:
    assert POLICY.new_ensemble(SPEC, UP, avoided=bookies("b1 b2")) == bookies("b3 b4 b5")
    assert POLICY.new_ensemble(SPEC, UP[:3], avoided=bookies("b1 b2")) == bookies("b3 b1 b2")
    assert POLICY.replace(SPEC, UP[:3], bookies("b1"), UP, avoided=bookies("b4 b5")) == {"b1": "b4"}


def test_too_few_bookies_is_an_error_that_names_them() -> None:
    with pytest.raises(NotEnoughBookiesError, match=r"needs 3 bookies, but 2 can be used: b1, b2"):
        POLICY.new_ensemble(SPEC, UP[:2], known_absent=bookies("b9"))


def test_an_absent_bookie_is_named_if_an_ack_quorum_of_two_is_up() -> None:
    def named(up: str, spec: QuorumSpec = SPEC) -> tuple[BookieId, ...]:
        return POLICY.new_ensemble(spec, bookies(up), known_absent=bookies("b8 b9"), when_short=WhenShort.NAME_ABSENT)

    assert set(named("b1 b2")) == set(bookies("b1 b2 b8"))
    assert named("b1 b2 b3") == bookies("b1 b2 b3")
    for up, spec in (
        ("b1", SPEC),
        ("b1", QuorumSpec(ensemble_size=3, write_quorum=3, ack_quorum=1)),
        ("b1 b2", QuorumSpec(ensemble_size=3, write_quorum=3, ack_quorum=3)),
    ):
        with pytest.raises(NotEnoughBookiesError):
            named(up, spec)
    with pytest.raises(NotEnoughBookiesError):
        POLICY.new_ensemble(SPEC, UP[:2], known_absent=UP[:2], when_short=WhenShort.NAME_ABSENT)


@given(spec=st.sampled_from(list(shapes(6))), up=st.integers(0, 6), absent=st.integers(0, 6))
def test_a_named_ensemble_can_acknowledge_every_entry(spec: QuorumSpec, up: int, absent: int) -> None:
    here = [BookieId(f"u{n}") for n in range(up)]
    away = [BookieId(f"a{n}") for n in range(absent)]
    try:
        ensemble = POLICY.new_ensemble(spec, here, known_absent=away, when_short=WhenShort.NAME_ABSENT)
    except NotEnoughBookiesError:
        if up >= 2 and up + absent >= spec.ensemble_size > up:
            places = combinations(range(spec.ensemble_size), spec.ensemble_size - up)
            assert not any(
                all(sum(p not in gone for p in spec.positions(e)) >= spec.ack_quorum for e in range(spec.ensemble_size))
                for gone in places
            ), "there was a way"
        return
    assert len(set(ensemble)) == spec.ensemble_size
    assert spec.can_acknowledge(frozenset(here), ensemble)


def test_stand_ins_are_neither_members_nor_failed_and_used_once() -> None:
    replaced = POLICY.replace(SPEC, UP[:3], bookies("b1 b3 b5"), UP)
    assert replaced == {"b1": "b4"}
    assert POLICY.replace(SPEC, UP[:3], bookies("b1"), UP[:3]) == {}
