from __future__ import annotations

from math import ceil, isnan
from random import Random

import pytest

from bookkeeper.metrics import ACCURACY, Counter, Gauge, Histogram, Metrics, Summary


def test_a_name_with_its_labels_is_one_number() -> None:
    metrics = Metrics("x_")
    metrics.counter("requests_total", "Requests.", op="read").add(2)
    metrics.counter("requests_total", op="read").add()
    metrics.counter("requests_total", op="add").add()
    metrics.gauge("level").value = 0.5
    found = [(name, text, labels, metric) for name, text, labels, metric in metrics]
    assert found == [
        ("x_level", "", {}, Gauge(0.5)),
        ("x_requests_total", "Requests.", {"op": "add"}, Counter(1)),
        ("x_requests_total", "Requests.", {"op": "read"}, Counter(3)),
    ]
    with pytest.raises(AssertionError, match="is a Gauge already"):
        metrics.counter("level")


def test_numbers_of_others_are_shown_behind_our_own_with_their_names() -> None:
    metrics, others = Metrics("x_"), Metrics("y_")
    metrics.include(others)
    others.counter("adds_total", "Adds.").add()
    metrics.gauge("level", "Level.")
    assert [name for name, _, _, _ in metrics] == ["x_level", "y_adds_total"]


def test_a_histogram_counts_values_at_or_below_each_bound() -> None:
    histogram = Histogram(bounds=(1, 2))
    histogram.observe(1)
    histogram.observe(1.5, 3)
    histogram.observe(9)
    assert list(histogram.cumulative()) == [(1, 1), (2, 4), (float("inf"), 5)]
    assert (histogram.count, histogram.total) == (5, 14.5)


def test_a_quantile_of_the_last_period_is_within_its_accuracy() -> None:
    chance = Random(5)
    values = sorted(chance.lognormvariate(-6, 2) for _ in range(5_000))
    summary = Summary()
    for value in values:
        summary.observe(value, 2)
    assert all(isnan(each) for each in summary.quantiles([0.5])), "the period is not over"
    summary.turn()
    for share, found in zip((0.5, 0.95, 0.999, 1.0), summary.quantiles([0.5, 0.95, 0.999, 1.0]), strict=True):
        assert found == pytest.approx(values[ceil(share * len(values)) - 1], rel=1.1 * ACCURACY)
    assert summary.count == 10_000 and summary.total == pytest.approx(2 * sum(values))
    summary.observe(1.0)
    summary.turn()
    assert summary.quantiles([0.5])[0] == pytest.approx(1.0, rel=ACCURACY)
    summary.turn()
    assert isnan(summary.quantiles([0.5])[0]), "a minute without values"
    assert summary.count == 10_001, "counts never fall"


def test_zero_and_less_count_as_the_smallest_value() -> None:
    summary = Summary()
    summary.observe(0.0)
    summary.observe(-1.0)
    summary.turn()
    assert 0 < summary.quantiles([1.0])[0] < 1e-8


def test_summaries_are_put_together_and_shown_in_another_unit() -> None:
    one, two, together, shown = Summary(), Summary(), Summary(), Summary()
    for _ in range(90):
        one.observe(0.001)
    for _ in range(10):
        two.observe(0.5)
    one.turn()
    two.turn()
    together.include(one)
    together.include(two)
    assert together.quantiles([0.9, 0.95]) == pytest.approx([0.001, 0.5], rel=ACCURACY)
    shown.show(together, 1000.0)
    assert shown.quantiles([0.9, 0.95]) == pytest.approx([1.0, 500.0], rel=2 * ACCURACY)
    assert shown.count == 100 and shown.total == pytest.approx(5090.0)
