"""Which segment a seek leads to, by the stream's node alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from segments.chain import SegmentContents, StreamChain
from segments.position import Position
from segments.read.positions.seek_target import (
    SearchKey,
    SeekTarget,
    TargetEnd,
    TargetPosition,
    TargetSegment,
    seek_target,
    visible_segments,
)
from tests.segments.chain.pages import folded, long_chain


def chain(*spans: tuple[int, int, int] | None, open_end: bool = False) -> StreamChain:
    """Completed segments with (records, first txid, last txid); append times are the same numbers. None: empty."""
    made = StreamChain(stream_id="s").claim("me", "n")
    for i, span in enumerate(spans, 1):
        made = made.start_segment(i, 0)
        if span is None:
            made = made.complete(i, SegmentContents(), 1)
        else:
            records, first, last = span
            made = made.complete(
                i, SegmentContents(records, 1, records - 1, (records - 1, 0), first, last, first, last), 1
            )
    return made.start_segment(99, 0) if open_end else made


def number(placed: SeekTarget) -> int | None:
    assert isinstance(placed, TargetSegment), placed
    return placed.segment.number


TXIDS = chain((10, 1, 5), (10, 5, 5), (10, 5, 9), (10, 20, 30))


@pytest.mark.parametrize(
    ("txid", "expected"), [(0, 1), (1, 1), (4, 1), (5, 1), (6, 3), (9, 3), (10, 4), (20, 4), (30, 4)]
)
def test_the_segment_for_a_txid_with_duplicates_at_borders(txid: int, expected: int) -> None:
    """SEG-68: equal transaction ids at a border lead to the first segment that has them."""
    assert number(seek_target(TXIDS, SearchKey.TXID, txid)) == expected


def test_a_txid_above_everything_is_at_the_end_or_in_the_open_segment() -> None:
    """SEG-68: only the open segment may have it."""
    assert seek_target(TXIDS, SearchKey.TXID, 31) == TargetEnd()
    assert number(seek_target(TXIDS.start_segment(9, 0), SearchKey.TXID, 31)) == 5
    assert seek_target(TXIDS.start_segment(9, 0), SearchKey.TXID, 31, behind=5) == TargetEnd()


def test_segments_without_records_or_without_txids_are_passed() -> None:
    """SEG-68: also those whose records have no transaction id."""
    made = chain((5, 1, 2), None, (5, 3, 4))
    assert number(seek_target(made, SearchKey.TXID, 3)) == 3
    bare = replace(made.segments[2].contents, first_txid=None, last_txid=None)
    made = replace(made, recent=(*made.segments[:2], replace(made.segments[2], contents=bare)))
    assert seek_target(made, SearchKey.TXID, 3) == TargetEnd()


def test_a_number_is_placed_exactly_at_a_segments_beginning() -> None:
    """SEG-72: counts lead to a segment without a look at any other."""
    made = chain((10, 0, 0), None, (5, 0, 0), open_end=True)
    assert seek_target(made, SearchKey.SEQ_NO, 0) == TargetPosition(Position(1, 0, 0))
    assert number(seek_target(made, SearchKey.SEQ_NO, 9)) == 1
    assert seek_target(made, SearchKey.SEQ_NO, 10) == TargetPosition(Position(3, 0, 0))
    assert number(seek_target(made, SearchKey.SEQ_NO, 14)) == 3
    assert seek_target(made, SearchKey.SEQ_NO, 15) == TargetPosition(Position(4, 0, 0))
    assert number(seek_target(made, SearchKey.SEQ_NO, 16)) == 4


def test_a_time_before_a_segment_is_its_beginning() -> None:
    made = chain((10, 100, 200), (10, 300, 400))
    assert seek_target(made, SearchKey.APPEND_TIME, 50) == TargetPosition(Position(1, 0, 0))
    assert number(seek_target(made, SearchKey.APPEND_TIME, 150)) == 1
    assert seek_target(made, SearchKey.APPEND_TIME, 250) == TargetPosition(Position(2, 0, 0))
    assert seek_target(made, SearchKey.APPEND_TIME, 401) == TargetEnd()


def test_an_event_time_may_be_in_any_segment_that_reaches_it() -> None:
    made = chain((10, 0, 0), (10, 0, 0))
    events = [(5, 900), (100, 200)]
    segments = tuple(
        replace(s, contents=replace(s.contents, min_event_ms=a, max_event_ms=b))
        for s, (a, b) in zip(made.segments, events, strict=True)
    )
    made = replace(made, recent=segments)
    assert number(seek_target(made, SearchKey.EVENT_TIME, 150)) == 1
    assert number(seek_target(made, SearchKey.EVENT_TIME, 150, behind=1)) == 2
    assert seek_target(made, SearchKey.EVENT_TIME, 901) == TargetEnd()


def test_truncated_segments_are_not_seen() -> None:
    """SEG-71, SEG-80: wholly truncated ones are passed; what is placed is never before the beginning."""
    made = chain((10, 1, 5), (10, 6, 9)).truncate(Position(1, 4, 0), 4)
    assert [each.number for each in visible_segments(made)] == [1, 2]
    assert seek_target(made, SearchKey.SEQ_NO, 2) == TargetPosition(Position(1, 4, 0))
    assert seek_target(made, SearchKey.APPEND_TIME, 0) == TargetPosition(Position(1, 4, 0))
    made = made.truncate(Position(2, 0, 0), 10)
    assert [each.number for each in visible_segments(made)] == [2]
    assert number(seek_target(made, SearchKey.TXID, 1)) == 2
    assert seek_target(made, SearchKey.SEQ_NO, 3) == TargetPosition(Position(2, 0, 0))


@pytest.mark.parametrize("key", list(SearchKey))
def test_pages_change_no_placement_and_those_that_end_before_are_not_looked_at(key: SearchKey) -> None:
    plain = long_chain(9).truncate(Position(2, 2, 0)).start_segment(50, 1)
    paged = folded(plain, 2, 3)
    for target in range(60):
        for behind in (0, 3, 6):
            assert seek_target(paged, key, target, behind=behind) == seek_target(plain, key, target, behind=behind)
    assert visible_segments(paged) == visible_segments(plain)
    late = replace(paged, pages=(*(replace(page, value=None) for page in paged.pages[:2]), *paged.pages[2:]))
    if key is not SearchKey.EVENT_TIME:
        assert seek_target(late, key, 16 if key is SearchKey.SEQ_NO else 13 if key is SearchKey.TXID else 7) is not None
