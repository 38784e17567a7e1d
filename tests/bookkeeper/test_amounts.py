"""Amounts as people read them."""

from __future__ import annotations

import pytest

from bookkeeper.amounts import counted, size_in_words, time_in_words


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


@pytest.mark.parametrize(
    ("size", "words"), [(None, ""), (0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (1 << 60, "1024.0 PiB")]
)
def test_a_size_is_told_in_its_unit(size: int | None, words: str) -> None:
    assert size_in_words(size) == words


@pytest.mark.parametrize(
    ("number", "noun", "words"), [(1, "ledger", "1 ledger"), (0, "ledger", "0 ledgers"), (2, "copy", "2 copies")]
)
def test_things_are_counted(number: int, noun: str, words: str) -> None:
    assert counted(number, noun) == words


@pytest.mark.parametrize(
    ("number", "noun", "words"),
    [(1, "ledger", "1 ledger is"), (0, "ledger", "0 ledgers are"), (3, "batch", "3 batches are")],
)
def test_the_verb_agrees_with_the_count(number: int, noun: str, words: str) -> None:
    assert counted(number, noun, "is", "are") == words
