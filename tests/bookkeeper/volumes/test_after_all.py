"""Several callbacks as one: when it is called, and with which error."""

from __future__ import annotations

from itertools import product

import pytest

from bookkeeper.errors import BookieFailedError
from bookkeeper.storage.base.results import Done
from bookkeeper.volumes.after_all import PartlyFailedError, after_all, after_all_ledgers, concerns, wait_until_done

Answers = list[BaseException | None]


class Parts:
    """Things that end when a test says so."""

    def __init__(self, count: int) -> None:
        self.done: list[Done] = []
        self.begin = [self.done.append] * count


def test_nothing_has_ended_at_once() -> None:
    answers: Answers = []
    after_all([], answers.append)
    after_all_ledgers([], answers.append)
    assert answers == [None, None]


def test_all_are_begun_and_the_last_one_ends_it() -> None:
    parts, answers = Parts(3), Answers()
    after_all(parts.begin, answers.append)
    assert len(parts.done) == 3
    parts.done[2](None)
    parts.done[0](None)
    assert answers == []
    parts.done[1](None)
    assert answers == [None]


def test_what_ends_while_it_is_begun_counts() -> None:
    parts, answers = Parts(1), Answers()
    after_all([lambda done: done(None), *parts.begin, lambda done: done(None)], answers.append)
    assert answers == []
    parts.done[0](None)
    assert answers == [None]


@pytest.mark.parametrize("fail", list(product([False, True], repeat=3)))
def test_an_error_is_told_after_all_have_ended_and_as_it_was(fail: tuple[bool, ...]) -> None:
    parts, answers = Parts(3), Answers()
    errors = [OSError(at) if each else None for at, each in enumerate(fail)]
    after_all(parts.begin, answers.append)
    for each, error in zip(parts.done, errors, strict=True):
        assert answers == []
        each(error)
    assert answers == [next((error for error in errors if error is not None), None)]


@pytest.mark.parametrize("fail", list(product([False, True], repeat=3)))
def test_the_ledgers_of_what_failed_are_named(fail: tuple[bool, ...]) -> None:
    parts, answers = Parts(3), Answers()
    ledgers = [{1, 2}, {2, 3}, {4}]
    errors = [OSError(5, f"disk {at}") if each else None for at, each in enumerate(fail)]
    after_all_ledgers(list(zip(parts.begin, ledgers, strict=True)), answers.append)
    for each, error in zip(parts.done, errors, strict=True):
        each(error)
    failed = [error for error in errors if error is not None]
    (answer,) = answers
    if not failed:
        assert answer is None
    elif len(failed) == 3:
        assert answer is failed[0]
        assert all(concerns(answer, ledger) is answer for ledger in range(6))
    else:
        assert isinstance(answer, PartlyFailedError) and answer.__cause__ is failed[0]
        concerned = set().union(*(each for each, error in zip(ledgers, errors, strict=True) if error is not None))
        assert answer.ledgers == concerned
        assert {ledger for ledger in range(6) if concerns(answer, ledger) is answer} == concerned
        assert f"disk {fail.index(True)}" in str(answer)


def test_an_error_without_ledgers_concerns_all() -> None:
    error = BookieFailedError("gone")
    assert concerns(error, 7) is error
    assert concerns(None, 7) is None


async def test_what_calls_back_can_be_waited_for() -> None:
    await wait_until_done(lambda done: done(None))
    with pytest.raises(BookieFailedError, match="gone"):
        await wait_until_done(lambda done: done(BookieFailedError("gone")))
