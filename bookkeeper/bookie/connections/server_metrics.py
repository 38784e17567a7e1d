"""The counters of a bookie's connections. They count chunks of adds, and other requests one by one; never each add."""

from __future__ import annotations

from bookkeeper import wire
from bookkeeper.metrics import Counter, Metrics, Summary
from bookkeeper.wire import Status


class ServerMetrics:
    """The counters of one bookie's connections."""

    def __init__(self, metrics: Metrics) -> None:
        self.metrics = metrics
        self._found: Counter | None = None
        self._requests: dict[tuple[wire.Operation, Status], Counter] = {}
        self.adds = metrics.counter("adds_total", "Plain adds accepted.")
        self.adds_deferred = metrics.counter(
            "adds_deferred_total", "Plain adds answered before they are durable (deferred sync)."
        )
        self.add_runs = metrics.counter("add_runs_total", "Runs of consecutive plain adds accepted.")
        self.add_bytes = metrics.counter("add_bytes_total", "Bytes of entries accepted by plain adds.")
        self.adds_refused = metrics.counter("adds_refused_total", "Plain adds refused.")
        self.add_seconds = metrics.histogram(
            "add_seconds", "Seconds from the arrival of a chunk of adds to its replies, without deferred adds."
        )
        self.add_summary, self.add_failures = Summary(), Summary()
        """The same, and that of adds that failed."""
        self.read_summary, self.read_failures = Summary(), Summary()
        """Seconds from a read to its reply; of several that were answered together each counts."""
        self.read_bytes = metrics.counter("read_bytes_total", "Bytes of the replies to reads, with their headers.")
        self.connections = metrics.gauge("connections", "Open connections.")
        self.connections_refused = metrics.counter(
            "connections_refused_total", "Connections refused because too many were open."
        )
        self.malformed = metrics.counter("malformed_frames_total", "Connections ended because of a malformed frame.")
        self.too_slow = metrics.counter("slow_peers_total", "Connections ended because the client was too slow.")
        self.idle = metrics.counter("idle_connections_total", "Connections closed because they were silent for long.")

    def request(self, op: wire.Operation, status: Status) -> None:
        """Count a request that took the general path."""
        self._of(op, status).value += 1

    def _of(self, op: wire.Operation, status: Status) -> Counter:
        counter = self._requests.get((op, status))
        if counter is None:
            text = "Requests other than plain adds, by outcome."
            counter = self.metrics.counter("requests_total", text, op=op.name.lower(), status=status.name)
            self._requests[op, status] = counter
        return counter

    def read(self, status: Status, seconds: float, size: int) -> None:
        """Count a read that took the general path."""
        (self.read_summary if status is Status.OK else self.read_failures).observe(seconds)
        self.read_bytes.value += size

    def reads_found(self, count: int, seconds: float, size: int) -> None:
        """Count reads that were answered at once, with the same metric as the general path."""
        self.read_summary.observe(seconds, count)
        self.read_bytes.value += size
        if self._found is None:
            self._found = self._of(wire.Operation.READ, Status.OK)
        self._found.value += count
