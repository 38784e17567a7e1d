"""The comparison, row by row, and what is made of it."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from examples.flights.__main__ import last_line
from examples.flights.sink import DailyDelays, Sink
from examples.flights.story import FlightFacts
from examples.flights.verdict import Verdict, compare

KEY, OTHER = ("2013-01-01", "UA", "EWR"), ("2013-01-02", "AA", "JFK")
ROW = DailyDelays(*KEY, 3, 2, 9, 5)
GOOD = Verdict(rows=336776, groups=2, batches=7, replayed=3, differences=(), differing=0)


def test_equal_results_differ_in_nothing() -> None:
    assert compare({KEY: ROW}, {KEY: DailyDelays(*ROW)}) == []
    assert compare({}, {}) == []


@pytest.mark.parametrize("field", ["flights", "delays", "delay_sum", "worst"])
def test_every_number_counts(field: str) -> None:
    (line,) = compare(
        {KEY: ROW}, {KEY: DailyDelays._make(8 if name == field else value for name, value in ROW._asdict().items())}
    )
    assert line.startswith("2013-01-01 UA EWR: batch 3 flights, 2 delays of 9 minutes, worst 5, stream ")


def test_a_group_that_is_missing_or_too_much_is_named() -> None:
    assert compare({KEY: ROW}, {}) == [
        "2013-01-01 UA EWR: batch 3 flights, 2 delays of 9 minutes, worst 5, stream nothing"
    ]
    assert compare({}, {OTHER: DailyDelays(*OTHER, 1, 0, None, None)})[0].startswith(
        "2013-01-02 AA JFK: batch nothing, stream 1"
    )


def test_no_delay_is_not_a_delay_of_nothing() -> None:
    none = DailyDelays(*KEY, 1, 0, None, None)
    assert compare({KEY: none}, {KEY: none._replace(delay_sum=0, worst=0)}) != []


def test_differences_come_in_the_order_of_their_groups() -> None:
    lines = compare({OTHER: ROW, KEY: ROW}, {})
    assert [line[:10] for line in lines] == ["2013-01-01", "2013-01-02"]


def test_only_no_difference_at_all_is_exactly_once() -> None:
    assert GOOD.exactly_once
    assert not replace(GOOD, differing=1).exactly_once


def test_a_story_that_left_a_blow_out_is_not_good() -> None:
    assert GOOD.good
    missed = replace(GOOD, missed=("not so: the gateway was killed",))
    assert missed.exactly_once and not missed.good
    assert missed.problems == ("not so: the gateway was killed",)


def test_judging_counts_contradictions_and_keeps_twenty_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a Spark that answers from a list: the real one is in the demo itself."""
    rows = [DailyDelays("2013-01-01", f"C{n:02}", "EWR", 2, 1, 1, 1) for n in range(30)]
    frame = SimpleNamespace(collect=lambda: rows)
    reader = SimpleNamespace(schema=lambda text: SimpleNamespace(parquet=lambda path: frame))
    spark = SimpleNamespace(read=reader, stop=lambda: None)
    job = SimpleNamespace(SCHEMA="", by_day=lambda frame: frame, session=lambda name, conf: spark)
    monkeypatch.setitem(sys.modules, "examples.flights.job", job)
    from examples.flights.verdict import judge

    sink = Sink(":memory:")  # type: ignore[arg-type]
    sink.begin(0, "1")
    sink.begin(0, "2")
    sink.take(0, rows[:5])
    sink.take(0, rows[:4])
    verdict = judge("data", sink)
    assert (verdict.rows, verdict.groups, verdict.batches, verdict.replayed) == (60, 30, 1, 1)
    assert verdict.differing == 26
    assert len(verdict.differences) == 20
    assert verdict.differences[0] == "batch 0 came again with other rows"
    assert not verdict.exactly_once
    sink.close()


def test_the_last_line_says_it_all() -> None:
    told = FlightFacts(driver_killed=3, bookie_lost=1, gateway_killed=1, zombie_refused=1)
    assert last_line(GOOD, told) == (
        "demo: exactly once: yes (7 batches, 336776 rows, 3 batches replayed, driver killed 3 times, bookie lost 1, "
        "gateway killed 1, zombie refused 1)"
    )
    assert last_line(replace(GOOD, differing=2), told).startswith("demo: exactly once: no (7 batches")
