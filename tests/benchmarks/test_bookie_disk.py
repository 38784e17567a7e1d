"""The measurements of a bookie's disk run: a process that is killed, a restart, a long read."""

from __future__ import annotations

from pathlib import Path

from benchmarks.bookie_disk import measure
from benchmarks.report import Report


def test_a_bookie_is_filled_killed_started_and_read(tmp_path: Path) -> None:
    report = Report()
    measure(report, tmp_path, megabytes=4)
    assert [figure.what for figure in report.figures] == [
        "memory of the index, an entry not in a segment",
        "restart after kill -9: speed over reading the journal",
        "restart after kill -9",
        "batch reads of one ledger, over sendfile",
    ]
    assert all(figure.seen > 0 for figure in report.figures[1:])
