"""How many requests of each operation there were, and how long they took."""

from __future__ import annotations

from bookkeeper.metrics import Metrics


class RequestMetrics:
    """Of one gateway. Adds to ``metrics``."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def count(self, operation: str, seconds: float, *, ok: bool) -> None:
        """One request was answered. ``operation`` is one of a fixed set."""
        self._metrics.counter("requests_total", "Requests that were answered.", op=operation).add()
        refused = self._metrics.counter(
            "requests_refused_total", "Of them, those answered with an error.", op=operation
        )
        refused.add(not ok)
        taken = self._metrics.histogram("request_duration_seconds", "From a request to its answer.", op=operation)
        taken.observe(seconds)
