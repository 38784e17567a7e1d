from __future__ import annotations

from segments.position import EARLIEST, Position
from segments.record import NO_HEADERS, ProducerRef, StoredRecord
from tests.segments.world.judge import EVERY, LARGE, StreamJudge, producer_value, shown


def stored(at: int, value: bytes, seq_no: int | None = None, producer: ProducerRef | None = None) -> StoredRecord:
    position = Position(1, at, 0)
    return StoredRecord(position, at if seq_no is None else seq_no, value, None, None, NO_HEADERS, None, 0, producer)


def numbered(at: int, sequence: int) -> StoredRecord:
    return stored(at, producer_value("p", sequence), None, ProducerRef("p", 1, sequence))


def told(*values: bytes) -> StreamJudge:
    judge = StreamJudge()
    for at, value in enumerate(values):
        judge.on_sent(value)
        judge.on_acked(value, Position(1, at, 0))
    return judge


def test_what_was_acknowledged_and_is_there_is_no_problem() -> None:
    judge = told(b"a", b"b")
    judge.on_sent(b"c")
    assert judge.judge([stored(0, b"a"), stored(1, b"b"), stored(2, b"c")], (), EARLIEST) == []


def test_every_kind_of_loss_is_found() -> None:
    judge = told(b"a", b"b")
    judge.on_sent(b"c")
    judge.on_rejected(b"c")
    found = [stored(0, b"b"), stored(1, b"c"), stored(2, b"x"), stored(3, b"x")]
    problems = "\n".join(judge.judge(found, (), EARLIEST))
    for part in (
        "b'a' was acknowledged",
        "b'b' was acknowledged",
        "b'c' is in",
        "b'x' is in the stream 2 times",
        "nobody",
    ):
        assert part in problems


def test_what_was_truncated_need_not_be_there() -> None:
    assert told(b"a", b"b").judge([stored(1, b"b")], (), Position(1, 1, 0)) == []


def test_order_and_sequence_numbers_are_looked_at() -> None:
    judge = told(b"a", b"b")
    assert any("follows" in each for each in judge.judge([stored(0, b"a"), stored(1, b"b", 5)], (), EARLIEST))
    judge = told(b"a", b"b")
    assert any("position" in each for each in judge.judge([stored(1, b"b"), stored(0, b"a")], (), EARLIEST))


def test_the_numbers_of_a_producer_follow_each_other() -> None:
    judge = told(*(producer_value("p", n) for n in range(3)))
    assert judge.first_unacked("p") == 3
    assert judge.judge([numbered(n, n) for n in range(3)], ["p"], EARLIEST) == []
    gap = told(producer_value("p", 0), producer_value("p", 2)).judge([numbered(0, 0), numbered(1, 2)], ["p"], EARLIEST)
    assert any("2 follows 0" in each for each in gap)


def test_two_places_for_one_record_are_found() -> None:
    judge = told(b"a")
    judge.on_acked(b"a", Position(9, 9, 9), duplicate=True)
    assert judge.duplicates == 1 and "and then at" in judge.problems[0]


def test_a_large_value_is_short_in_a_message() -> None:
    value = producer_value("p", EVERY // 2)
    assert len(value) > LARGE and shown(value) == f"b'p:{EVERY // 2}'"
    assert shown(b"plain") == "b'plain'" and shown(None) == "None"
