"""Three classes of replies, and only an explicit no is a no."""

from __future__ import annotations

import pytest

from bookkeeper.errors import BY_CODE, BookKeeperError, DigestMismatchError, LedgerFencedError, NoSuchEntryError
from bookkeeper.ledger.answer import Answer, classify
from tests.bookkeeper.ledger.vectors import load


def every_error() -> list[type[BookKeeperError]]:
    found, todo = [], [BookKeeperError]
    while todo:
        kind = todo.pop()
        found.append(kind)
        todo += kind.__subclasses__()
    return found


@pytest.mark.rule("Q2")
@pytest.mark.parametrize("kind", every_error(), ids=lambda k: k.__name__)
def test_only_an_explicit_no_is_negative(kind: type[BookKeeperError]) -> None:
    error = kind.__new__(kind)
    expected = Answer.NEGATIVE if kind.__name__ in ("NoSuchEntryError", "NoSuchLedgerError") else Answer.UNKNOWN
    assert classify(error) is expected


@pytest.mark.rule("Q2")
def test_no_error_is_positive_and_strangers_are_unknown() -> None:
    assert classify(None) is Answer.POSITIVE
    assert classify(TimeoutError()) is Answer.UNKNOWN
    assert classify(OSError()) is Answer.UNKNOWN


@pytest.mark.rule("Q2", "Q3")
def test_codes_count_for_coverage_as_with_the_official_client() -> None:
    for row in load("ids.json")["coverage_codes"]:
        code = row["bookie_answer_code"]
        error = None if code == 0 else BY_CODE[code]("") if code in BY_CODE else OSError()
        assert (classify(error) is not Answer.UNKNOWN) == row["counts_as_known"], row


def test_the_ones_that_matter_most() -> None:
    assert classify(NoSuchEntryError()) is Answer.NEGATIVE
    assert classify(LedgerFencedError()) is Answer.UNKNOWN
    assert classify(DigestMismatchError()) is Answer.UNKNOWN
