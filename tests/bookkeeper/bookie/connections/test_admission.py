from __future__ import annotations

import pytest

from bookkeeper import wire
from bookkeeper.bookie.connections.admission import (
    BATCH_CHARGE_MAX,
    READ_CHARGE,
    Admission,
    may_use_reserve,
    reply_charge,
)
from bookkeeper.ids import EntryId, LedgerId
from tests.bookkeeper.validated import validated

Checked = validated(Admission)


@pytest.mark.rule("X32", "X33")
def test_what_is_in_progress_is_bounded_and_a_part_is_reserved() -> None:
    admission = Checked(limit=100, reserve=50)
    assert admission.admit(80)
    assert not admission.admit(30)
    assert admission.admit(60, reserved=True)
    assert not admission.admit(20, reserved=True)
    admission.release(60)
    assert admission.admit(20)
    assert (admission.in_progress, admission.refused) == (100, 2)


def test_a_request_larger_than_everything_gets_in_alone() -> None:
    admission = Checked(limit=100, reserve=0)
    assert admission.admit(1000)
    assert not admission.admit(1)
    admission.release(1000)
    assert admission.admit(1)


def test_who_waits_is_resumed_once_when_there_is_room() -> None:
    admission = Checked(limit=100, reserve=0)
    resumed: list[str] = []
    admission.admit(60)
    assert admission.crowded
    assert admission.wait("a", lambda: resumed.append("a"))
    assert not admission.wait("a", lambda: resumed.append("again"))
    admission.wait("b", lambda: resumed.append("b"))
    admission.forget("b")
    admission.release(20)
    assert resumed == []
    admission.set_pressure(True)
    admission.release(40)
    assert resumed == []
    admission.set_pressure(False)
    assert resumed == ["a"]
    assert not admission.crowded


@pytest.mark.rule("X32")
def test_there_is_room_exactly_for_what_would_be_admitted() -> None:
    for size in (1, 40, 41, 1000):
        for before in (0, 60):
            admission, twin = Checked(limit=100, reserve=50), Checked(limit=100, reserve=50)
            if before:
                assert admission.admit(before)
                assert twin.admit(before)
            assert admission.has_room(size) is twin.admit(size)
            assert (admission.in_progress, admission.refused) == (before, 0)


@pytest.mark.rule("X32")
def test_one_client_neither_takes_all_nor_makes_it_crowded_for_the_others() -> None:
    """Cause: what was in progress was bounded for all together and for each connection, so one client with many of
    them kept all the others out."""
    admission = Checked(limit=800, reserve=0)
    admission.enforce_shares(True)
    one, other = admission.share_of("one"), admission.share_of("other")
    assert admission.share_of("one") is one, "it is one for all of his connections"
    assert admission.admit(200, share=one) and not admission.is_crowded_for(one)
    assert admission.admit(100, share=one) and admission.is_crowded_for(one)
    assert not admission.is_crowded_for(other) and not admission.is_crowded_for(None)
    assert admission.has_room(100, one) and not admission.has_room(101, one) and admission.has_room(101, other)
    assert not admission.admit(101, share=one) and admission.admit(100, share=one)
    assert admission.admit(400, share=other), "the other half is for others"
    admission.release(400, other)
    resumed: list[str] = []
    assert admission.wait("a", lambda: resumed.append("a"), one)
    assert not admission.wait("a", lambda: resumed.append("again"), one)
    assert admission.wait("b", lambda: resumed.append("b"), one)
    admission.forget("b", one)
    admission.release(299, one)
    assert resumed == []
    admission.release(1, one)
    assert resumed == ["a"] and one.in_progress == 100


@pytest.mark.rule("X32", "X33")
def test_a_share_has_its_part_of_the_reserve_and_takes_one_request_of_any_size() -> None:
    admission = Checked(limit=800, reserve=200)
    admission.enforce_shares(True)
    share = admission.share_of("one")
    assert admission.admit(700, share=share)
    assert not admission.admit(1, share=share)
    admission.release(300, share)
    assert not admission.admit(1, share=share) and admission.admit(100, reserved=True, share=share)
    assert not admission.admit(1, reserved=True, share=share)


def test_shares_bound_nothing_while_they_do_not_hold_and_free_who_waits_when_they_end() -> None:
    admission = Checked(limit=800, reserve=0)
    share = admission.share_of("one")
    assert admission.admit(700, share=share) and admission.has_room(100, share)
    admission.release(300, share)
    assert not admission.is_crowded_for(share)
    admission.enforce_shares(True)
    assert admission.is_crowded_for(share)
    resumed: list[str] = []
    admission.wait("a", lambda: resumed.append("a"), share)
    admission.enforce_shares(False)
    assert resumed == ["a"]
    del share
    assert admission.share_of("one").in_progress == 0, "who has nothing more is forgotten"


L, E, KEY = LedgerId(7), EntryId(1), b"k" * 20


@pytest.mark.rule("X33")
def test_fences_and_recoveries_go_first_and_a_claim_of_priority_gives_nothing() -> None:
    """Any request with a priority above 0 had the reserve: a flood of such adds kept fences and recoveries out."""
    first: list[wire.Request] = [
        wire.ReadEntry(L, E, KEY, fence=True),
        wire.BatchRead(L, E, 1, 1, 1, KEY, fence=True),
        wire.AddEntry(L, E, KEY, b"", recovery=True),
    ]
    others: list[wire.Request] = [
        wire.ReadEntry(L, E, priority=100),
        wire.AddEntry(L, E, KEY, b"", priority=1),
        wire.AddEntry(L, E, KEY, b"", priority=100, deferred_sync=True),
        wire.ReadLac(L),
        wire.WriteLac(L, 1, KEY, b""),
        wire.ForceLedger(L),
        wire.BatchRead(L, E, 1, 1, 1, priority=100),
    ]
    assert [may_use_reserve(request) for request in first] == [True] * len(first)
    assert [may_use_reserve(request) for request in others] == [False] * len(others)


@pytest.mark.rule("X32")
@pytest.mark.parametrize(
    ("request_", "charge"),
    [
        (wire.ReadEntry(L, E), READ_CHARGE),
        (wire.ReadEntry(L, E, previous_lac=0, timeout_ms=10), 0),
        (wire.BatchRead(L, E, 1, 10, 1), READ_CHARGE),
        (wire.BatchRead(L, E, 1, 10, 100_000), 100_000),
        (wire.BatchRead(L, E, 1, 10, 1 << 30), BATCH_CHARGE_MAX),
        (wire.ListEntries(L), READ_CHARGE),
        (wire.ForceLedger(L), 0),
    ],
    ids=repr,
)
def test_a_request_is_charged_with_the_reply_that_it_may_get(request_: wire.Request, charge: int) -> None:
    assert reply_charge(request_) == charge
