"""What tests of panels read from a page, and what they hold of every page."""

from __future__ import annotations

from bookkeeper import BookKeeper
from bookkeeper.console.panels import Cell, PanelContext, PanelFacts, PanelNote, PanelPage, PanelTable, wrong_page


def context_of(client: BookKeeper) -> PanelContext:
    """What a console gives to its panels."""
    return PanelContext(client, "sim://", client.services.seams.clock)


def rows_of(page: PanelPage, title: str = "") -> list[dict[str, Cell]]:
    """The rows of a table, by the names of its columns."""
    assert wrong_page(page) is None
    table = next(block for block in page.blocks if isinstance(block, PanelTable) and block.title == title)
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def facts_of(page: PanelPage) -> dict[str, Cell]:
    """The first facts of a page."""
    return dict(next(block for block in page.blocks if isinstance(block, PanelFacts)).facts)


def notes_of(page: PanelPage) -> list[str]:
    """The sentences of a page."""
    return [block.text for block in page.blocks if isinstance(block, PanelNote)]
