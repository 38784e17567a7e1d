"""Medians, ratios and verdicts."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.apache.rows import JAVA_ON_OURS, OURS, SHIPPED, TUNED
from benchmarks.apache.summary import Found, Line, summarize

DEEP = "add-1024-1000-v3"


def _runs(row: str, side: str, key: str, *values: float) -> list[dict[str, Any]]:
    return [
        {"surroundings": "plain", "row": row, "side": side, "round": number, key: value, "others_cores": 0.1}
        for number, value in enumerate(values, 1)
    ]


def _line(found: Found, row: str, measure: str) -> Line:
    line = found.one("plain", row, measure)
    assert line is not None
    return line


def test_a_ratio_is_of_medians_over_the_better_of_apaches_two() -> None:
    found = summarize(
        [
            *_runs(DEEP, OURS, "rate", 100_000, 400_000, 200_000),
            *_runs(DEEP, SHIPPED, "rate", 50_000, 10, 50_000),
            *_runs(DEEP, TUNED, "rate", 40_000, 40_000, 90_000),
        ]
    )
    line = _line(found, DEEP, "rate")
    assert (line.seen[OURS].middle, line.seen[OURS].low, line.seen[OURS].high) == (200_000, 100_000, 400_000)
    assert line.ratio == pytest.approx(4.0)
    assert (line.verdict, line.won) == ("must", True)


def test_of_times_the_lower_is_the_better() -> None:
    found = summarize(
        [
            *_runs("add-1024-1-v3", OURS, "p50_us", 300),
            *_runs("add-1024-1-v3", SHIPPED, "p50_us", 2600),
            *_runs("add-1024-1-v3", TUNED, "p50_us", 500),
        ]
    )
    line = _line(found, "add-1024-1-v3", "p50_us")
    assert line.ratio == pytest.approx(0.6)
    assert (line.verdict, line.won) == ("MISSED", True)


def test_java_on_our_bookies_is_compared_with_java_on_its_own() -> None:
    found = summarize(
        [
            *_runs("cross-v3", JAVA_ON_OURS, "rate", 60_000),
            *_runs(DEEP, SHIPPED, "rate", 30_000),
            *_runs(DEEP, TUNED, "rate", 25_000),
        ]
    )
    line = _line(found, "cross-v3", "rate")
    assert line.ratio == pytest.approx(2.0)
    assert line.verdict == "goal"


def test_a_name_nodes_pattern_compares_bookies_under_javas_client() -> None:
    found = summarize(
        [*_runs("namenode-200-8", JAVA_ON_OURS, "rate", 12_000), *_runs("namenode-200-8", TUNED, "rate", 6_000)]
    )
    line = _line(found, "namenode-200-8", "rate")
    assert line.ratio == pytest.approx(2.0)
    assert (line.verdict, SHIPPED in line.seen) == ("goal", False)


def test_a_run_that_failed_is_told_and_counts_for_nothing() -> None:
    failed = {"surroundings": "plain", "row": DEEP, "side": OURS, "round": 1, "error": "gone", "failures": ["gone"]}
    found = summarize([failed])
    assert found.lines == []
    assert found.failed == [f"plain, {DEEP}, ours, round 1: gone"]


def test_the_last_record_of_a_step_counts() -> None:
    found = summarize([*_runs(DEEP, OURS, "rate", 1.0), *_runs(DEEP, OURS, "rate", 2.0)])
    assert _line(found, DEEP, "rate").seen[OURS].middle == 2.0
