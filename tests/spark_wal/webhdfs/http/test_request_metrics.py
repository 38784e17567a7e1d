from __future__ import annotations

from bookkeeper.metrics import Counter, Histogram, Metrics
from spark_wal.webhdfs.http.request_metrics import RequestMetrics


def test_they_are_counted_by_operation() -> None:
    metrics = Metrics("gateway_")
    requests = RequestMetrics(metrics)
    requests.count("OPEN", 0.5, ok=True)
    requests.count("OPEN", 0.25, ok=False)
    requests.count("RENAME", 0.125, ok=True)
    found = {(name, labels["op"]): metric for name, _, labels, metric in metrics}
    assert found["gateway_requests_total", "OPEN"] == Counter(2)
    assert found["gateway_requests_refused_total", "OPEN"] == Counter(1)
    taken = found["gateway_request_duration_seconds", "OPEN"]
    assert isinstance(taken, Histogram)
    assert (taken.count, taken.total) == (2, 0.75)
    assert found["gateway_requests_refused_total", "RENAME"] == Counter(0)
