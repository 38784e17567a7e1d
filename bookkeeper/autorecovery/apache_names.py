"""What a process of autorecovery does under the names that Apache's auditors and workers give it.

Whoever has boards for Apache BookKeeper keeps them. :data:`NAMES` says what each name is here; docs/compatibility.md
shows it, and a test holds it against the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bookkeeper.autorecovery.report import AutorecoveryReport
from bookkeeper.metrics import Metrics, Summary

PERIOD_S: Final = 60.0
"""Quantiles are those of the last minute that is over."""

NAMES: Final[Mapping[str, str]] = {
    "auditor_NUM_UNDER_REPLICATED_LEDGERS": "ledgers that were marked, each time that the auditor marked those of lost "
    "bookies",
    "replication_worker_NUM_FULL_OR_PARTIAL_LEDGERS_REPLICATED": "ledgers that were made whole",
    "replication_worker_NUM_ENTRIES_READ": "entries that were copied to other bookies",
    "replication_worker_NUM_ENTRIES_WRITTEN": "the same: what is read is written",
    "replication_worker_NUM_BYTES_READ": "bytes of these entries; the sum and the count, without quantiles",
    "replication_worker_NUM_BYTES_WRITTEN": "the same",
}


class ReplicationNames:
    """The numbers of one process under Apache's names."""

    def __init__(self, marked: Summary) -> None:
        """``marked``: how many ledgers were marked each time."""
        self.metrics = Metrics()
        self._marked = marked
        self._turned: float | None = None

    def show(self, report: AutorecoveryReport, now: float) -> None:
        """Bring the numbers up to date. ``now`` in seconds, of a clock that never goes back."""
        if self._turned is None or now - self._turned >= PERIOD_S:
            self._turned = now
            self._marked.turn()
        name = "auditor_NUM_UNDER_REPLICATED_LEDGERS"
        self.metrics.summary(name, NAMES[name], success="true").show(self._marked, 1.0)
        numbers = {
            "replication_worker_NUM_FULL_OR_PARTIAL_LEDGERS_REPLICATED": report.repaired,
            "replication_worker_NUM_ENTRIES_READ": report.copied_entries,
            "replication_worker_NUM_ENTRIES_WRITTEN": report.copied_entries,
        }
        for name, value in numbers.items():
            self.metrics.gauge(name, NAMES[name]).value = value
        copied = Summary(count=report.copied_entries, total=report.copied_bytes)
        for name in ("replication_worker_NUM_BYTES_READ", "replication_worker_NUM_BYTES_WRITTEN"):
            self.metrics.summary(name, NAMES[name], success="true").show(copied, 1.0)
