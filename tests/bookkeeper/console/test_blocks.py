"""Blocks of a page: tables are cut into pages, and nothing is left out silently."""

from __future__ import annotations

import pytest

from bookkeeper.console.blocks import ROWS, PageAddress, ShownFacts, ShownNote, ShownTable, paging, show_blocks
from bookkeeper.console.panels import PanelFacts, PanelNote, PanelTable, Tone


def table_of(count: int, address: PageAddress, total: int | None = None) -> tuple[ShownTable, list[ShownNote]]:
    table = PanelTable(("number",), tuple((n,) for n in range(count)), total=total)
    first, *rest = show_blocks([table], address, 0)
    assert isinstance(first, ShownTable)
    return first, [each for each in rest if isinstance(each, ShownNote)]


def test_a_long_table_is_cut_and_every_row_is_on_one_page() -> None:
    seen = []
    address = PageAddress("/x", {"other": "kept"})
    for number in range(3):
        table, _ = table_of(2 * ROWS + 1, PageAddress("/x", {"other": "kept", "rows0": str(number) if number else ""}))
        seen += [row[0].text for row in table.rows]
    assert seen == [str(n) for n in range(2 * ROWS + 1)]
    table, _ = table_of(2 * ROWS + 1, address)
    assert table.paging.text == "1–100 of 201"
    assert [(link.text, link.path) for link in table.paging.links] == [
        ("next", "/x?other=kept&rows0=1"),
        ("last", "/x?other=kept&rows0=2"),
    ]


@pytest.mark.parametrize("number", ["-1", "x", "1e3", "²", "9" * 40])
def test_a_number_that_is_none_is_the_first_page(number: str) -> None:
    table, _ = table_of(2 * ROWS, PageAddress("/x", {"rows0": number}))
    assert table.paging.first == 1


def test_a_page_beyond_the_end_is_the_last_one() -> None:
    table, _ = table_of(ROWS + 5, PageAddress("/x", {"rows0": "77"}))
    assert (table.paging.first, table.paging.last) == (101, 105)
    assert paging(PageAddress("/x"), "rows", 5, 0).text == ""


def test_rows_that_were_not_given_are_told() -> None:
    _, notes = table_of(3, PageAddress("/x"), total=5)
    assert [note.text for note in notes] == ["2 more are not shown: there are 5"]
    assert table_of(3, PageAddress("/x"), total=3)[1] == []


def test_facts_and_notes() -> None:
    facts, note = show_blocks([PanelFacts({"a": 1}, "t"), PanelNote("n", Tone.BAD)], PageAddress("/x"), 0)
    assert isinstance(facts, ShownFacts) and facts.title == "t" and facts.rows[0][1].text == "1"
    assert isinstance(note, ShownNote) and note.sign == "✗"
    (command,) = show_blocks([PanelNote("run `bk a`, then `b")], PageAddress("/x"), 0)
    assert isinstance(command, ShownNote) and command.parts == ["run ", "bk a", ", then ", "b"]


def test_a_column_is_of_the_kind_of_its_first_value() -> None:
    (table,) = show_blocks([PanelTable(("a", "b", "c"), ((None, 1, None), ("x", None, None)))], PageAddress("/x"), 0)
    assert isinstance(table, ShownTable) and table.kinds == ["text", "number", "none"]
