"""Random reads run: data are written, the page cache is dropped, entries come from the device."""

from __future__ import annotations

from pathlib import Path

from benchmarks.random_reads import measure
from benchmarks.report import Report


def test_entries_are_read_at_random_beside_bare_reads(tmp_path: Path) -> None:
    report = Report()
    measure(report, tmp_path, megabytes=16)
    assert [figure.what for figure in report.figures if "MB" in figure.what] == [
        f"random reads, {size} MB, {how} at a time"
        for size in (4, 16)
        for how in ("everything dropped, 1", "entry logs dropped, 1", "entry logs dropped, 16")
    ]
    assert len([figure for figure in report.figures if figure.aim is not None]) == 2
    assert all(figure.seen > 0 for figure in report.figures)
    assert not list(tmp_path.iterdir()), "the data are removed"
