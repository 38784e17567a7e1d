"""Batch reads from a bookie's process beside ``sendfile``."""

from __future__ import annotations

from pathlib import Path

from benchmarks.batch_reads import measure
from benchmarks.report import Report


def test_a_ledger_is_read_from_a_bookie_and_its_log_is_sent(tmp_path: Path) -> None:
    report = Report()
    measure(report, tmp_path / "bookie", megabytes=3)
    (figure,) = report.figures
    assert figure.what == "batch reads from a bookie over TCP, over sendfile"
    assert figure.seen > 0 and "sendfile" in figure.note
