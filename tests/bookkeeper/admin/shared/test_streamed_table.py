"""Rows are printed as they come."""

from __future__ import annotations

import json

import pytest

from bookkeeper.admin.shared.streamed_table import StreamedTable


def test_rows_for_people_stand_below_their_names(capsys: pytest.CaptureFixture[str]) -> None:
    table = StreamedTable(False, {"log": 4, "first_entry": 12, "what": 0})
    table.row(log=7, first_entry=None, what=["a", "b"], hidden=1)
    table.remark("a file")
    table.damage("cannot be read", offset=3)
    assert capsys.readouterr().out.splitlines() == [
        " log   first entry  what",
        "   7                a b",
        "-- a file",
        "!! cannot be read",
    ]


def test_for_programs_every_line_is_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    table = StreamedTable(True, {"log": 4})
    table.row(log=7, hidden=[1])
    table.remark("a file", size=1)
    table.damage("cannot be read", offset=3)
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        {"log": 7, "hidden": [1]},
        {"remark": "a file", "size": 1},
        {"damaged": "cannot be read", "offset": 3},
    ]
