"""Partitions are disjoint and cover the batch, whatever its size."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segments.chain import SegmentContents, StreamChain
from segments.position import Position
from segments.read.positions.splits import split
from spark_wal.data_source.stream_plan import end_by_rows, ranges, wanted_partitions

sizes = st.one_of(st.sampled_from([1, 7, 10**9 + 1]), st.integers(1, 2**60))


def _number(entries: list[int], place: Position) -> int:
    """Of the record at a place, in segments of entries with one record each."""
    return sum(entries[: place.segment - 1]) + place.entry


@given(st.lists(sizes, min_size=1, max_size=5), st.sampled_from([1, 2, 3, 7, 1000]), st.data())
def test_partitions_are_disjoint_and_cover_the_batch(entries: list[int], least: int, data: st.DataObject) -> None:
    """SPARK-28489: a range that was split by floating point lost records."""
    chain = StreamChain(stream_id="s").claim("me", "n")
    for at, size in enumerate(entries, 1):
        chain = chain.start_segment(at, 0).complete(at, SegmentContents(size, size * 9, size - 1, (size - 1, 0)), 1)
    first = data.draw(st.integers(0, entries[0] - 1))
    start, stop = Position(1, first, 0), Position(len(entries), entries[-1], 0)
    cut = split(chain, start, stop, chain.records, -1, wanted_partitions(least, 1, 1))
    parts = ranges("a", "id", [(start, first), *((each.stop, _number(entries, each.stop)) for each in cut)])
    assert parts[0].start == start and parts[-1].stop == stop and len(parts) <= least
    assert all(a.stop == b.start and a.first_seq_no + a.records == b.first_seq_no for a, b in pairwise(parts))
    assert sum(part.records for part in parts) == sum(entries) - first
    assert all(part.records > 0 for part in parts)
    if least <= sum(entries) - first:
        assert len(parts) == least, "no part is lost by rounding"


def test_a_range_without_records_is_left_out_and_borders_rise() -> None:
    places = [Position(1, 0, 0), Position(1, 2, 0), Position(1, 5, 0), Position(2, 0, 0)]
    parts = ranges("a", "id", list(zip(places, [0, 4, 4, 9], strict=True)))
    assert [(part.start, part.first_seq_no, part.records) for part in parts] == [(places[0], 0, 4), (places[2], 4, 5)]
    with pytest.raises(ValueError, match="do not rise"):
        ranges("a", "id", [(places[1], 4), (places[0], 5)])


def test_a_batch_ends_by_rows_or_where_the_stream_does() -> None:
    assert (end_by_rows(5, 9, None), end_by_rows(5, 9, 3), end_by_rows(5, 9, 2**62)) == (9, 8, 9)
    assert (wanted_partitions(4, 10, 100), wanted_partitions(1, 201, 100), wanted_partitions(1, 0, 100)) == (4, 3, 1)
