from __future__ import annotations

from segments.gateway.gateway_metrics import GatewayMetrics


def test_calls_are_counted_by_method_and_refusals_by_status() -> None:
    counted = GatewayMetrics()
    counted.answered("/s/A", 0.1, "OK")
    counted.answered("/s/A", 0.2, "NOT_FOUND")
    counted.ownership.taken.add()
    found = {
        (name, *labels.values()): getattr(metric, "value", getattr(metric, "count", None))
        for name, _, labels, metric in counted.metrics
    }
    prefix = "bookkeeper_streams_gateway_"
    assert found[prefix + "calls_total", "/s/A"] == 2
    assert found[prefix + "call_duration_seconds", "/s/A"] == 2
    assert found[prefix + "calls_refused_total", "/s/A", "NOT_FOUND"] == 1
    assert found[prefix + "streams_taken_total",] == 1
