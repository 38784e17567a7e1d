"""What is fetched goes out in order, in batches of any size, with gaps between."""

from __future__ import annotations

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from segments.entries.columns import RecordColumns
from segments.entries.entry import encode_entry
from segments.entries.lone_entries import LoneEntries
from segments.entries.stored_entry import StoredEntry, decode_entry
from segments.position import Position
from segments.read.batches.entry_sequence import Item
from segments.read.batches.ready_queue import ReadyQueue
from segments.read.batches.record_batch import EntrySlice
from segments.read.options import Parts
from segments.record import Gap, GapKind

GAP = Gap(Position(1, 0, 0), Position(1, 1, -1), GapKind.LOST)


@given(
    st.lists(st.integers(0, 5), max_size=12), st.lists(st.tuples(st.integers(1, 9), st.integers(0, 400)), min_size=1)
)
def test_everything_goes_out_once_and_in_order(plan: list[int], asks: list[tuple[int, int]]) -> None:
    """SEG-91: 0 in the plan is a gap; a limit in bytes below one record still gives one. What is put back is next."""
    queue, expected, at = ReadyQueue(), list[int | None](), 0
    for count in plan:
        if not count:
            queue.add([GAP])
            expected.append(None)
            continue
        columns = RecordColumns.of_values([b"%d" % n for n in range(at, at + count)])
        entry = decode_entry(encode_entry(columns, first_seq_no=at, append_ms=0), 1, at)
        if count == 3:
            run = lone(at)
            queue.add_entries([run])
            expected += range(at, at + run.count)
            at += run.count
            continue
        if at % 2:
            queue.add([EntrySlice(entry, 0, entry.count)])
        else:
            queue.add_entries([entry])
        expected += range(at, at + count)
        at += count
    seen: list[int | None] = []
    while queue:
        for records, size in asks:
            queue.validate_state()
            if not queue:
                break
            if isinstance(queue.first, Gap):
                assert queue.take_gap() is GAP
                seen.append(None)
                continue
            if records == 9:
                one, slot = queue.take_one()
                seen.append(one.first_seq_no + slot)
                continue
            taken = queue.take(records, size or inf, at_least_one=True)
            if records % 2:
                queue.put_back(taken)
                queue.validate_state()
                assert queue.take(records, size or inf, at_least_one=True) == taken
            found = [n for s in taken for n in range(s.entry.first_seq_no + s.a, s.entry.first_seq_no + s.b)]
            assert 1 <= len(found) <= records
            seen += found
    assert seen == expected and queue.records == 0


def lone(first: int, count: int = 4) -> LoneEntries:
    """Entries of one record each: entry and sequence number are the same."""
    payloads = [
        encode_entry(RecordColumns.of_values([b"%d" % n]), first_seq_no=n, append_ms=0)
        for n in range(first, first + count)
    ]
    found = LoneEntries.found(payloads, 0, 1, first, first, 0)
    assert found is not None
    return found


def test_without_need_nothing_too_large_is_taken() -> None:
    entry = decode_entry(encode_entry(RecordColumns.of_values([b"x" * 100] * 4), first_seq_no=0, append_ms=0), 1, 0)
    queue = ReadyQueue()
    queue.add_entries([entry])
    assert queue.take(10, 1, at_least_one=False) == []
    assert [s.b - s.a for s in queue.take(10, 2 * entry.size // 4 + 1, at_least_one=False)] == [2]
    queue.clear()
    assert not queue


LAST_GAP = Gap(Position(1, 9, 0), Position(1, 9, 1), GapKind.LOST)
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
    ended = ready.add_wanted(items, begin, stop, parts)
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
    assert wanted([entry(0), LAST_GAP, entry(1)]) == ([0, 1, 2, 3, None, 4, 5, 6, 7], False)
    assert wanted([]) == ([], False)


def test_it_begins_within_an_entry() -> None:
    assert wanted([entry(0), entry(1)], begin=Position(1, 1, 2)) == ([6, 7], False)


def test_it_stops_before_the_stop_and_says_so() -> None:
    assert wanted([entry(0), entry(1), entry(2)], stop=Position(1, 1, 1)) == ([0, 1, 2, 3, 4], True)
    assert wanted([entry(0), entry(1)], stop=Position(1, 1, 0)) == ([0, 1, 2, 3], True)
    assert wanted([entry(0)], stop=Position(1, 1, 0)) == ([0, 1, 2, 3], False)


def test_of_parts_only_these_are_wanted() -> None:
    assert wanted([entry(0), entry(1)], parts=lambda a, b: [(a + 1, a + 2)]) == ([1, 5], False)


@given(
    st.integers(0, 9), st.integers(-1, 3), st.none() | st.tuples(st.integers(0, 9), st.integers(0, 3)), st.booleans()
)
def test_of_a_run_that_is_wanted_which_is_wanted_of_its_entries(
    begin: int, slot: int, stop: tuple[int, int] | None, has_parts: bool
) -> None:
    run = lone(2, 5)
    place, end = Position(1, begin, slot), None if stop is None else Position(1, *stop)
    parts: Parts | None = (lambda a, b: [(n, n + 1) for n in range(a, b) if n % 2]) if has_parts else None
    assert wanted([run], place, end, parts) == wanted([*run.entries()], place, end, parts)
    other = Position(2, begin, slot)
    assert wanted([run], other, end, parts) == wanted([*run.entries()], other, end, parts)
    assert wanted([LAST_GAP, run], Position(0, 9, 0), end) == wanted([LAST_GAP, *run.entries()], Position(0, 9, 0), end)
