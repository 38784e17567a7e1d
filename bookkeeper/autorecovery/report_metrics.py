"""A process's report as metrics."""

from __future__ import annotations

from bookkeeper.autorecovery.report import AutorecoveryReport
from bookkeeper.metrics import Metrics


def show_report(report: AutorecoveryReport, metrics: Metrics) -> None:
    """Set the metrics to what the report says."""
    gauges = {
        "autorecovery_is_auditor": ("Whether this process is the cluster's auditor.", report.auditor),
        "autorecovery_ledgers_working": ("Ledgers that are being repaired here now.", len(report.working)),
        "autorecovery_ledgers_waiting": ("Under-replicated ledgers that wait for a repair here.", report.waiting),
        "autorecovery_ledgers_stuck": ("Ledgers that could not be repaired so far.", report.stuck_count),
    }
    counters = {
        "autorecovery_ledgers_repaired_total": ("Ledgers that were made whole.", report.repaired),
        "autorecovery_ledgers_recovered_total": ("Open ledgers that were recovered, and so closed.", report.recovered),
        "autorecovery_copied_entries_total": ("Entries that were copied to other bookies.", report.copied_entries),
        "autorecovery_copied_bytes_total": ("Bytes of these entries.", report.copied_bytes),
    }
    for name, (text, value) in gauges.items():
        metrics.gauge(name, text).value = value
    for name, (text, total) in counters.items():
        metrics.counter(name, text).value = total
