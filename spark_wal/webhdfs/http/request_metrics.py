"""How many requests of each operation there were, and how long they took."""

from __future__ import annotations

from bookkeeper.metrics import Counter, Histogram, Metrics


class RequestMetrics:
    """The metrics of one gateway's requests, added to ``metrics``."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._operations: dict[str, tuple[Counter, Counter, Histogram]] = {}

    def count(self, operation: str, seconds: float, *, ok: bool) -> None:
        """Count a request that was answered. ``operation`` is one of a fixed set."""
        found = self._operations.get(operation)
        if found is None:
            found = self._operations[operation] = self._of(operation)
        answered, refused, duration = found
        answered.add()
        if not ok:
            refused.add()
        duration.observe(seconds)

    def _of(self, operation: str) -> tuple[Counter, Counter, Histogram]:
        metrics = self._metrics
        return (
            metrics.counter("requests_total", "Requests that were answered.", op=operation),
            metrics.counter("requests_refused_total", "Requests that were answered with an error.", op=operation),
            metrics.histogram("request_duration_seconds", "Seconds from a request to its answer.", op=operation),
        )
