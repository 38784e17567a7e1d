from __future__ import annotations

from bookkeeper.exposition import page
from bookkeeper.metrics import Metrics


def shown(metrics: Metrics, accept: str = "") -> list[str]:
    return page(metrics, accept)[0].decode().splitlines()


def test_a_number_has_its_help_its_type_and_its_labels() -> None:
    metrics = Metrics("x_")
    metrics.counter("requests_total", "Requests.", op="read").add(2)
    metrics.counter("requests_total", op="add").add()
    metrics.gauge("level", "How high.").value = 0.5
    assert shown(metrics) == [
        "# HELP x_level How high.",
        "# TYPE x_level gauge",
        "x_level 0.5",
        "# HELP x_requests_total Requests.",
        "# TYPE x_requests_total counter",
        'x_requests_total{op="add"} 1.0',
        'x_requests_total{op="read"} 2.0',
    ]


def test_a_histogram_is_shown_by_its_bounds_its_sum_and_its_count() -> None:
    metrics = Metrics()
    metrics.histogram("seconds").observe(0.002, 3)
    lines = shown(metrics)
    assert 'seconds_bucket{le="0.001"} 0.0' in lines
    assert 'seconds_bucket{le="0.0025"} 3.0' in lines
    assert 'seconds_bucket{le="+Inf"} 3.0' in lines
    assert {"seconds_count 3.0", "seconds_sum 0.006"} <= set(lines)


def test_who_asks_for_openmetrics_gets_it() -> None:
    metrics = Metrics()
    metrics.counter("requests_total", "Requests.").add()
    text, kind = page(metrics, "application/openmetrics-text; version=1.0.0")
    assert kind.startswith("application/openmetrics-text")
    assert text.endswith(b"# EOF\n")
    assert page(metrics, "")[1].startswith("text/plain")
