"""Bars and lines that change."""

from __future__ import annotations

import pytest

from bookkeeper.admin.shared.progress import progress_bar, status_line
from tests.bookkeeper.admin.commands import Terminal


def test_on_a_terminal_a_bar_and_a_line_show_what_they_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("COLUMNS", "120")
    with progress_bar("first", "of all") as (update, say):
        say("a [line] above")
        update(step="second", said="2/4", completed=2, total=4)
    with status_line("begins") as show:
        show("goes on")
    assert all(text in terminal.getvalue() for text in ("a [line] above", "second", "2/4", "goes on"))


def test_where_nobody_looks_on_only_lines_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("first", "of all") as (update, say), status_line("begins") as show:
        update(completed=1)
        show("goes on")
        say("a [line]")
    assert capsys.readouterr().err == "a [line]\n"
