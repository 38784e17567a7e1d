"""Failures as one tree that callers can branch on."""

from __future__ import annotations

import pytest

from bookkeeper.errors import Outcome
from journal_manager import errors
from journal_manager.errors import JournalError, JournalInvariantError, check

ALL = [e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, JournalError)]


def test_every_error_is_in_the_tree_is_documented_and_ends_in_error() -> None:
    assert len(ALL) > 20
    for error in ALL:
        assert error.__doc__ and error.__name__.endswith("Error")
        assert f":exc:`{error.__name__}`" in (errors.__doc__ or "")


def test_what_may_be_tried_again_and_what_may_have_happened() -> None:
    retryable = {error.__name__ for error in ALL if error.retryable}
    assert retryable == {
        "JournalUnavailableError",
        "JournalLockedError",
        "JournalDiskError",
        "JournalOverloadedError",
        "ElectionLostError",
        "NotActiveError",
    }
    unknown = {error.__name__ for error in ALL if error.outcome is Outcome.UNKNOWN}
    assert unknown == {
        "JournalFencedError",
        "JournalFailedError",
        "JournalUnavailableError",
        "JournalDiskError",
        "RequestForgottenError",
        "NotEnoughJournalsError",
    }


def test_a_broken_rule_is_named() -> None:
    check(True, "C7")
    with pytest.raises(JournalInvariantError, match=r"C7 of docs/rules\.md does not hold: \(1, 2\)"):
        check(False, "C7", (1, 2))
