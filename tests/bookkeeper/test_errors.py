"""The error tree: whose fault, whether to retry, whether it happened."""

from __future__ import annotations

import pytest

from bookkeeper import errors


def test_codes_are_unique_and_found_by_number() -> None:
    assert errors.BY_CODE[-101] is errors.LedgerFencedError
    with pytest.raises(AssertionError, match="LedgerFencedError already"):
        type("AnotherError", (errors.LedgerError,), {"code": -101})


def test_a_fenced_add_is_not_a_failed_add() -> None:
    assert errors.LedgerFencedError.outcome is errors.Outcome.UNKNOWN
    assert not errors.LedgerFencedError.retryable


@pytest.mark.rule("P8")
def test_a_check_names_the_rule_that_does_not_hold() -> None:
    errors.check(True, "W2")
    with pytest.raises(errors.InvariantError, match="W2 does not hold: entry 7"):
        errors.check(False, "W2", "entry 7")
