"""What a cursor has done, against a set of numbers; and its bound."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from segments.cursors.acked_ranges import AckedRange, AckedRanges, FrozenRanges, Mark, nth_undone, undone
from segments.position import Position
from tests.examples_of import examples


def place(seq_no: int) -> Position:
    """Ten records in an entry: a position for the record of this number."""
    return Position(1, seq_no // 10, seq_no % 10)


def behind(seq_no: int) -> Position:
    return place(seq_no).next


SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 8)), max_size=40)


def filled(spans: list[tuple[int, int]], limit: int = 1000) -> tuple[AckedRanges, set[int]]:
    acked, done = AckedRanges(Mark(5, place(5)), limit=limit), set(range(5))
    for first, count in spans:
        if acked.add(first, first + count, behind(first + count - 1)):
            done |= set(range(first, first + count))
        acked.validate_state()
    return acked, done


@given(SPANS)
def test_it_knows_what_a_set_knows(spans: list[tuple[int, int]]) -> None:
    """SEG-87: acknowledgements come in any order, and more than once."""
    acked, done = filled(spans)
    first_undone = next(n for n in range(100) if n not in done)
    assert acked.mark.seq_no == first_undone
    assert acked.mark.position == (place(5) if first_undone == 5 else behind(first_undone - 1))
    assert [n for n in range(100) if acked.holds(n)] == sorted(done)
    assert acked.freeze().records == len([n for n in done if n > first_undone])
    assert all(each.after == behind(each.end - 1) for each in acked.freeze())


@given(SPANS, st.integers(0, 70), st.integers(0, 30))
def test_what_is_not_done_is_the_rest(spans: list[tuple[int, int]], first: int, count: int) -> None:
    acked, done = filled(spans)
    parts = undone(acked.mark, acked.freeze(), first, first + count)
    assert [n for a, b in parts for n in range(a, b)] == [n for n in range(first, first + count) if n not in done]


@given(SPANS, st.integers(0, 30))
def test_n_records_further_counts_or_ignores_what_is_done(spans: list[tuple[int, int]], count: int) -> None:
    """SEG-90: skipping n records counts acknowledged ones only if that is asked for."""
    acked, done = filled(spans)
    start = acked.mark.seq_no
    assert nth_undone(acked.mark, acked.freeze(), count, count_done=True) == start + count
    to = nth_undone(acked.mark, acked.freeze(), count, count_done=False)
    assert len([n for n in range(start, to) if n not in done]) == count


@settings(max_examples=examples(50))
@given(SPANS)
def test_a_range_beyond_the_bound_is_refused_and_none_is_dropped(spans: list[tuple[int, int]]) -> None:
    """SEG-97: the state is bounded; what does not fit is refused, and what was taken stays."""
    acked, done = filled(spans, limit=3)
    assert len(acked) <= 3
    assert [n for n in range(100) if acked.holds(n)] == sorted(done)


def test_a_full_cursor_still_takes_what_fills_its_holes() -> None:
    ranges = FrozenRanges.of([AckedRange(2, 4, behind(3)), AckedRange(6, 8, behind(7))])
    acked = AckedRanges(Mark(0, place(0)), ranges, limit=2)
    assert not acked.add(10, 11, behind(10))
    assert acked.add(4, 6, behind(5)) and len(acked) == 1
    assert acked.add(0, 2, behind(1)) and acked.mark == Mark(8, behind(7)) and len(acked) == 0


def test_a_beginning_at_what_is_done_leaves_no_empty_part() -> None:
    acked = AckedRanges(Mark(0, place(0)), limit=10)
    assert acked.add(5, 8, behind(7))
    assert undone(acked.mark, acked.freeze(), 5, 10) == [(8, 10)]


def test_the_mark_goes_to_the_end_of_the_last_range_that_it_reaches() -> None:
    acked, _ = filled([(10, 2), (14, 6)])
    assert acked.add(5, 15, behind(14))
    assert acked.mark == Mark(20, behind(19)), "the range that ends before the mark says nothing of where it stands"
    assert acked.freeze() == FrozenRanges()
