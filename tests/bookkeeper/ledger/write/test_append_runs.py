"""Where runs end, and when an append does not wait for its turn."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.ledger.write.append_runs import LONE_APPENDS, RUN_BYTES, RUN_ENTRIES, LoneAppends, cut_runs


@pytest.mark.parametrize(
    ("sizes", "runs"),
    [
        ([], []),
        ([0], [(0, 1)]),
        ([10, 20], [(0, 2)]),
        ([RUN_BYTES], [(0, 1)]),
        ([RUN_BYTES, 1], [(0, 1), (1, 2)]),
        ([1, RUN_BYTES, 1], [(0, 2), (2, 3)]),
        ([0] * RUN_ENTRIES, [(0, RUN_ENTRIES)]),
        ([0] * (RUN_ENTRIES + 1), [(0, RUN_ENTRIES), (RUN_ENTRIES, RUN_ENTRIES + 1)]),
    ],
)
def test_a_run_ends_when_it_has_enough_bytes_or_entries(sizes: list[int], runs: list[tuple[int, int]]) -> None:
    assert list(cut_runs(sizes)) == runs


@given(st.lists(st.integers(0, 2 * RUN_BYTES), max_size=50))
def test_runs_follow_each_other_and_leave_nothing_out(sizes: list[int]) -> None:
    runs = list(cut_runs(iter(sizes)))
    assert [index for start, end in runs for index in range(start, end)] == list(range(len(sizes)))
    for start, end in runs:
        assert start < end
        assert sum(sizes[start : end - 1]) < RUN_BYTES


def test_who_waits_for_each_append_is_noticed_and_forgotten_when_others_come_along() -> None:
    lone = LoneAppends()

    def at_once_after(count: int, pending: int) -> bool:
        lone.on_run(count, pending)
        return lone.at_once

    assert [at_once_after(1, 0) for _ in range(LONE_APPENDS)] == [False] * (LONE_APPENDS - 1) + [True]
    assert not at_once_after(2, 0)
    assert [at_once_after(1, 0) for _ in range(LONE_APPENDS)][-1]
    assert not at_once_after(1, 1), "another one is pending"
