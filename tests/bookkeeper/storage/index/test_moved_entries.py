"""New places go into pages of the index where the old ones still stand."""

from __future__ import annotations

from array import array

import pytest

from bookkeeper.storage.index.entry_index import PAGE
from bookkeeper.storage.index.moved_entries import MovedEntries, all_at, pages, put_moved


def page_with(*known: tuple[int, int]) -> array[int]:
    page = array("q", bytes(8 * PAGE))
    for entry_id, found in known:
        page[entry_id] = found
    return page


@pytest.mark.rule("G3")
def test_only_places_that_have_not_changed_are_moved() -> None:
    moved = MovedEntries(1, array("q", [1, 2, 3]), array("q", [11, 12, 13]), array("q", [91, 92, 93]))
    page = page_with((1, 11), (2, 77), (3, 13))
    assert put_moved(page, 0, moved, 0, 3) == 2
    assert list(page[:5]) == [0, 91, 77, 93, 0]
    assert not all_at(page, 0, moved.entry_ids, 0, 3, moved.new)
    page = page_with((1, 11), (2, 12), (3, 13))
    assert put_moved(page, 0, moved, 0, 3) == 3 and all_at(page, 0, moved.entry_ids, 0, 3, moved.new)


def test_ids_are_cut_at_the_borders_of_pages() -> None:
    ids = array("q", [1, 511, 512, 512, 600, 5000])
    assert list(pages(ids)) == [(0, 0, 2), (1, 2, 5), (9, 5, 6)]
