"""One check for the invariants of every package; each raises its own error."""

import pytest

import bookkeeper.errors
import journal_manager.errors
import segments.errors
from bookkeeper.outcome import InvariantCheck, Outcome, check_raising


@pytest.mark.rule("P8")
@pytest.mark.parametrize(
    ("check", "error"),
    [
        (bookkeeper.errors.check, bookkeeper.errors.InvariantError),
        (journal_manager.errors.check, journal_manager.errors.JournalInvariantError),
        (segments.errors.check, segments.errors.StreamInvariantError),
        (check_raising(ValueError), ValueError),
    ],
)
def test_a_check_names_the_rule_that_does_not_hold(check: InvariantCheck, error: type[Exception]) -> None:
    check(True, "W2")
    with pytest.raises(error, match=r"rule W2 of docs/rules\.md does not hold: entry 7"):
        check(False, "W2", "entry 7")


def test_an_error_of_any_package_says_whether_the_call_had_an_effect() -> None:
    assert bookkeeper.errors.LedgerFencedError.outcome is Outcome.UNKNOWN
    assert journal_manager.errors.JournalFencedError.outcome is Outcome.UNKNOWN
    assert journal_manager.errors.JournalOverloadedError.outcome is Outcome.REJECTED
