"""What counts as twice."""

from __future__ import annotations

import json

from examples.demo_pipeline.totals import PipelineTotals
from examples.flights.sink import DailyDelays


def record(flights: int, origin: str = "JFK") -> bytes:
    state = {"day": "2013-01-01", "carrier": "UA", "origin": origin, "flights": flights, "delays": flights}
    return json.dumps({**state, "delay_sum": 5, "worst": 3}).encode()


def test_a_group_s_records_grow() -> None:
    totals = PipelineTotals()
    for value in (record(1), record(4, "EWR"), record(3)):
        totals.take(value)
    assert (totals.records, totals.repeated) == (3, [])
    assert totals.latest["2013-01-01", "UA", "JFK"] == DailyDelays("2013-01-01", "UA", "JFK", 3, 3, 5, 3)
    assert totals.latest["2013-01-01", "UA", "EWR"].flights == 4


def test_a_batch_that_is_there_twice_repeats_a_count_or_falls_behind_it() -> None:
    totals = PipelineTotals()
    for value in (record(2), record(2), record(1)):
        totals.take(value)
    assert totals.repeated == [
        "2013-01-01 UA JFK: 2 flights come after 2",
        "2013-01-01 UA JFK: 1 flights come after 2",
    ]


def test_a_group_without_a_flight_that_left_has_no_delay() -> None:
    totals = PipelineTotals()
    totals.take(b'{"day":"2013-01-01","carrier":"UA","origin":"JFK","flights":1,"delays":0}')
    assert totals.latest["2013-01-01", "UA", "JFK"] == DailyDelays("2013-01-01", "UA", "JFK", 1, 0, None, None)
