from __future__ import annotations

import pytest

from bookkeeper.bookie.connections.admission import Admission
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
