"""The comparison of layouts runs, and says of both what it measures."""

from __future__ import annotations

from pathlib import Path

from benchmarks.layouts import measure
from benchmarks.report import Report


def test_both_layouts_are_written_read_and_compacted(tmp_path: Path) -> None:
    report = Report()
    measure(report, tmp_path, megabytes=4, ledgers=(5,))
    seen = {figure.what.partition(", ")[2]: figure.seen for figure in report.figures}
    assert len(seen) == len(report.figures) == 10
    assert all(seen[f"{layout}: entries written"] > 0 for layout in ("one log for all", "a log per ledger"))
    assert seen["one log for all: rewritten after half were deleted"] > 0
    assert seen["a log per ledger: rewritten after half were deleted"] == 0
    assert seen["a log per ledger: syncs of logs a checkpoint"] >= 5
