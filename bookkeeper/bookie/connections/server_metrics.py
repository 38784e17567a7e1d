"""What a bookie's connections count: per chunk, and per request that is no plain add; never per add."""

from __future__ import annotations

from bookkeeper import wire
from bookkeeper.metrics import Counter, Metrics
from bookkeeper.wire import Status


class ServerMetrics:
    """The counters of one bookie's connections."""

    def __init__(self, metrics: Metrics) -> None:
        self.metrics = metrics
        self._requests: dict[tuple[wire.Operation, Status], Counter] = {}
        self.adds = metrics.counter("adds_total", "Plain adds accepted.")
        self.adds_deferred = metrics.counter("adds_deferred_total", "Of them, those answered before they are durable.")
        self.add_runs = metrics.counter("add_runs_total", "Runs of consecutive plain adds accepted.")
        self.add_bytes = metrics.counter("add_bytes_total", "Bytes of entries accepted by plain adds.")
        self.adds_refused = metrics.counter("adds_refused_total", "Plain adds refused.")
        self.add_seconds = metrics.histogram(
            "add_seconds", "Arrival of a chunk of adds to its replies, deferred ones apart."
        )
        self.connections = metrics.gauge("connections", "Open connections.")
        self.connections_refused = metrics.counter("connections_refused_total", "Connections over a limit.")
        self.malformed = metrics.counter("malformed_frames_total", "Connections ended for what they sent.")
        self.too_slow = metrics.counter("slow_peers_total", "Connections ended for their slowness.")

    def request(self, op: wire.Operation, status: Status) -> None:
        """Count a request that went the general way."""
        counter = self._requests.get((op, status))
        if counter is None:
            text = "Requests that are no plain adds, by outcome."
            counter = self.metrics.counter("requests_total", text, op=op.name.lower(), status=status.name)
            self._requests[op, status] = counter
        counter.value += 1

    def reads_found(self, count: int) -> None:
        """Count reads that were answered at once, like those that went the general way."""
        self.request(wire.Operation.READ, Status.OK)
        self._requests[wire.Operation.READ, Status.OK].value += count - 1
