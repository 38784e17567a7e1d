"""When the answer is yes."""

from __future__ import annotations

import json
from dataclasses import asdict

from examples.demo_pipeline.totals import PipelineTotals
from examples.demo_pipeline.verdict import PipelineVerdict, judged
from examples.flights.sink import DailyDelays

ROW = DailyDelays("2013-01-01", "UA", "JFK", 3, 2, 5, 4)
GROUP = (ROW.day, ROW.carrier, ROW.origin)


def totals(*rows: DailyDelays) -> PipelineTotals:
    found = PipelineTotals()
    for row in rows:
        found.take(json.dumps(row._asdict()).encode())
    return found


def test_equal_results_without_a_repetition_are_good() -> None:
    verdict = judged({GROUP: ROW}, totals(ROW._replace(flights=1), ROW))
    assert verdict.good
    assert (verdict.rows, verdict.groups, verdict.records) == (3, 1, 2)


def test_a_missing_batch_a_repeated_one_and_no_rows_at_all_are_not() -> None:
    missing = judged({GROUP: ROW}, totals(ROW._replace(flights=1)))
    assert (missing.good, missing.differing) == (False, 1)
    assert missing.lines == (
        "2013-01-01 UA JFK: batch 3 flights, 2 delays of 5 minutes, worst 4, "
        "stream 1 flights, 2 delays of 5 minutes, worst 4",
    )
    twice = judged({GROUP: ROW}, totals(ROW, ROW))
    assert (twice.good, twice.twice, twice.differing) == (False, 1, 0)
    assert not judged({}, totals()).good


def test_a_verdict_survives_json() -> None:
    verdict = judged({GROUP: ROW}, totals(ROW))
    found = PipelineVerdict(**json.loads(json.dumps(asdict(verdict))))
    assert found.good
    assert found.rows == verdict.rows
