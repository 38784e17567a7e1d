"""The error tree: whose fault, whether to retry, whether it happened."""

from __future__ import annotations

import errno

import pytest

from bookkeeper import errors


def test_codes_are_unique_and_found_by_number() -> None:
    assert errors.BY_CODE[-101] is errors.LedgerFencedError
    with pytest.raises(AssertionError, match="already belongs to LedgerFencedError"):
        type("AnotherError", (errors.LedgerError,), {"code": -101})


def test_a_fenced_add_is_not_a_failed_add() -> None:
    assert errors.LedgerFencedError.outcome is errors.Outcome.UNKNOWN
    assert not errors.LedgerFencedError.retryable


@pytest.mark.rule("P8")
def test_a_check_names_the_rule_that_does_not_hold() -> None:
    errors.check(True, "W2")
    with pytest.raises(errors.InvariantError, match="W2 does not hold: entry 7"):
        errors.check(False, "W2", "entry 7")


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
