"""Where there can be no disks of a benchmark, the rows about ledger directories say why they are missing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.directories import measure
from benchmarks.report import Report


def test_without_disks_it_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    report = Report()
    measure(report, tmp_path)
    assert report.figures == []
    assert "not measured: mounting loop devices needs root" in capsys.readouterr().out
