from __future__ import annotations

from segments.entries import RecordColumns, StoredEntry, decode_entry, encode_entry
from segments.position import Position
from segments.read.entry_sequence import Item
from segments.read.options import Parts
from segments.read.ready_queue import ReadyQueue
from segments.read.wanted import make_ready
from segments.record import Gap, GapKind

GAP = Gap(Position(1, 9, 0), Position(1, 9, 1), GapKind.LOST)
BEGIN = Position(1, 0, 0)


def entry(number: int) -> StoredEntry:
    """Four records: sequence numbers 4n to 4n + 3."""
    columns = RecordColumns.of_values([b"%d" % each for each in range(4)])
    return decode_entry(encode_entry(columns, first_seq_no=4 * number, append_ms=0), 1, number)


def wanted(
    items: list[Item], begin: Position = BEGIN, stop: Position | None = None, parts: Parts | None = None
) -> tuple[list[int | None], bool]:
    """Sequence numbers, None for a gap; and whether the stop was reached."""
    ready, found = ReadyQueue(), list[int | None]()
    ended = make_ready(ready, items, begin, stop, parts)
    while ready:
        if isinstance(ready.first, Gap):
            ready.take_gap()
            found.append(None)
        else:
            taken, slot = ready.take_one()
            found.append(taken.first_seq_no + slot)
    return found, ended


def test_everything_behind_the_place_is_wanted() -> None:
    assert wanted([entry(0), entry(1)]) == ([*range(8)], False)
    assert wanted([entry(0), GAP, entry(1)]) == ([0, 1, 2, 3, None, 4, 5, 6, 7], False)
    assert wanted([]) == ([], False)


def test_it_begins_within_an_entry() -> None:
    assert wanted([entry(0), entry(1)], begin=Position(1, 1, 2)) == ([6, 7], False)


def test_it_stops_before_the_stop_and_says_so() -> None:
    assert wanted([entry(0), entry(1), entry(2)], stop=Position(1, 1, 1)) == ([0, 1, 2, 3, 4], True)
    assert wanted([entry(0), entry(1)], stop=Position(1, 1, 0)) == ([0, 1, 2, 3], True)
    assert wanted([entry(0)], stop=Position(1, 1, 0)) == ([0, 1, 2, 3], False)


def test_of_parts_only_these_are_wanted() -> None:
    assert wanted([entry(0), entry(1)], parts=lambda a, b: [(a + 1, a + 2)]) == ([1, 5], False)
