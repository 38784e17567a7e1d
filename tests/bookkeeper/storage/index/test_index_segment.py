from __future__ import annotations

from array import array

import pytest

from bookkeeper.errors import CorruptionError
from bookkeeper.ids import LedgerId
from bookkeeper.storage.index import index_segment
from bookkeeper.storage.index.entry_index import IndexTail
from bookkeeper.storage.index.index_segment import (
    IndexSegmentWriter,
    UnreadableSegmentError,
    decode_page,
    merge_segments,
    plan_merge,
    read_segment,
    segment_name,
)
from bookkeeper.storage.index.ledger_descriptor import LedgerDescriptor
from tests.bookkeeper.storage.recording_disk import RecordingDisk


@pytest.fixture(autouse=True, params=[index_segment.PIECE, 64])
def _pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are written in the end, or while the segment is made."""
    monkeypatch.setattr(index_segment, "PIECE", request.param)


def tail_of(first: int, *places: int) -> IndexTail:
    tail = IndexTail()
    tail.extend(first, array("q", places))
    return tail


def write_segment(disk: RecordingDisk, segment_id: int, tails: dict[int, IndexTail], *states: LedgerDescriptor) -> None:
    writer = IndexSegmentWriter(disk, "/d", segment_id, 0)
    for ledger_id, tail in tails.items():
        writer.add_tail(ledger_id, tail)
    for state in states:
        writer.add_state(state.encode())
    writer.write()


def test_a_segment_round_trips() -> None:
    disk = RecordingDisk()
    state = LedgerDescriptor(LedgerId(7), b"k" * 20, fenced=True, lac=4, first_entry=1, last_entry=9, size=1000)
    state.raise_explicit_lac(5, b"blob")
    write_segment(disk, 3, {7: tail_of(1, *range(100, 700))}, state)
    file = disk.open("/d/0000000000000003.index")
    segment = read_segment(file, 3)
    assert list(segment.all_states()) == [state]
    assert [(extent.first, extent.count) for extent in segment.all_extents()] == [(1, 511), (512, 89)]
    places = array("q")
    for extent in segment.all_extents():
        places += decode_page(file.pread(8 * extent.count, extent.offset), extent, file.path)
    assert list(places) == list(range(100, 700))
    with pytest.raises(CorruptionError, match="another segment"):
        read_segment(file, 4)


def test_merging_keeps_the_newest_place_of_each_entry() -> None:
    disk = RecordingDisk()
    write_segment(disk, 1, {7: tail_of(500, *range(1, 41)), 8: tail_of(0, 99)}, LedgerDescriptor(LedgerId(7), lac=1))
    write_segment(disk, 2, {7: tail_of(510, 1000, 0, 1002)}, LedgerDescriptor(LedgerId(7), lac=2))
    files = [(key, disk.open(f"/d/{key:016x}.index")) for key in (1, 2)]
    writer = IndexSegmentWriter(disk, "/d", 3, 0)
    merge_segments(writer, files, {7: tail_of(538, 2000, 2001, 2002)}, {}, {8})
    writer.write()
    file = disk.open("/d/0000000000000003.index")
    segment = read_segment(file, 3)
    found: dict[int, int] = {}
    for extent in segment.all_extents():
        assert extent.ledger_id == 7, "ledger 8 is deleted"
        page = decode_page(file.pread(8 * extent.count, extent.offset), extent, file.path)
        found.update(zip(range(extent.first, extent.end), page, strict=True))
    wanted = dict(zip(range(500, 540), range(1, 41), strict=True))
    wanted |= {510: 1000, 512: 1002, 538: 2000, 539: 2001, 540: 2002}
    assert found == wanted
    assert [state.lac for state in segment.all_states()] == [2]


@pytest.mark.parametrize("count", [510, 511, 512, 513])
@pytest.mark.parametrize("settled", [False, True])
def test_places_that_end_near_the_end_of_a_page_are_merged_whole(count: int, settled: bool) -> None:
    disk, tail = RecordingDisk(), tail_of(0, *range(1, count + 1))
    writer = IndexSegmentWriter(disk, "/d", 2, 0)
    write_segment(disk, 1, {7: tail} if settled else {})
    files = [(1, disk.open(f"/d/{segment_name(1)}"))]
    merge_segments(writer, files, {} if settled else {7: tail}, {}, ())
    writer.write()
    file = disk.open(f"/d/{segment_name(2)}")
    places = array("q")
    for extent in read_segment(file, 2).all_extents():
        assert extent.first == len(places)
        places += decode_page(file.pread(8 * extent.count, extent.offset), extent, file.path)
    assert list(places) == list(range(1, count + 1))


def test_a_merge_makes_one_extent_of_each_page_and_copies_what_nothing_is_added_to() -> None:
    disk = RecordingDisk()
    write_segment(disk, 1, {5: tail_of(0, *range(1, 1001)), 7: tail_of(0, 1, 2), 8: tail_of(0, 3)})
    write_segment(disk, 2, {7: tail_of(2, 3, 4), 8: tail_of(600, 9), 9: tail_of(0, 5)})
    files = [(key, disk.open(f"/d/{segment_name(key)}")) for key in (1, 2)]
    writer = IndexSegmentWriter(disk, "/d", 3, 0)
    merge_segments(writer, files, {8: tail_of(601, 10)}, {}, ())
    merged = writer.write()
    file = disk.open(f"/d/{segment_name(3)}")
    assert list(merged.all_extents()) == list(read_segment(file, 3).all_extents())
    found = {
        (extent.ledger_id, extent.first): list(decode_page(file.pread(8 * extent.count, extent.offset), extent, ""))
        for extent in merged.all_extents()
    }
    assert found == {
        (5, 0): list(range(1, 513)),
        (5, 512): list(range(513, 1001)),
        (7, 0): [1, 2, 3, 4],
        (8, 0): [3],
        (8, 600): [9, 10],
        (9, 0): [5],
    }


def test_a_merge_cuts_extents_that_reach_over_a_page_and_leaves_out_those_without_places() -> None:
    disk = RecordingDisk()
    writer = IndexSegmentWriter(disk, "/d", 1, 0)
    writer.add(7, 500, array("q", range(1, 41)))
    writer.add(8, 0, array("q", [0, 0]))
    writer.write()
    merged = IndexSegmentWriter(disk, "/d", 2, 0)
    merge_segments(merged, [(1, disk.open(f"/d/{segment_name(1)}"))], {}, {}, ())
    found = [(extent.ledger_id, extent.first, extent.count) for extent in merged.write().all_extents()]
    assert found == [(7, 500, 12), (7, 512, 28)]


@pytest.mark.rule("K19")
@pytest.mark.parametrize("ledger_id", [5, 7])
def test_a_damaged_page_ends_a_merge(ledger_id: int) -> None:
    """One that is copied as it is, and one that more is laid over."""
    disk = RecordingDisk()
    write_segment(disk, 1, {3: tail_of(0, *range(1, 51)), ledger_id: tail_of(0, *range(1, 101))})
    write_segment(disk, 2, {7: tail_of(50, 3)})
    disk.open(f"/d/{segment_name(1)}").pwrite(b"x", 4096 + 400 + 80)
    files = [(key, disk.open(f"/d/{segment_name(key)}")) for key in (1, 2)]
    writer = IndexSegmentWriter(disk, "/d", 3, 0)
    with pytest.raises(UnreadableSegmentError, match=r"0001\.index is damaged at byte 4496") as raised:
        merge_segments(writer, files, {}, {}, ())
    assert raised.value.segment_id == 1
    writer.discard()
    assert not disk.exists(f"/d/{segment_name(3)}") and writer.empty and writer.size == 0
    writer.add_tail(9, tail_of(0, 5))
    written = writer.write()
    assert [extent.ledger_id for extent in written.all_extents()] == [9]
    (extent,) = read_segment(file := disk.open(f"/d/{segment_name(3)}"), 3).all_extents()
    assert list(decode_page(file.pread(8, extent.offset), extent, file.path)) == [5]


def test_pages_do_not_wait_in_memory_for_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = RecordingDisk()
    monkeypatch.setattr(index_segment, "PIECE", 4096)
    writer, size = IndexSegmentWriter(disk, "/d", 1, 0), 0
    for ledger_id in range(100):
        writer.add_tail(ledger_id, tail_of(0, *range(1, 301)))
        size += 2400 + 36
        assert writer.size == size
    written = len(disk.read_file(f"/d/{segment_name(1)}"))
    assert 4096 + 240_000 - 4096 <= written <= 4096 + 240_000
    writer.write()
    assert not disk.left_open


def test_dropped_ledgers_outlive_a_merge() -> None:
    disk = RecordingDisk()
    writer = IndexSegmentWriter(disk, "/d", 1, 0)
    writer.dropped.add(5)
    writer.write()
    merged = IndexSegmentWriter(disk, "/d", 2, 0)
    merge_segments(merged, [(1, disk.open("/d/0000000000000001.index"))], {}, {}, ())
    merged.write()
    assert read_segment(disk.open("/d/0000000000000002.index"), 2).dropped == ((5, 5),)


@pytest.mark.rule("M6")
def test_dropped_ledgers_are_kept_as_ranges_and_segments_without_them_stay_as_they_were() -> None:
    """There was a row for each of them, copied by every merge, for ever."""
    disk = RecordingDisk()
    for segment_id in (1, 2):
        writer = IndexSegmentWriter(disk, "/d", segment_id, 0)
        for ledger_id in range(segment_id, 2000, 2):
            writer.dropped.add(ledger_id)
        writer.write()
    files = [(n, disk.open(f"/d/{segment_name(n)}")) for n in (1, 2)]
    assert [b"BKIS\x00\x01" in file.pread(file.size(), 0) for _, file in files] == [True, True]
    merged = IndexSegmentWriter(disk, "/d", 3, 0)
    merge_segments(merged, files, {}, {}, ())
    merged.dropped.add(9999)
    merged.write()
    file = disk.open(f"/d/{segment_name(3)}")
    assert read_segment(file, 3).dropped == ((1, 1999), (9999, 9999))
    assert b"BKIS\x00\x02" in file.pread(file.size(), 0), "who knows no ranges refuses it"


@pytest.mark.parametrize(
    ("sizes", "begin"),
    [([], 0), ([9], 1), ([9, 9], 2), ([9, 9, 9], 0), ([100, 9, 9], 1), ([200, 50, 1], 1), ([1, 1, 1, 1], 0)],
)
def test_small_new_segments_are_merged(sizes: list[int], begin: int) -> None:
    assert plan_merge(sizes, 3) == begin


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
