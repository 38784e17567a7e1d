"""Who answers batch reads: every transition of the drawing."""

from __future__ import annotations

import pytest

from bookkeeper.errors import BadRequestError, BookieUnavailableError, NoSuchEntryError, RequestTimedOutError
from bookkeeper.ledger.read.batch_support import BatchReads, BatchSupport
from tests.bookkeeper.ledger.test_metadata import bookies
from tests.bookkeeper.validated import validated

B1, B2 = bookies("b1 b2")
LOST = BookieUnavailableError("gone")
Support = validated(BatchSupport)


def test_two_lost_connections_and_no_answer_make_a_bookie_refuse() -> None:
    support = Support()
    assert support.of(B1) is BatchReads.UNKNOWN
    assert support.on_failed(B1, LOST), "a single entry is asked for instead"
    assert support.of(B1) is BatchReads.DOUBTED
    assert support.asks_batches(B1)
    assert support.on_failed(B1, LOST)
    assert support.of(B1) is BatchReads.REFUSES
    assert not support.asks_batches(B1)
    assert support.on_failed(B1, LOST), "one that was under way"
    assert support.asks_any([B1, B2])
    assert not support.asks_any([B1])


def test_a_bookie_that_has_answered_once_is_not_doubted_for_a_lost_connection() -> None:
    support = Support()
    support.on_failed(B1, LOST)
    support.on_answered(B1)
    assert support.of(B1) is BatchReads.ANSWERS
    for _ in range(3):
        assert not support.on_failed(B1, LOST), "it has failed"
    assert support.asks_batches(B1)


def test_a_bad_request_is_a_refusal_whatever_was_before() -> None:
    support = Support()
    support.on_answered(B1)
    for bookie in (B1, B2):
        assert support.on_failed(bookie, BadRequestError())
        assert support.of(bookie) is BatchReads.REFUSES


@pytest.mark.parametrize("error", [NoSuchEntryError(), RequestTimedOutError()], ids=repr)
def test_other_errors_say_nothing_about_batches(error: NoSuchEntryError | RequestTimedOutError) -> None:
    support = Support()
    assert not support.on_failed(B1, error)
    assert support.of(B1) is BatchReads.UNKNOWN
