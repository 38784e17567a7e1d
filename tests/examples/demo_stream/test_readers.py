from __future__ import annotations

from examples.demo_stream.flights import FlightFeed
from examples.demo_stream.readers import ReadCheck, seconds_ago
from segments import Gap, GapKind, Position

FEEDS = {name: FlightFeed(name, [("2013-01-01T05:00:00Z", "0", "UA", "1", "EWR")]) for name in ("p1", "p2")}


def values(producer: str, *numbers: int) -> list[bytes]:
    return [FEEDS[producer].record(number).value for number in numbers]


def test_records_in_order_each_once_are_right() -> None:
    check = ReadCheck("tail")
    check.take(values("p1", 0, 1) + values("p2", 0) + values("p1", 2))
    assert check.problems({"p1": 3, "p2": 1}) == []
    assert check.has({"p1": 3, "p2": 1})
    assert not check.has({"p1": 4})
    assert check.problems({"p1": 4}) == ["tail: 4 records of p1 acknowledged, and 3 read"]


def test_what_comes_twice_or_is_missing_or_is_a_gap_is_found() -> None:
    check = ReadCheck("tail")
    check.take(values("p1", 0, 1, 1, 0, 4))
    check.gap(Gap(Position(1, 0, 0), Position(1, 2, 0), GapKind.LOST))
    assert (check.read, check.doubled, check.missing) == (5, 2, 2)
    assert check.problems({"p1": 5}) == [
        "tail: lost from 1:0:0 to 1:2:0",
        "tail: 2 records came twice",
        "tail: 2 records are missing",
    ]


def test_a_reader_that_begins_in_the_middle_takes_the_first_that_it_gets() -> None:
    check = ReadCheck("since a time", from_start=False)
    check.take(values("p1", 7, 8))
    assert check.problems({"p1": 9}) == []
    assert seconds_ago(1) < seconds_ago(0)
