"""A note of a change is one line that is not endless."""

from __future__ import annotations

from bookkeeper.access.change import TEXT_MAX, PolicyChange


def test_texts_of_a_change_are_short_and_have_one_line() -> None:
    change = PolicyChange.of(5, "eve\non host", "x" * 1000)
    assert change == PolicyChange(5, "eve?on host", "x" * (TEXT_MAX - 3) + "...")
