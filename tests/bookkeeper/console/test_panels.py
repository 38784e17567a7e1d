"""The interface of panels: what is one, and which pages are wrong."""

from __future__ import annotations

import pytest

from bookkeeper.console.panels import (
    ROWS_MAX,
    Panel,
    PanelContext,
    PanelFacts,
    PanelNote,
    PanelPage,
    PanelTable,
    wrong_page,
)


class EmptyPanel:
    name = "empty"
    title = "Empty"

    async def snapshot(self, context: PanelContext) -> PanelPage:
        return PanelPage()

    async def detail(self, context: PanelContext, key: str) -> PanelPage | None:
        return None


def test_an_object_with_these_members_is_a_panel() -> None:
    panel: Panel = EmptyPanel()
    assert isinstance(panel, Panel)
    assert not isinstance(object(), Panel)


def test_a_page_whose_tables_fit_has_nothing_wrong() -> None:
    table = PanelTable(("stream", "segments"), (("a", 1), ("b", None)), total=7)
    assert wrong_page(PanelPage((PanelFacts({"streams": 7}), table, PanelNote("fine")))) is None


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (PanelTable(("a", "b"), ((1, 2), (1,)), title="x"), "row 1 of the table 'x' has 1 cells for 2 columns"),
        (PanelTable(("a",), ((1,),) * (ROWS_MAX + 1)), "a table without title has 20001 rows"),
        (PanelTable(("a",), ((1,), (2,)), total=1), "2 rows, and a total of 1"),
    ],
)
def test_what_is_wrong_with_a_table_is_said(table: PanelTable, says: str) -> None:
    assert says in str(wrong_page(PanelPage((table,))))
