from __future__ import annotations

import inspect

import pytest

from bookkeeper.outcome import Outcome
from segments import errors
from segments.errors import StreamError, StreamInvariantError, check
from segments.position import Position

CLASSES = [each for _, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, StreamError)]


@pytest.mark.parametrize("error", CLASSES)
def test_every_error_is_in_the_list_of_the_module(error: type[StreamError]) -> None:
    assert f":exc:`{error.__name__}`" in (errors.__doc__ or "")


@pytest.mark.parametrize("error", CLASSES)
def test_every_error_says_what_it_is_about(error: type[StreamError]) -> None:
    made = error("it failed", stream="s")
    assert made.stream == "s" and made.position is None and made.owner is None and str(made) == "it failed"
    assert isinstance(made.outcome, Outcome) and isinstance(made.retryable, bool)


def test_an_outcome_may_be_given_to_one_error() -> None:
    error = errors.OwnershipLostError("lost", owner="b", position=Position(1, 2, 3), outcome=Outcome.UNKNOWN)
    assert error.outcome is Outcome.UNKNOWN and errors.OwnershipLostError.outcome is Outcome.REJECTED
    assert (error.owner, error.position) == ("b", Position(1, 2, 3))


def test_a_broken_rule_is_named() -> None:
    check(True, "C3")
    with pytest.raises(StreamInvariantError, match=r"rule C3 of docs/rules\.md"):
        check(False, "C3", "two are open")
