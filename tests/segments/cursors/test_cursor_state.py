"""A cursor's node: its steps, its owners, its history."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segments.cursors.acked_ranges import NO_RANGES, Mark
from segments.cursors.cursor_state import (
    HISTORY_MAX,
    HISTORY_RANGES_MAX,
    PROPERTIES_BYTES_MAX,
    Acknowledgement,
    CursorChange,
    CursorState,
    CursorVersion,
    thinned,
)
from segments.errors import CursorFullError, CursorVersionError
from segments.position import EARLIEST, Position


def mark(seq_no: int) -> Mark:
    return Mark(seq_no, Position(1, seq_no, 0))


START = CursorState.create(Mark(0, EARLIEST), 1000).claim("me", "n1")


def acked(state: CursorState, first: int | None, end: int, now_ms: int = 0) -> CursorState:
    changed, made = state.acknowledge([Acknowledgement(mark(end), first)], now_ms or state.version.changed_ms + 5000)
    assert made == [True]
    return changed


def test_an_acknowledgement_never_moves_back() -> None:
    state = acked(START, None, 10)
    assert state.mark == mark(10) and state.version.number == 2
    assert state.acknowledge([Acknowledgement(mark(4))], 9999)[0] is state
    assert [each[:2] for each in acked(state, 12, 13).ranges] == [(12, 13)]


def test_of_several_changes_those_that_do_not_fit_are_told() -> None:
    """SEG-97: a range too many is refused by itself; the others are made."""
    changes = [Acknowledgement(mark(end), end - 1) for end in (5, 9, 7)] + [Acknowledgement(mark(2))]
    state, made = START.acknowledge(changes, 1, limit=2)
    assert made == [True, True, False, True]
    assert state.mark == mark(2) and [each[:2] for each in state.ranges] == [(4, 5), (8, 9)]


def test_a_reset_forgets_and_a_restore_brings_back() -> None:
    state = acked(acked(START, None, 10), 20, 30)
    before = state.version
    state = state.reset(mark(3), 50_000)
    assert (state.mark, state.ranges, state.version.change) == (mark(3), NO_RANGES, CursorChange.RESET)
    state = state.restore(before.number, 60_000)
    assert (state.mark, state.ranges) == (before.mark, before.ranges)
    assert state.version.number == before.number + 2 and state.version.change is CursorChange.RESTORED
    with pytest.raises(CursorVersionError, match="there are"):
        state.restore(99, 1)
    assert state.restore(state.version.number, 1) is state


def test_quick_acknowledgements_share_one_version_of_the_history() -> None:
    state = START
    for i in range(1, 1001):
        state = acked(state, None, i, 1000 + i)
    assert len(state.history) <= 4 and state.version.number == 1001


@given(st.lists(st.integers(0, 100_000), min_size=1, max_size=120))
def test_the_history_is_bounded_and_keeps_its_ends(steps: list[int]) -> None:
    state, now = START, 1000
    for i, step in enumerate(steps, 1):
        now += step
        state = acked(state, None, i, now)
    assert len(state.history) <= HISTORY_MAX
    assert state.history[0].number == 1
    numbers = [each.number for each in state.history]
    assert numbers == sorted(set(numbers)) and numbers[-1] < state.version.number


def test_versions_with_many_ranges_are_bounded_together() -> None:
    state = START
    for i in range(3000):
        state = (
            acked(state, 10 + 2 * i, 11 + 2 * i)
            if i % 500 == 499
            else state.acknowledge([Acknowledgement(mark(11 + 2 * i), 10 + 2 * i)], state.version.changed_ms)[0]
        )
    for i in range(10):
        state = state.reset(mark(i), state.version.changed_ms + 1000).restore(
            state.version.number, state.version.changed_ms + 2000
        )
    assert sum(len(each.ranges) for each in state.history) <= HISTORY_RANGES_MAX
    assert thinned(state.history, 10**6) == state.history


def test_properties_are_set_removed_and_refused_when_they_are_too_large() -> None:
    state = START.with_properties({"a": "1", "b": "2"}).with_properties({"a": None})
    assert state.properties == {"b": "2"}
    with pytest.raises(CursorFullError):
        state.with_properties({"c": "x" * PROPERTIES_BYTES_MAX})
    assert state.reset(mark(1), 1).properties == {"b": "2"}


def _versions(*times: int) -> tuple[CursorVersion, ...]:
    return tuple(CursorVersion(n, ms, CursorChange.ACKNOWLEDGED, mark(n)) for n, ms in enumerate(times, 1))


def test_a_history_of_just_its_bound_stays_whole() -> None:
    kept = _versions(*range(0, 5000 * HISTORY_MAX, 5000))
    assert thinned(kept, 5000 * HISTORY_MAX) == kept
    assert len(thinned((*kept, *_versions(5001 * HISTORY_MAX)), 5002 * HISTORY_MAX)) == HISTORY_MAX


def test_the_version_between_the_closest_neighbours_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("segments.cursors.cursor_state.HISTORY_MAX", 3)
    assert [each.changed_ms for each in thinned(_versions(0, 10, 20, 1000), 100_000)] == [0, 20, 1000]


def test_of_versions_equally_far_apart_the_oldest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("segments.cursors.cursor_state.HISTORY_MAX", 4)
    kept = thinned(_versions(0, 1000, 2000, 3000, 4000), 5000)
    assert [each.changed_ms for each in kept] == [0, 2000, 3000, 4000], "what is old may lie further apart"
