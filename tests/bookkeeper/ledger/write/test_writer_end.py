"""Whether a writer is open, and whether it may still close its ledger."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bookkeeper.errors import (
    AddTimeoutError,
    BookieFailedError,
    BookKeeperError,
    ClientClosedError,
    InvariantError,
    LedgerClosedError,
    LedgerFencedError,
    MetadataUnavailableError,
)
from bookkeeper.ledger.config import WriterConfig
from bookkeeper.ledger.ensemble.sync_policy import sync_policy
from bookkeeper.ledger.write.writer_end import WriterEnd, WriterState

LATE, FENCED, LOST = AddTimeoutError("late"), LedgerFencedError("fenced"), BookieFailedError("lost")
AWAY = MetadataUnavailableError("away")


def end(*, deferred: bool = False) -> WriterEnd:
    return WriterEnd(sync_policy(WriterConfig(deferred_sync=deferred)))


@pytest.mark.rule("W6", "R13")
@pytest.mark.parametrize(
    ("error", "deferred", "may_close"),
    [(LATE, False, True), (FENCED, False, False), (LOST, False, False), (LOST, True, True), (FENCED, True, False)],
)
def test_after_some_failures_the_ledger_may_be_closed(error: BookKeeperError, deferred: bool, may_close: bool) -> None:
    failed = end(deferred=deferred)
    failed.fail(error)
    assert (failed.state, failed.error) == (WriterState.FAILED, error)
    with pytest.raises(type(error)):
        failed.begin_close(force=True)  # what a failed writer could not make durable it cannot force now
    if may_close:
        assert isinstance(failed.begin_close(force=False), LedgerClosedError)
        assert failed.state is WriterState.CLOSING
    else:
        with pytest.raises(type(error)):
            failed.begin_close(force=False)


@pytest.mark.rule("R13")
def test_a_close_whose_force_failed_may_be_followed_by_one_without_force() -> None:
    closing = end(deferred=True)
    closing.begin_close(force=True)
    assert closing.waits_for_force
    closing.on_force_failed(FENCED)
    assert (closing.state, closing.error, closing.waits_for_force) == (WriterState.FAILED, FENCED, False)
    assert not closing.may_close_again(FENCED, force=True)
    assert closing.may_close_again(FENCED, force=False)
    closing.begin_close(force=False)
    closing.on_closed()
    assert closing.state is WriterState.CLOSED


@pytest.mark.rule("R13")
def test_a_close_that_the_store_did_not_answer_may_be_repeated_and_one_that_lost_may_not() -> None:
    closing = end()
    closing.begin_close(force=False)
    closing.on_close_failed(AWAY)
    assert (closing.state, closing.error) == (WriterState.FAILED, AWAY)
    assert closing.may_close_again(AWAY, force=True)
    assert not closing.may_close_again(ClientClosedError("closed"), force=True)
    assert not closing.may_close_again(None, force=False)
    closing.begin_close(force=False)
    closing.on_close_failed(FENCED)
    assert not closing.may_close_again(FENCED, force=False)
    with pytest.raises(LedgerFencedError):
        closing.begin_close(force=False)


def test_a_failure_of_a_close_that_has_ended_changes_nothing() -> None:
    closed = end()
    closed.begin_close(force=False)
    closed.on_closed()
    closed.on_close_failed(AWAY)
    assert closed.state is WriterState.CLOSED


@pytest.mark.parametrize(
    ("rule", "spoil"),
    [
        ("W6", lambda open_end: setattr(open_end, "error", LATE)),
        ("W11", lambda open_end: setattr(open_end, "waits_for_force", True)),
    ],
)
def test_a_state_that_contradicts_itself_is_found(rule: str, spoil: Callable[[WriterEnd], object]) -> None:
    open_end = end()
    open_end.validate_state(forces=True)
    spoil(open_end)
    with pytest.raises(InvariantError, match=rule):
        open_end.validate_state(forces=True)
