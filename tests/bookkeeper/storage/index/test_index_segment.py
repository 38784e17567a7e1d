from __future__ import annotations

from array import array

import pytest

from bookkeeper.errors import CorruptionError
from bookkeeper.ids import LedgerId
from bookkeeper.storage.index.entry_index import IndexTail
from bookkeeper.storage.index.index_segment import (
    IndexSegmentWriter,
    decode_page,
    merge_segments,
    plan_merge,
    read_segment,
    segment_name,
)
from bookkeeper.storage.ledger_descriptor import LedgerDescriptor, decode_rows, dropped_row
from tests.bookkeeper.storage.recording_disk import RecordingDisk


def tail_of(first: int, *places: int) -> IndexTail:
    tail = IndexTail()
    tail.extend(first, array("q", places))
    return tail


def write_segment(disk: RecordingDisk, segment_id: int, tails: dict[int, IndexTail], *states: LedgerDescriptor) -> None:
    writer = IndexSegmentWriter(segment_id, 0)
    for ledger_id, tail in tails.items():
        writer.add_tail(ledger_id, tail)
    for state in states:
        writer.set_state(state.ledger_id, state.encode())
    writer.write(disk, "/d")


def test_a_segment_round_trips() -> None:
    disk = RecordingDisk()
    state = LedgerDescriptor(LedgerId(7), b"key", fenced=True, lac=4, first_entry=1, last_entry=9, size=1000)
    state.raise_explicit_lac(5, b"blob")
    write_segment(disk, 3, {7: tail_of(1, *range(100, 700))}, state)
    file = disk.open("/d/0000000000000003.index")
    segment = read_segment(file, 3)
    assert segment.states == [state]
    assert [(extent.first, extent.count) for extent in segment.extents] == [(1, 511), (512, 89)]
    places = array("q")
    for extent in segment.extents:
        places += decode_page(file.pread(8 * extent.count, extent.offset), extent, file.path)
    assert list(places) == list(range(100, 700))
    with pytest.raises(CorruptionError, match="another segment"):
        read_segment(file, 4)


def test_merging_keeps_the_newest_place_of_each_entry() -> None:
    disk = RecordingDisk()
    write_segment(disk, 1, {7: tail_of(500, *range(1, 41)), 8: tail_of(0, 99)}, LedgerDescriptor(LedgerId(7), lac=1))
    write_segment(disk, 2, {7: tail_of(510, 1000, 0, 1002)}, LedgerDescriptor(LedgerId(7), lac=2))
    files = [(key, disk.open(f"/d/{key:016x}.index")) for key in (1, 2)]
    writer = IndexSegmentWriter(3, 0)
    merge_segments(writer, files, {7: tail_of(538, 2000, 2001, 2002)}, {7})
    writer.write(disk, "/d")
    file = disk.open("/d/0000000000000003.index")
    segment = read_segment(file, 3)
    found: dict[int, int] = {}
    for extent in segment.extents:
        assert extent.ledger_id == 7, "ledger 8 is not alive"
        page = decode_page(file.pread(8 * extent.count, extent.offset), extent, file.path)
        found.update(zip(range(extent.first, extent.end), page, strict=True))
    wanted = dict(zip(range(500, 540), range(1, 41), strict=True))
    wanted |= {510: 1000, 512: 1002, 538: 2000, 539: 2001, 540: 2002}
    assert found == wanted
    assert [state.lac for state in segment.states if isinstance(state, LedgerDescriptor)] == [2]


@pytest.mark.parametrize("count", [510, 511, 512, 513])
@pytest.mark.parametrize("settled", [False, True])
def test_places_that_end_near_the_end_of_a_page_are_merged_whole(count: int, settled: bool) -> None:
    disk, tail, writer = RecordingDisk(), tail_of(0, *range(1, count + 1)), IndexSegmentWriter(2, 0)
    write_segment(disk, 1, {7: tail} if settled else {})
    files = [(1, disk.open(f"/d/{segment_name(1)}"))]
    merge_segments(writer, files, {} if settled else {7: tail}, {7})
    writer.write(disk, "/d")
    file = disk.open(f"/d/{segment_name(2)}")
    places = array("q")
    for extent in read_segment(file, 2).extents:
        assert extent.first == len(places)
        places += decode_page(file.pread(8 * extent.count, extent.offset), extent, file.path)
    assert list(places) == list(range(1, count + 1))


def test_dropped_ledgers_outlive_a_merge() -> None:
    disk = RecordingDisk()
    writer = IndexSegmentWriter(1, 0)
    writer.dropped.add(5)
    writer.write(disk, "/d")
    merged = IndexSegmentWriter(2, 0)
    merge_segments(merged, [(1, disk.open("/d/0000000000000001.index"))], {}, set())
    merged.write(disk, "/d")
    assert read_segment(disk.open("/d/0000000000000002.index"), 2).states == [(5, 5)]


@pytest.mark.rule("M6")
def test_dropped_ledgers_are_kept_as_ranges_and_segments_without_them_stay_as_they_were() -> None:
    """There was a row for each of them, copied by every merge, for ever."""
    disk = RecordingDisk()
    for segment_id in (1, 2):
        writer = IndexSegmentWriter(segment_id, 0)
        for ledger_id in range(segment_id, 2000, 2):
            writer.dropped.add(ledger_id)
        writer.write(disk, "/d")
    files = [(n, disk.open(f"/d/{segment_name(n)}")) for n in (1, 2)]
    assert [b"BKIS\x00\x01" in file.pread(file.size(), 0) for _, file in files] == [True, True]
    merged = IndexSegmentWriter(3, 0)
    merge_segments(merged, files, {}, set())
    merged.dropped.add(9999)
    merged.write(disk, "/d")
    file = disk.open(f"/d/{segment_name(3)}")
    assert read_segment(file, 3).states == [(1, 1999), (9999, 9999)]
    assert b"BKIS\x00\x02" in file.pread(file.size(), 0), "who knows no ranges refuses it"


@pytest.mark.parametrize(
    ("sizes", "begin"),
    [([], 0), ([9], 1), ([9, 9], 2), ([9, 9, 9], 0), ([100, 9, 9], 1), ([200, 50, 1], 1), ([1, 1, 1, 1], 0)],
)
def test_small_new_segments_are_merged(sizes: list[int], begin: int) -> None:
    assert plan_merge(sizes, 3) == begin


def test_rows_cut_short_are_damage() -> None:
    row = LedgerDescriptor(LedgerId(7), b"key").encode()
    assert decode_rows(row + dropped_row(3)) == [LedgerDescriptor(LedgerId(7), b"key"), (3, 3)]
    for size in range(1, len(row)):
        with pytest.raises(CorruptionError):
            decode_rows(row[:size])


def test_a_tail_takes_holes_and_strays() -> None:
    tail = IndexTail()
    tail.scatter(array("q", [10, 12, 15]), 0, 3, array("q", [1, 2, 3]))
    tail.put(5, 4)
    tail.put(10**12, 5)
    tail.extend(16, array("q", [6, 7]))
    tail.put(12, 8)
    tail.put(18, 9)
    assert [tail.get(at) for at in (5, 10, 11, 12, 15, 16, 17, 18, 19, 10**12)] == [4, 1, 0, 8, 3, 6, 7, 9, 0, 5]
    assert len(tail.places) == 9 and set(tail.strays) == {5, 10**12}
