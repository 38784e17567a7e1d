"""Futures in entry order, resolved from one place."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bookkeeper.client.write.append_futures import AppendFutures, copy_error, partial_append_error
from bookkeeper.errors import (
    BookKeeperError,
    LedgerClosedError,
    LedgerFencedError,
    NoSuchLedgerError,
    Outcome,
    PartialAppendError,
    UnauthorizedError,
)


def futures(count: int) -> list[asyncio.Future[Any]]:
    return [asyncio.get_running_loop().create_future() for _ in range(count)]


@pytest.mark.rule("W2", "P5")
async def test_each_gets_its_id_and_a_run_its_range_in_order() -> None:
    append_futures = AppendFutures()
    one, two, run, everything = futures(4)
    append_futures.expect_each(0, [one, two])
    append_futures.expect_run(2, 3, run)
    append_futures.expect_all(4, everything)
    append_futures.confirm(1)
    assert one.result() == 0 and not two.done()
    append_futures.confirm(4)
    assert two.result() == 1 and not run.done()
    append_futures.confirm(5)
    assert run.result() == range(2, 5)
    assert everything.result() == 4
    assert not len(append_futures)


@pytest.mark.rule("W2", "W7")
async def test_one_entry_by_itself_gets_its_id_and_not_before_it_is_confirmed() -> None:
    append_futures = AppendFutures()
    first, cancelled, last, failed = futures(4)
    for entry, future in enumerate((first, cancelled, last, failed)):
        append_futures.expect_each(entry, [future])
    assert len(append_futures) == 4
    append_futures.confirm(0)
    assert not first.done()
    append_futures.confirm(1)
    assert first.result() == 0 and not cancelled.done()
    cancelled.cancel()
    append_futures.confirm(3)
    assert last.result() == 2 and not failed.done() and len(append_futures) == 1
    append_futures.fail(3, LedgerFencedError("another client recovers this ledger"))
    assert isinstance(failed.exception(), LedgerFencedError) and not len(append_futures)


@pytest.mark.rule("W7")
async def test_a_cancelled_future_is_stepped_over() -> None:
    append_futures = AppendFutures()
    first, second = futures(2)
    append_futures.expect_each(0, [first, second])
    first.cancel()
    append_futures.confirm(2)
    assert second.result() == 1


@pytest.mark.rule("W17", "W6")
async def test_a_failure_reaches_all_in_order_and_a_run_of_which_a_part_is_confirmed_says_so() -> None:
    append_futures = AppendFutures()
    run, single, cancelled = futures(3)
    append_futures.expect_run(0, 4, run)
    append_futures.expect_each(4, [single, cancelled])
    cancelled.cancel()
    append_futures.confirm(3)
    append_futures.fail(3, LedgerFencedError("another client recovers this ledger"))
    error = run.exception()
    assert isinstance(error, PartialAppendError)
    assert (error.confirmed, error.first_unknown) == ((0, 1, 2), 3)
    assert isinstance(single.exception(), LedgerFencedError)
    assert not len(append_futures)


def test_every_caller_gets_an_error_of_its_own() -> None:
    error = LedgerFencedError("once")
    copy = copy_error(error)
    assert copy is not error and type(copy) is type(error) and str(copy) == "once" and copy.__cause__ is error
    special = partial_append_error(0, 1, error)
    assert copy_error(special) is special  # more to it than its text


@pytest.mark.rule("W7")
@pytest.mark.parametrize("kind", [LedgerClosedError, UnauthorizedError, NoSuchLedgerError, LedgerFencedError])
async def test_whatever_ended_the_writer_the_outcome_of_what_was_sent_is_unknown(kind: type[BookKeeperError]) -> None:
    """A recovery that closes the ledger may keep it, and so says nothing by which it could be sent again elsewhere."""
    append_futures = AppendFutures()
    each, run, cut, everything = futures(4)
    append_futures.expect_each(0, [each])
    append_futures.expect_run(1, 2, run)
    append_futures.expect_run(3, 2, cut)
    append_futures.expect_all(4, everything)
    error = kind("why")
    append_futures.fail(0, error)
    for future in (each, run, cut, everything):
        failure: Any = future.exception()
        assert (type(failure), failure.outcome) == (kind, Outcome.UNKNOWN)
        assert copy_error(failure).outcome is Outcome.UNKNOWN
    assert error.outcome is kind.outcome, "who was not sent is refused by the same error"
