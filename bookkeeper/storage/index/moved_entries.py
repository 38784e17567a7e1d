"""Entries that have another place now, and putting the new places into pages of the index. Pure: arrays in, arrays out.

Work is done in runs. Only pages in which something has changed are looked at entry by entry.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from bookkeeper.codec import scatter
from bookkeeper.storage.index.entry_index import PAGE


@dataclass(slots=True)
class MovedEntries:
    """Entries of one ledger that were copied. Ids ascend; all are parallel."""

    ledger_id: int
    entry_ids: array[int]
    old: array[int]
    new: array[int]


def pages(entry_ids: array[int]) -> Iterator[tuple[int, int, int]]:
    """(number of a page, first, end): which of these ascending ids are in it."""
    begin = 0
    while begin < len(entry_ids):
        number = entry_ids[begin] // PAGE
        end = bisect_left(entry_ids, PAGE * (number + 1), begin)
        yield number, begin, end
        begin = end


def all_at(page: array[int], origin: int, entry_ids: array[int], i0: int, i1: int, places: array[int]) -> bool:
    """Whether the page, whose first entry is ``origin``, has the entries ``i0 .. i1 - 1`` at these places."""
    same = page[:]
    scatter(same, origin, entry_ids, i0, i1, places[i0:i1])
    return same == page


def put_moved(page: array[int], origin: int, moved: MovedEntries, i0: int, i1: int) -> int:
    """Put the new places of the entries ``i0 .. i1 - 1`` into a page, of those that it has at their old places. Returns
    how many these were."""
    if all_at(page, origin, moved.entry_ids, i0, i1, moved.old):
        scatter(page, origin, moved.entry_ids, i0, i1, moved.new[i0:i1])
        return i1 - i0
    same = [at for at in range(i0, i1) if page[moved.entry_ids[at] - origin] == moved.old[at]]
    for at in same:
        page[moved.entry_ids[at] - origin] = moved.new[at]
    return len(same)
