"""Nothing is dropped without proof."""

from __future__ import annotations

import pytest

from bookkeeper.bookie.garbage.garbage_proof import GarbageProof, ListingShrankError
from bookkeeper.ids import LedgerId


def ids(*numbers: int) -> list[LedgerId]:
    return [LedgerId(number) for number in numbers]


@pytest.mark.rule("G1")
def test_two_passes_a_grace_period_apart_must_agree() -> None:
    proof = GarbageProof(grace_s=10, shrink_max=0.5)
    listed = set(ids(1, 2))
    assert proof.candidates(ids(1, 2, 3), listed) == [3]
    assert proof.confirmed(ids(3), 0.0) == set()
    assert proof.confirmed(ids(3), 9.9) == set()
    assert proof.confirmed(ids(3), 10.0) == {3}


@pytest.mark.rule("G1")
def test_a_ledger_that_was_found_again_starts_anew() -> None:
    proof = GarbageProof(grace_s=10, shrink_max=0.5)
    proof.confirmed(ids(3), 0.0)
    proof.confirmed([], 5.0)
    assert proof.confirmed(ids(3), 10.0) == set()
    assert proof.confirmed(ids(3), 20.0) == {3}


def test_it_says_how_many_wait_and_for_how_long() -> None:
    proof = GarbageProof(grace_s=10, shrink_max=0.5)
    assert proof.waiting(0.0) == (0, 0.0)
    proof.confirmed(ids(3), 0.0)
    proof.confirmed(ids(3, 4), 4.0)
    assert proof.waiting(4.0) == (2, 6.0)
    assert proof.confirmed(ids(3, 4), 11.0) == {3}
    assert proof.waiting(11.0) == (1, 3.0)


@pytest.mark.rule("G1")
def test_one_pass_is_never_enough_even_without_grace() -> None:
    proof = GarbageProof(grace_s=0, shrink_max=1)
    assert proof.confirmed(ids(3), 0.0) == set()
    assert proof.confirmed(ids(3), 0.1) == {3}


@pytest.mark.rule("G1")
def test_a_listing_that_shrank_too_much_proves_nothing_and_takes_back_what_was_found() -> None:
    proof = GarbageProof(grace_s=10, shrink_max=0.5)
    proof.candidates(ids(1), set(ids(*range(2, 12))))
    proof.confirmed(ids(1), 0.0)
    with pytest.raises(ListingShrankError, match="10 to 4"):
        proof.candidates(ids(1), set(ids(2, 3, 4, 5)))
    assert proof.candidates(ids(1), set(ids(2, 3, 4, 5))) == [1]
    assert proof.confirmed(ids(1), 20.0) == set()
