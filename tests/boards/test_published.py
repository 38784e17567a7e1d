"""What StreamNative's boards ask for is there, or has a reason on the page of compatibility."""

from __future__ import annotations

from collections import Counter

from tests.boards.deployed import ROOT
from tests.boards.promql import named
from tests.boards.published import OF_ONE_PATH, published
from tests.boards.shown_metrics import shown


def test_what_is_asked_is_shown_or_has_a_reason() -> None:
    for each in published():
        has_it = each.metric in shown() or bool(OF_ONE_PATH.fullmatch(each.metric))
        assert has_it == (each.missing is None), each.metric


def test_the_page_says_how_many_are_answered() -> None:
    asked = Counter(board for each in published() for board in each.boards)
    answered = Counter(board for each in published() if each.missing is None for board in each.boards)
    page = (ROOT / "docs/compatibility.md").read_text()
    for board in asked:
        assert f"| {board} | {asked[board]} | {answered[board]} |" in page, board


def test_a_query_asks_for_the_metric_with_its_labels() -> None:
    found = {(each.metric, each.labels, each.is_rate): each for each in published()}
    one = found["bookkeeper_server_ADD_ENTRY_count", 'success="true"', True]
    assert one.query == 'rate(bookkeeper_server_ADD_ENTRY_count{success="true"}[10s])'
    assert all(named(each.query).names | named(each.query).patterns for each in published())
