"""What connections count."""

from __future__ import annotations

from bookkeeper.bookie.connections.server_metrics import ServerMetrics
from bookkeeper.metrics import Metrics
from bookkeeper.wire import Operation, Status


def test_requests_are_counted_by_operation_and_outcome() -> None:
    metrics = Metrics()
    counts = ServerMetrics(metrics)
    counts.request(Operation.READ, Status.NO_ENTRY)
    counts.reads_found(5, 0.001, 500)
    counts.request(Operation.READ, Status.OK)
    counts.read(Status.OK, 0.002, 100)
    counts.read(Status.NO_ENTRY, 0.003, 10)
    assert metrics.counter("requests_total", "", op="read", status="OK").value == 6
    assert metrics.counter("requests_total", "", op="read", status="NO_ENTRY").value == 1
    assert (counts.read_summary.count, counts.read_failures.count, counts.read_bytes.value) == (6, 1, 610)
    assert counts.read_summary.total == 5 * 0.001 + 0.002
