"""What others have written commands no terminal."""

from __future__ import annotations

import pytest

from bookkeeper.admin.shared.answers import VerbAnswer, show_answer
from bookkeeper.admin.shared.options import print_table
from bookkeeper.admin.shared.streamed_table import StreamedTable
from bookkeeper.admin.shared.terminal import harmless


@pytest.mark.rule("X38")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("two lines\n\tand é, 語", "two lines\n\tand é, 語"),
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ("a\rb\x07\x9b31m", "a\\rb\\x07\\x9b31m"),
        ("\u202eback", "\\u202eback"),
    ],
)
def test_controls_are_shown_and_not_sent(text: str, shown: str) -> None:
    assert harmless(text) == shown


def test_a_cell_has_one_line() -> None:
    assert harmless("bk1\nbk9  writable", lines=False) == "bk1\\nbk9  writable"


@pytest.mark.rule("X38")
def test_whatever_a_verb_prints_for_people_goes_through_it(capsys: pytest.CaptureFixture[str]) -> None:
    evil = "\x1b[2J\u202eb9"
    print_table(evil, ["name"], [{"name": evil}, {"name": [evil, "a\nb"]}])
    print_table(evil, ["name"], [])
    VerbAnswer({}, evil).show()
    show_answer(evil)
    table = StreamedTable(False, {"name": 1})
    table.row(name=evil)
    table.remark(evil)
    table.damage(evil)
    out = capsys.readouterr().out
    assert out.count("\\x1b[2J\\u202eb9") == 9 and "a\\nb" in out
    assert "\x1b" not in out and "\u202e" not in out
