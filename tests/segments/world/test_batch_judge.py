from __future__ import annotations

from segments.publish import PublishedBatch
from segments.record import StoredRecord
from tests.segments.world.batch_judge import Attempt, BatchJudge
from tests.segments.world.test_judge import stored


def judge() -> BatchJudge:
    """Batch 0 was published, its second attempt was told so; batch 1 was published, and there is another attempt."""
    found = BatchJudge()
    first, again = found.attempt("a", [2, 1]), found.attempt("a", [1])
    first.calls = again.calls = 1
    found.on_published(first, PublishedBatch(0, 3, 0, already_there=False))
    found.on_published(again, PublishedBatch(0, 3, 0, already_there=True))
    second = found.attempt("a", [2])
    second.calls = 1
    found.on_published(second, PublishedBatch(1, 2, 4, already_there=False))
    found.attempt("a", [1])
    return found


def stream(*parts: list[bytes]) -> list[StoredRecord]:
    return [stored(at, value) for at, value in enumerate(value for part in parts for value in part)]


def seen(*parts: list[bytes], of: BatchJudge) -> str:
    return "\n".join(of.judge(stream(*parts)))


def rows(of: BatchJudge) -> list[list[bytes]]:
    return [attempt.rows for attempt in of.attempts]


def test_batches_that_are_there_as_they_were_told_are_no_problem() -> None:
    found = judge()
    first, _, second, _ = rows(found)
    assert found.judge(stream(first, [b"other"], second)) == []
    assert (found.committed, found.repeated) == ({"a": 1}, 1)
    assert found.judge([stored(at, value) for at, value in enumerate([*first[-1:], b"other", *second], 2)]) == [], (
        "the stream was truncated within the first one"
    )


def test_a_batch_that_is_lost_cut_twice_or_in_another_order_is_found() -> None:
    first, again, second, _ = rows(judge())
    assert "batch 1 of a was committed, and no attempt at it" in seen(first, [b"other"], of=judge())
    assert "has 1 of 2 rows" in seen(first, [b"other"], second[:1], of=judge())
    assert "or in another order" in seen(first, [b"other"], second[::-1], of=judge())
    assert "are there twice, or in another order: [1, 0]" in seen(second, first, of=judge())
    assert "do not follow each other" in seen(first, second[:1], [b"other"], second[1:], of=judge())
    assert "told that another attempt is" in seen(first, again, [b"other"], second, of=judge())
    assert "was published at record 4, and is not there" in seen(first, second, of=judge())


def test_rows_that_nobody_published_are_found() -> None:
    found = judge()
    first, _, second, third = rows(found)
    assert "was never to be published" in "\n".join(found.judge(stream(first, [b"other"], second, third)))
    refused: Attempt = found.attempts[-1]
    refused.calls, refused.refused = 1, True
    assert "its driver was told that it is not" in "\n".join(found.judge(stream(first, [b"other"], second, third)))


def test_each_attempt_has_rows_of_its_own_and_some_are_large() -> None:
    found = BatchJudge()
    values = [row for _ in range(50) for row in found.attempt("a", [1, 2]).rows]
    assert len(set(values)) == 150
    assert sum(len(value) > 1_000_000 for value in values) == 2
