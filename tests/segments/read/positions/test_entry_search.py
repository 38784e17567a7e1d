"""The search inside a segment finds the first entry, on any segment."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from segments.read.positions.entry_search import EntrySearch


def search(greatest: Sequence[int | None], target: int, low: int = 0) -> tuple[int | None, int]:
    """What the search finds, and how many entries it looked at."""
    machine = EntrySearch(target, low, len(greatest) - 1)
    looks = 0
    while (entry := machine.probe) is not None:
        machine.validate_state()
        machine.on_entry(entry, greatest[entry])
        looks += 1
    return machine.found, looks


def test_small_and_large_segments_equal_numbers_and_both_ends() -> None:
    """SEG-69: on one entry and on many, with equal numbers, above and below the range."""
    assert search([], 1) == (None, 0)
    assert search([5], 5)[0] == 0
    assert search([5], 6)[0] is None
    assert search([5], 0)[0] == 0
    assert search([1, 5, 5, 5, 9], 5)[0] == 1
    assert search([5, 5, 5], 5)[0] == 0
    found, looks = search(range(0, 20_000, 2), 10_001)
    assert found == 5_001 and looks <= 15


def test_entries_without_a_number_are_walked_over() -> None:
    """SEG-69: control entries, and records without a transaction id, neither end nor mislead the search."""
    assert search([None, None, None], 1)[0] is None
    assert search([None, 3, None, None, 7, None], 4)[0] == 4
    assert search([1, None, None, None, None, None, None], 2)[0] is None


@given(st.lists(st.one_of(st.none(), st.integers(0, 30)), max_size=60), st.integers(-1, 31), st.integers(0, 5))
def test_it_finds_what_a_scan_finds(numbers: list[int | None], target: int, low: int) -> None:
    high = -1
    rising: list[int | None] = []
    for number in numbers:
        high = high if number is None else max(high, number)
        rising.append(None if number is None else high)
    expected = next((i for i, n in enumerate(rising) if i >= low and n is not None and n >= target), None)
    assert search(rising, target, low)[0] == expected


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=500), st.integers(0, 1000))
def test_it_looks_at_few_entries(numbers: list[int], target: int) -> None:
    numbers.sort()
    found, looks = search(numbers, target)
    assert looks <= len(numbers).bit_length() + 1
    assert found == (at if (at := bisect_left(numbers, target)) < len(numbers) else None)
