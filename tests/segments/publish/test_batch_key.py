"""A batch is known by its application and number; see test_publisher for what follows of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from segments import BatchRefusedError
from segments.publish.batch_key import AppRecord, BatchKey, KnownBatch, NewBatch, judge_batch, require_key

KNOWN = AppRecord("app", "q1", base=10, last=14, run="r1", first_seq_no=100, records=5, published_ms=0, attempt="s1")


def judged(key: BatchKey, known: AppRecord | None = KNOWN, attempt: str = "s2") -> NewBatch | KnownBatch:
    return judge_batch(key, known, "totals", attempt)


def test_the_first_batch_of_an_application_is_new_and_may_begin_anywhere() -> None:
    assert judged(BatchKey("app", "q1", 0), None) == NewBatch(0, 0)
    assert judged(BatchKey("app", "q1", 3, start=7), None) == NewBatch(10, 7)


def test_a_number_that_was_published_or_passed_is_known_and_the_next_one_is_new() -> None:
    assert judged(BatchKey("app", "q1", 4)) == KnownBatch(14, KNOWN)
    assert judged(BatchKey("app", "q1", 0)) == KnownBatch(10, KNOWN)
    assert judged(BatchKey("app", "q1", 5)) == NewBatch(15, 10)
    assert judged(BatchKey("app", "q1", 9)) == NewBatch(19, 10), "a batch without rows may never have come"


def test_where_a_query_began_is_remembered_and_its_option_has_no_effect_later() -> None:
    assert judged(BatchKey("app", "q1", 4, start=100)) == KnownBatch(14, KNOWN)


def test_another_query_is_refused_by_name_or_goes_on_where_it_says() -> None:
    with pytest.raises(BatchRefusedError, match=r"as query q1, and query q2 .*txnStart\", \"15\""):
        judged(BatchKey("app", "q2", 0))
    assert judged(BatchKey("app", "q2", 0, start=15)) == NewBatch(15, 15)
    assert judged(BatchKey("app", "q2", 0, start=14)) == KnownBatch(14, KNOWN)


def test_one_run_writes_one_number_once() -> None:
    known = replace(KNOWN, query="", base=0)
    with pytest.raises(BatchRefusedError, match="has written number 14 of stream totals already in this run"):
        judged(BatchKey("app", "", 14, run="r1"), known)
    assert judged(BatchKey("app", "", 13, run="r1"), known) == KnownBatch(13, known), "an older one came late"
    assert judged(BatchKey("app", "", 14, run="r2"), known) == KnownBatch(14, known)
    assert judged(BatchKey("app", "", 14), known) == KnownBatch(14, known)


def test_an_attempt_that_got_no_answer_knows_its_own_batch_again_and_no_other_one() -> None:
    known = replace(KNOWN, query="", base=0)
    assert judged(BatchKey("app", "", 14, run="r1"), known, "s1") == KnownBatch(14, known, same_rows=True)
    assert judged(BatchKey("app", "", 15, run="r1"), known, "s1") == NewBatch(15, 0)
    assert judged(BatchKey("app", "", 13, run="r1"), known, "s1") == KnownBatch(13, known)


@pytest.mark.parametrize(
    "key",
    [
        BatchKey("a" * 513, "q", 0),
        BatchKey("a", "q" * 513, 0),
        BatchKey("a", "q", 0, run="ü" * 257),
        BatchKey("", "q", 0),
        BatchKey("a", "q", -1),
        BatchKey("a", "q", 1 << 62),
        BatchKey("a", "q", 0, start=-1),
        BatchKey("a", "q", 0, start=1 << 62),
    ],
)
@pytest.mark.rule("X37")
def test_a_key_that_cannot_be_kept_is_refused(key: BatchKey) -> None:
    """Names become parts of paths in the metadata store, and a number in an answer has 63 bits."""
    with pytest.raises(BatchRefusedError, match="nothing was published"):
        require_key(key, "totals")


def test_the_longest_names_and_the_greatest_numbers_are_taken() -> None:
    most = (1 << 62) - 1
    key = BatchKey("a" * 512, "q" * 512, most, start=most, run="r" * 512)
    require_key(key, "totals")
    assert judged(key, None).number < 1 << 63
