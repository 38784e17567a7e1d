"""What the gateway counts: calls, records, credits, ownership."""

from __future__ import annotations

from bookkeeper.metrics import Counter, Histogram, Metrics
from segments.gateway.budget.call_budget import CallBudget
from segments.gateway.ownership.stream_ownership import OwnershipCounts


class GatewayMetrics:
    """The numbers of one gateway. They are added to once for each call or batch, never for each record."""

    def __init__(self) -> None:
        self.metrics = metrics = Metrics("bookkeeper_streams_gateway_")
        self._calls: dict[str, tuple[Counter, Histogram]] = {}
        self._refusals: dict[tuple[str, str], Counter] = {}
        self.appended_records = metrics.counter("appended_records_total", "Records that were appended.")
        self.appended_bytes = metrics.counter("appended_bytes_total", "Bytes of values that were appended.")
        self.duplicates = metrics.counter("duplicate_batches_total", "Batches that their producer had appended before.")
        self.append_seconds = metrics.histogram(
            "append_duration_seconds", "Seconds from the arrival of a batch until it was durable."
        )
        self.read_records = metrics.counter("read_records_total", "Records that were sent to readers.")
        self.read_bytes = metrics.counter("read_bytes_total", "Bytes of values that were sent to readers.")
        self.exported_bytes = metrics.counter("exported_bytes_total", "Bytes of files that streams were copied to.")
        self.imported_bytes = metrics.counter("imported_bytes_total", "Bytes of files that streams were made of.")
        self.gaps = metrics.counter("gaps_total", "Gaps that readers were told of.")
        self.tails = metrics.gauge("tails", "Readers that are connected.")
        self.tails_without_credits = metrics.counter(
            "tail_waits_for_credits_total", "How often records waited because their reader had given no credits."
        )
        self.append_streams = metrics.gauge("append_streams", "Streaming appends that are connected.")
        self.owned = metrics.gauge("owned_streams", "Streams that this gateway owns.")
        self.pending = metrics.gauge("pending_batches", "Batches that wait to become durable.")
        self.serving = metrics.gauge("serving", "1 while the metadata store answers and the gateway is not stopped.")
        self.budget: CallBudget | None = None
        self._request_bytes = metrics.gauge(
            "request_bytes", "Bytes of requests that are being received, or are not answered."
        )
        self._calls_in_progress = metrics.gauge("calls_in_progress", "Calls that have begun and have not ended.")
        self._calls_waiting = metrics.gauge("calls_waiting_for_room", "Calls whose request waits for room.")
        self.ownership = OwnershipCounts(
            taken=metrics.counter("streams_taken_total", "How often this gateway took a stream."),
            lost=metrics.counter("streams_lost_total", "How often another owner took a stream from this gateway."),
            redirected=metrics.counter("redirects_total", "Calls that were sent to the gateway that owns the stream."),
        )

    def update_budget(self) -> None:
        """Update the numbers of what is in progress."""
        if self.budget is not None:
            self._request_bytes.value = self.budget.bytes
            self._calls_in_progress.value = self.budget.calls
            self._calls_waiting.value = self.budget.waiting

    def answered(self, method: str, seconds: float, status: str) -> None:
        """Count a call that has ended. ``status`` is its code's name."""
        found = self._calls.get(method)
        if found is None:
            found = self._calls[method] = (
                self.metrics.counter("calls_total", "Calls that have ended.", method=method),
                self.metrics.histogram("call_duration_seconds", "Seconds that calls took.", method=method),
            )
        found[0].add()
        found[1].observe(seconds)
        if status != "OK":
            counter = self._refusals.get((method, status))
            if counter is None:
                counter = self._refusals[method, status] = self.metrics.counter(
                    "calls_refused_total", "Calls that ended with an error.", method=method, status=status
                )
            counter.add()
