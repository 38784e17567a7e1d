"""The page about planted bugs."""

from __future__ import annotations

from tests.simulation import run_seed
from tests.simulation.faultlog import document, find, row, rows_of, sections_of_others, with_rows


def test_a_found_bug_is_a_row_with_its_seed() -> None:
    result = find("ack-before-sync")
    assert result is not None
    cells = row("ack-before-sync", result).split(" | ")
    assert cells[0] == "| `ack-before-sync`"
    assert cells[2:5] == ["K7", "20", str(result.seed)]
    assert "not found" in row("ack-before-sync", None)


def test_the_page_has_the_table_and_the_counts() -> None:
    page = document(["| `x` |"], [run_seed(3)])
    assert "| `x` |" in page
    assert "1 seeds" in page
    assert "failed: none" in page
    assert "acks" in page


def test_some_rows_are_made_anew_and_the_rest_of_the_page_stays() -> None:
    page = document(["| `x` | old |", "| `y` | old |"], [run_seed(3)])
    rows = rows_of(page) | {"y": "| `y` | new |"}
    assert with_rows(page, list(rows.values())) == page.replace("| `y` | old |", "| `y` | new |")


def test_sections_of_other_commands_stay() -> None:
    page = document(["| `x` |"], [run_seed(3)])
    assert sections_of_others(page) == ""
    assert sections_of_others(page + "\n## Damaged files\n\nnone\n") == "\n## Damaged files\n\nnone\n"
