"""Segments to one run without gaps, or the gap."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journal_manager import JournalGapError, SegmentInfo, TxId
from journal_manager.edits import MissingEdits, Piece, best_piece, in_order
from journal_manager.edits.selection import Selection, select


def segments(*ends: tuple[int, int | None]) -> list[SegmentInfo]:
    return [SegmentInfo(TxId(a), None if b is None else TxId(b), 1, 1, f"{a}") for a, b in ends]


def found(selection: Selection) -> tuple[list[int], tuple[int, int | None] | None]:
    gap = selection.gap
    return [s.first for s in selection.segments], None if gap is None else (gap.wanted, gap.next_available)


THREE = segments((1, 10), (11, 20), (21, None))
HOLE = segments((1, 10), (21, 30), (31, None))


@pytest.mark.rule("C7")
@pytest.mark.parametrize(
    ("given_segments", "start", "end", "expected"),
    [
        (THREE, 1, None, ([1, 11, 21], None)),
        (THREE, 10, None, ([1, 11, 21], None)),
        (THREE, 11, 20, ([11], None)),
        (THREE, 11, 15, ([11], None)),
        (THREE, 25, 99, ([21], None)),
        (THREE[:2], 21, None, ([], None)),
        (THREE[:2], 22, None, ([], (22, None))),
        (THREE[:2], 22, 25, ([], (22, None))),
        (THREE[:2], 25, 22, ([], None)),
        ([], 2, None, ([], (2, None))),
        (THREE[:2], 21, 21, ([], (21, None))),
        (THREE[:2], 15, 25, ([11], (21, None))),
        (THREE[1:], 5, None, ([], (5, 11))),
        (THREE[1:], 5, 7, ([], (5, 11))),
        (HOLE, 1, None, ([1], (11, 21))),
        (HOLE, 1, 10, ([1], None)),
        (HOLE, 15, None, ([], (15, 21))),
        (HOLE, 21, None, ([21, 31], None)),
        ([], 1, None, ([], None)),
        ([], 1, 1, ([], (1, None))),
    ],
)
def test_examples(given_segments: list[SegmentInfo], start: int, end: int | None, expected: object) -> None:
    chosen = select(reversed(given_segments), TxId(start), None if end is None else TxId(end))
    assert found(chosen) == expected


def test_a_segment_in_progress_is_left_out_on_demand() -> None:
    assert found(select(THREE, TxId(1), in_progress=False)) == ([1, 11], None)
    assert found(select(THREE, TxId(25), in_progress=False)) == ([], None)


def test_of_two_with_one_first_id_the_final_one_counts() -> None:
    both = [*segments((1, None)), *segments((1, 10)), *segments((1, None))]
    assert [s.last for s in in_order(both)] == [10]


def test_a_gap_is_named() -> None:
    error = MissingEdits(TxId(11), TxId(21)).error()
    assert isinstance(error, JournalGapError) and "edit 11" in str(error) and "21" in str(error)
    beyond = select(THREE[:2], 25).gap
    assert beyond is not None and "no edit after 20" in str(beyond.error())


@pytest.mark.rule("C4", "C7")
@given(st.lists(st.tuples(st.integers(1, 30), st.integers(0, 9)), max_size=6), st.integers(1, 40), st.integers(1, 40))
def test_what_is_selected_is_the_longest_run_there_is(ends: list[tuple[int, int]], start: int, end: int) -> None:
    there = {(a, a + n) for a, n in ends}
    there = {(a, b) for a, b in there if not any((c, d) != (a, b) and c <= b and a <= d for c, d in there)}
    held = {txid for a, b in there for txid in range(a, b + 1)}
    chosen = select(segments(*there), TxId(start), TxId(end))
    covered = [t for s in chosen.segments for t in range(s.first, (s.last or 0) + 1) if start <= t <= end]
    reach = start
    while reach <= end and reach in held:
        reach += 1
    assert covered == list(range(start, reach))
    assert (chosen.gap is None) == (reach > end)
    if chosen.gap is not None:
        assert chosen.gap.wanted == reach


ONE = segments((1, 10), (11, 15), (16, None))
TWO = segments((1, 12), (13, 30))


@pytest.mark.parametrize(
    ("listings", "wanted", "expected"),
    [
        ([ONE, TWO], 1, (1, 1)),
        ([ONE, TWO], 13, (1, 13)),
        ([ONE, ONE], 3, (0, 1)),
        ([ONE, []], 16, (0, 16)),
        ([ONE, TWO], 20, (1, 13)),
        ([ONE, TWO], 31, (0, 16)),
        ([TWO, TWO], 31, None),
        ([[], []], 1, None),
        ([TWO, TWO], 32, (32, None)),
        ([[], []], 2, (2, None)),
        ([TWO[1:], []], 5, (5, 13)),
    ],
)
def test_of_several_journals_the_longest_final_segment_is_read(
    listings: list[list[SegmentInfo]], wanted: int, expected: object
) -> None:
    piece = best_piece(listings, wanted)
    if isinstance(piece, Piece):
        assert (piece.journal, piece.segment.first) == expected
    elif piece is None:
        assert expected is None
    else:
        assert (piece.wanted, piece.next_available) == expected


def test_what_was_tried_is_left_out_and_what_is_open_on_demand() -> None:
    first = best_piece([ONE, TWO], 1)
    assert isinstance(first, Piece) and first.journal == 1
    second = best_piece([ONE, TWO], 1, without=[first])
    assert isinstance(second, Piece) and second.journal == 0
    assert best_piece([ONE, TWO], 1, without=[first, second]) == MissingEdits(1, 11)
    assert best_piece([ONE, TWO], 31, in_progress=False) is None
