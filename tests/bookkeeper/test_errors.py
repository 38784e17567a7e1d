"""The error tree: whose fault, whether to retry, whether it happened."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from math import nan
from typing import Any

import pytest

from bookkeeper import errors


@dataclass
class Tuned:
    size: float = 3
    limit: int = 4


def test_codes_are_unique_and_found_by_number() -> None:
    assert errors.BY_CODE[-101] is errors.LedgerFencedError
    with pytest.raises(AssertionError, match="already belongs to LedgerFencedError"):
        type("AnotherError", (errors.LedgerError,), {"code": -101})


def test_a_fenced_add_is_not_a_failed_add() -> None:
    assert errors.LedgerFencedError.outcome is errors.Outcome.UNKNOWN
    assert not errors.LedgerFencedError.retryable


@pytest.mark.parametrize(
    ("bounds", "value", "allowed"),
    [
        ({"least": 2}, 1.5, "at least 2"),
        ({"above": 0}, 0, "more than 0"),
        ({"most": 9}, 10, "at most 9"),
        ({"below": 9}, 9, "less than 9"),
        ({"least": 2, "most": 2**38}, 2**38 + 1, "at least 2 and at most 274877906944"),
        ({"least": 2}, nan, "at least 2"),
        ({"below": 5}, nan, "less than 5"),
    ],
)
def test_a_number_out_of_range_is_told_with_what_is_allowed(bounds: dict[str, Any], value: float, allowed: str) -> None:
    errors.require_range(Tuned(), "size", least=3, most=3, above=2, below=4)
    with pytest.raises(errors.ConfigError) as refused:
        errors.require_range(Tuned(size=value), "limit", "size", table="disk.", **bounds)
    assert str(refused.value) == f"disk.size must be {allowed}, not {value}"


def test_a_number_that_another_one_bounds_is_told_with_both() -> None:
    errors.require_below(Tuned(), "size", "limit")
    errors.require_below(Tuned(size=4), "size", "limit", or_equal=True)
    with pytest.raises(errors.ConfigError) as refused:
        errors.require_below(Tuned(size=4), "size", "limit")
    assert str(refused.value) == "size must be less than limit (4), not 4"
    with pytest.raises(errors.ConfigError) as refused:
        errors.require_below(Tuned(size=5), "size", "limit", or_equal=True)
    assert str(refused.value) == "size must be at most limit (4), not 5"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/d/x"), "No space left on device"),
        (OSError(errno.ENOSPC, "No space left on device", "/d/y"), "/d/y: No space left on device"),
        (OSError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 4181)"), "Connection refused"),
        (
            OSError(
                "Multiple exceptions: [Errno 111] Connect call failed ('::1', 1, 0, 0), [Errno 113] Connect call "
                "failed ('127.0.0.1', 1)"
            ),
            "Multiple exceptions: Connection refused, No route to host",
        ),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_an_error_of_the_system_reads_without_numbers_tuples_and_names_said_before(error: OSError, words: str) -> None:
    assert errors.in_words(error, beside="/d/x") == words
