"""The last line."""

from __future__ import annotations

from examples.demo_pipeline.__main__ import last_line, rows
from examples.demo_pipeline.story import PipelineFacts
from examples.demo_pipeline.verdict import PipelineVerdict

FACTS = PipelineFacts(
    drivers_killed=3, published_uncommitted=1, executors_killed=1, feeders_killed=1, bookies_lost=1, gateways_killed=1
)


def test_the_last_line_says_yes_only_if_nothing_differs_and_nothing_is_there_twice() -> None:
    found = PipelineVerdict(rows=300, groups=4, records=9)
    assert last_line(found, FACTS) == (
        "pipeline: exactly once from end to end: yes (300 flights, 9 results, 0 twice, 0 of 4 groups differ, "
        "driver killed 3 times, 1 between publish and commit log, 1 executor killed, 1 gateway killed, 1 bookie lost, "
        "1 owner killed)"
    )
    twice = PipelineVerdict(rows=300, groups=4, records=9, twice=1)
    assert last_line(twice, FACTS).startswith("pipeline: exactly once from end to end: no (300 flights, 9 results, 1 t")
    differs = PipelineVerdict(rows=300, groups=4, records=9, differing=2)
    assert last_line(differs, FACTS).startswith("pipeline: exactly once from end to end: no (")


def test_the_table_counts_all_that_was_killed() -> None:
    assert ("executors, gateways, owners killed", "3") in rows(PipelineVerdict(), FACTS)
