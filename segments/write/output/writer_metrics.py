"""What writers of streams count: appends, segments, take-overs.

The numbers are the client's (``client.metrics``), and those of all its streams together: a client may write thousands
of them. They are added to once for each group of records, never for each record, and of the groups under way one at a
time is timed.
"""

from __future__ import annotations

from collections.abc import Callable

from bookkeeper.metrics import Counter, Metrics
from segments.write.output.flight import OrderedGroup
from segments.write.segment.rolling import RollReason


class WriterMetrics:
    """The numbers of the writers of one client. Each writer has an object of its own, and they share the numbers."""

    def __init__(self, metrics: Metrics, now: Callable[[], float]) -> None:
        """``now`` reads the monotonic clock."""
        self._metrics, self._now = metrics, now
        self._timed: OrderedGroup | None = None
        self._began = 0.0
        self.records = metrics.counter("stream_appended_records_total", "Records of streams that became durable.")
        self.bytes = metrics.counter(
            "stream_appended_bytes_total", "Bytes of values that became durable, before they are compressed."
        )
        self.groups = metrics.counter(
            "stream_appended_groups_total", "Groups of records that were written together, as an entry or in pieces."
        )
        self.append_seconds = metrics.histogram(
            "stream_append_duration_seconds",
            "Seconds from when a group of records was sent until it was durable; of those under way, one is timed.",
        )
        self.duplicates = metrics.counter(
            "stream_duplicate_appends_total", "Appends of idempotent producers that were in the stream, or under way."
        )
        self.put_off = metrics.counter("stream_rolls_put_off_total", "Segments that were due to end, and went on.")
        self.failed = metrics.counter("stream_segments_failed_total", "Segments that ended because an append failed.")
        self.taken_over = metrics.counter("stream_take_overs_total", "Streams that a writer took.")
        self.take_over_seconds = metrics.histogram(
            "stream_take_over_duration_seconds", "Seconds from the claim of a stream until its writer could append."
        )
        self.lost = metrics.counter("stream_writers_lost_total", "Writers that ended without being closed.")

    def rolled(self, reason: RollReason) -> Counter:
        """Counts segments that ended for this reason."""
        return self._metrics.counter(
            "stream_rolls_total", "Segments that ended, and were followed by another.", reason=reason.value
        )

    def took_over(self, seconds: float) -> None:
        """A writer has its stream, so long after it has begun to ask for it."""
        self.taken_over.add()
        self.take_over_seconds.observe(seconds)

    def sent(self, log: OrderedGroup) -> None:
        """A group was sent to the ledger, perhaps again."""
        if self._timed is None:
            self._timed, self._began = log, self._now()

    def durable(self, log: OrderedGroup) -> None:
        """All entries of a group are durable."""
        self.records.add(log.columns.count)
        self.bytes.add(log.columns.values.size)
        self.groups.add()
        if log is self._timed:
            self.append_seconds.observe(self._now() - self._began)
            self._timed = None
