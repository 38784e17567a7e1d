from __future__ import annotations

import pytest

from bookkeeper.metrics import Counter, Gauge, Histogram, Metrics


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
