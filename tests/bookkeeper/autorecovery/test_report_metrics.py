"""What a scrape sees of autorecovery."""

from __future__ import annotations

from bookkeeper.autorecovery.report import AutorecoveryReport
from bookkeeper.autorecovery.report_metrics import show_report
from bookkeeper.metrics import Counter, Gauge, Metrics

REPORT = AutorecoveryReport(
    "healer",
    auditor=True,
    working=("ledger 1: copies", "ledger 2: copies"),
    repaired=3,
    recovered=4,
    copied_entries=5,
    copied_bytes=6,
    waiting=7,
    stuck_count=8,
)


def test_every_number_of_the_report_is_a_metric_of_its_kind() -> None:
    metrics = Metrics()
    for report in (AutorecoveryReport("healer"), REPORT):  # the second replaces the first
        show_report(report, metrics)
    shown = {
        name: (type(metric), metric.value) for name, _, _, metric in metrics if isinstance(metric, Counter | Gauge)
    }
    assert shown == {
        "autorecovery_is_auditor": (Gauge, True),
        "autorecovery_ledgers_working": (Gauge, 2),
        "autorecovery_ledgers_waiting": (Gauge, 7),
        "autorecovery_ledgers_stuck": (Gauge, 8),
        "autorecovery_ledgers_repaired_total": (Counter, 3),
        "autorecovery_ledgers_recovered_total": (Counter, 4),
        "autorecovery_copied_entries_total": (Counter, 5),
        "autorecovery_copied_bytes_total": (Counter, 6),
    }
    assert all(text.endswith(".") for _, text, _, _ in metrics)
