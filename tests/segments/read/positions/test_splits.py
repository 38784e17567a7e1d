"""A stream cut into ranges: they join, and together they are what was asked for."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segments.chain import SegmentContents, StreamChain
from segments.position import EARLIEST, Position
from segments.read.positions.splits import split


def chain(sizes: list[int], *, open_entries: int = 0) -> StreamChain:
    made = StreamChain(stream_id="s").claim("me", "n")
    for i, entries in enumerate(sizes, 1):
        made = made.start_segment(i, 0)
        has = SegmentContents(entries * 10, entries * 1000, entries - 1, (entries - 1, 9) if entries else None)
        made = made.complete(i, has, 1)
    return made.start_segment(99, 0) if open_entries else made


@given(st.lists(st.integers(0, 50), max_size=6), st.integers(0, 30), st.integers(1, 12))
def test_ranges_join_and_count_everything(sizes: list[int], live: int, target: int) -> None:
    made = chain(sizes, open_entries=live)
    stop = Position(len(sizes) + 1, live, 0)
    end_seq_no = made.records + 10 * live
    ranges = split(made, made.first_position, stop, end_seq_no, live - 1, target)
    if made.first_position >= stop:
        assert ranges == []
        return
    assert ranges[0].start == made.first_position and ranges[-1].stop == stop
    assert all(a.stop == b.start for a, b in pairwise(ranges))
    assert all(each.start < each.stop for each in ranges) and len(ranges) <= target
    assert abs(sum(each.records for each in ranges) - end_seq_no) <= len(ranges)


def test_ranges_are_about_equal() -> None:
    ranges = split(chain([100, 20, 80]), EARLIEST, Position(3, 80, 0), 2000, -1, 4)
    assert [each.records for each in ranges] == [500, 500, 500, 500]
    assert ranges[1].start == Position(1, 50, 0) and ranges[3].start == Position(3, 30, 0)


def test_a_part_of_a_segment_is_cut_at_entries() -> None:
    ranges = split(chain([100]), Position(1, 10, 3), Position(1, 20, 5), 1000, -1, 2)
    assert [(each.start, each.stop) for each in ranges] == [
        (Position(1, 10, 3), Position(1, 15, 0)),
        (Position(1, 15, 0), Position(1, 20, 5)),
    ]
    assert len(split(chain([100]), EARLIEST, Position(1, 99, 1), 0, -1, 2**63 - 1)) == 100, "and not cut for ever"
    with pytest.raises(ValueError, match="at least one"):
        split(chain([100]), EARLIEST, Position(1, 5, 0), 0, -1, 0)
    assert split(chain([100]), Position(1, 5, 0), Position(1, 5, 0), 0, -1, 3) == []
