"""Amounts as people write and read them."""

from __future__ import annotations

import click
import pytest

from bookkeeper.admin.bookies.operations import drain
from bookkeeper.admin.shared.amounts import byte_count, time_in_words


@pytest.mark.parametrize(("text", "size"), [("4096", 4096), ("20M", 20 << 20), ("1g", 1 << 30), ("500KB", 500 << 10)])
def test_numbers_of_bytes(text: str, size: int) -> None:
    assert byte_count(click.Context(drain), drain.params[0], text) == size


@pytest.mark.parametrize("text", ["", "0", "-5", "fast", "1.5M", "M"])
def test_what_is_no_number_of_bytes(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a number of bytes"):
        byte_count(click.Context(drain), drain.params[0], text)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.4, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (3725, "1 h 2 min"),
        (86400, "1 day"),
        (86460, "1 day"),
        (604799, "6 days 23 h"),
        (604800, "7 days"),
    ],
)
def test_a_time_is_told_in_its_two_largest_units(seconds: float, words: str) -> None:
    assert time_in_words(seconds) == words
