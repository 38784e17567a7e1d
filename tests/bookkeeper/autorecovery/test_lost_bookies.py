"""Whose ledgers are marked, and when."""

from __future__ import annotations

import pytest

from bookkeeper.autorecovery.lost_bookies import AuditPlan, LostBookies
from bookkeeper.errors import InvariantError
from bookkeeper.ids import BookieId

ALL = [BookieId(f"b{i}") for i in range(1, 7)]
B1, B2, B3, *_ = ALL


def without(*gone: BookieId) -> list[BookieId]:
    return [bookie for bookie in ALL if bookie not in gone]


def machine() -> LostBookies:
    return LostBookies(mass_loss_share=1 / 3, interval_s=100.0)


def test_nothing_is_to_do_while_every_bookie_is_there() -> None:
    assert machine().on_listed(ALL, ALL, 30, 0.0) == AuditPlan()


@pytest.mark.rule("A4")
def test_a_lost_bookie_is_marked_when_the_delay_is_over_and_not_before() -> None:
    lost = machine()
    plan = lost.on_listed(ALL, without(B1), 30, 5.0)
    assert plan.mark == frozenset() and plan.look_again_at == 35.0
    assert plan.waits == "b1 may come back: repair begins 30 s after a bookie was lost"
    assert lost.on_listed(ALL, without(B1), 30, 34.9).mark == frozenset()
    assert lost.on_listed(ALL, without(B1), 30, 35.0).mark == {B1}


def test_without_a_delay_it_is_marked_at_once() -> None:
    assert machine().on_listed(ALL, without(B1), 0, 5.0).mark == {B1}


@pytest.mark.rule("A4")
def test_a_bookie_that_came_back_begins_a_new_delay_when_it_goes_again() -> None:
    lost = machine()
    lost.on_listed(ALL, without(B1), 30, 0.0)
    lost.on_listed(ALL, ALL, 30, 20.0)
    assert lost.on_listed(ALL, without(B1), 30, 40.0).mark == frozenset()
    assert lost.on_listed(ALL, without(B1), 30, 70.0).mark == {B1}


@pytest.mark.rule("A9")
def test_what_is_marked_is_marked_again_after_the_interval_and_not_sooner() -> None:
    lost = machine()
    lost.on_listed(ALL, without(B1), 0, 0.0)
    lost.on_marked([B1], 1.0)
    again = lost.on_listed(ALL, without(B1), 0, 2.0)
    assert again == AuditPlan(frozenset(), 101.0, "")
    assert lost.on_listed(ALL, without(B1), 0, 101.0).mark == {B1}
    lost.validate_state()


@pytest.mark.rule("A9")
def test_a_mark_that_failed_is_tried_at_the_next_listing() -> None:
    lost = machine()
    assert lost.on_listed(ALL, without(B1), 0, 0.0).mark == {B1}
    assert lost.on_listed(ALL, without(B1), 0, 1.0).mark == {B1}, "nobody said that it was done"


def test_more_than_a_third_lost_together_are_waited_for() -> None:
    lost = machine()
    assert lost.on_listed(ALL, without(B1, B2), 0, 0.0).mark == {B1, B2}, "two of six are no more than a third"
    lost = machine()
    lost.on_listed(ALL, without(B1, B2), 0, 0.0)
    plan = lost.on_listed(ALL, without(B1, B2, B3), 0, 1.0)
    assert plan.mark == frozenset()
    assert plan.waits.startswith("3 of 6 bookies are lost together (b1, b2, b3): that looks like a cut network.")


def test_bookies_that_were_never_there_are_not_taken_for_a_cut_network() -> None:
    """Three bookies that started on a slow machine had cookies before they were registered."""
    lost = machine()
    plan = lost.on_listed(ALL[:3], [], 0, 0.0)
    assert plan.mark == frozenset()
    assert plan.waits.startswith("3 of 3 bookies have not been there since this auditor began (b1, b2, b3): they are s")
    lost.on_listed(ALL[:3], ALL[:3], 0, 1.0)
    assert "looks like a cut network" in lost.on_listed(ALL[:3], [], 0, 2.0).waits


def test_a_single_bookie_is_never_a_mass_loss() -> None:
    assert machine().on_listed(ALL[:2], [B2], 0, 0.0).mark == {B1}


def test_bookies_that_were_lost_and_marked_before_do_not_count_again() -> None:
    lost = machine()
    lost.on_listed(ALL, without(B1), 0, 0.0)
    lost.on_marked([B1], 0.0)
    lost.on_listed(ALL, without(B1, B2), 0, 10.0)
    lost.on_marked([B2], 10.0)
    assert lost.on_listed(ALL, without(B1, B2, B3), 0, 20.0).mark == {B3}


def test_a_request_ends_every_wait_once() -> None:
    lost = machine()
    lost.on_listed(ALL, without(B1, B2, B3), 30, 0.0)
    lost.on_request()
    assert lost.on_listed(ALL, without(B1, B2, B3), 30, 1.0).mark == {B1, B2, B3}
    lost.on_marked([B1, B2, B3], 1.0)
    assert lost.on_listed(ALL, without(B1, B2, B3), 30, 2.0).mark == frozenset()
    assert not lost.requested


def test_a_mark_of_a_bookie_that_is_here_is_noticed() -> None:
    lost = machine()
    lost.marked_at[B1] = 0.0
    with pytest.raises(InvariantError, match="A9"):
        lost.validate_state()
