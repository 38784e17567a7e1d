from __future__ import annotations

from spark_wal.webhdfs.http.request_metrics import RequestMetrics


def test_they_are_counted_by_operation() -> None:
    metrics = RequestMetrics()
    metrics.count("OPEN", 0.5, ok=True)
    metrics.count("OPEN", 0.25, ok=False)
    assert metrics.text().splitlines() == [
        "# TYPE gateway_requests_total counter",
        'gateway_requests_total{op="OPEN"} 2',
        "# TYPE gateway_requests_refused_total counter",
        'gateway_requests_refused_total{op="OPEN"} 1',
        "# TYPE gateway_request_seconds_total counter",
        'gateway_request_seconds_total{op="OPEN"} 0.750000',
    ]
