"""The board for Grafana asks for what there is, and its panels can be told apart."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.boards.deployed import ROOT, PanelQuery, boards, panels, queries
from tests.boards.promql import named
from tests.boards.shown_metrics import FROM_PROMETHEUS, shown

QUERIES = queries()


def test_there_is_a_board_with_what_an_operator_looks_at() -> None:
    rows = [panel["title"] for board in boards().values() for panel in board["panels"] if panel["type"] == "row"]
    assert {"Adds", "Reads", "Journal", "Disks", "Garbage and compaction", "Under-replication", "Streams"} <= set(rows)
    assert len(QUERIES) > 50


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: f"{query.panel}: {query.query}")
def test_every_query_names_metrics_that_exist(query: PanelQuery) -> None:
    found = named(query.query)
    assert found.names | found.patterns, "a query that asks for nothing"
    assert found.names - shown() - FROM_PROMETHEUS == set()
    for pattern in found.patterns:
        assert any(re.fullmatch(pattern, name) for name in shown()), pattern


@pytest.mark.parametrize("name", boards())
def test_panels_have_names_units_and_room_of_their_own(name: str) -> None:
    board = boards()[name]
    found = list(panels(board))
    every = [*board["panels"], *(inner for panel in board["panels"] for inner in panel.get("panels", ()))]
    assert [number for number, times in Counter(panel["id"] for panel in every).items() if times > 1] == []
    taken: dict[tuple[int, int], str] = {}
    for panel in found:
        assert panel["title"] and panel["description"] and panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        places = panel["gridPos"]
        assert places["x"] + places["w"] <= 24, panel["title"]
        for x in range(places["x"], places["x"] + places["w"]):
            for y in range(places["y"], places["y"] + places["h"]):
                assert (x, y) not in taken, f"{panel['title']} lies upon {taken.get((x, y))}"
                taken[x, y] = panel["title"]
        refs = [target["refId"] for target in panel["targets"]]
        assert len(refs) == len(set(refs)) and all(
            target["legendFormat"] or len(refs) == 1 for target in panel["targets"]
        )


@pytest.mark.parametrize("name", boards())
def test_only_variables_of_the_board_are_used(name: str) -> None:
    board = boards()[name]
    known = {each["name"] for each in board["templating"]["list"]} | {"__rate_interval"}
    used = set(re.findall(r"\$\{?(\w+)\}?", "\n".join(each.query for each in QUERIES if each.board == name)))
    assert used <= known


def test_the_compatibility_page_names_the_board() -> None:
    assert "deploy/grafana/bookkeeper.json" in (ROOT / "docs/compatibility.md").read_text()
