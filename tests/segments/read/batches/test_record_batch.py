"""Batches of records: columns without records, and records when someone looks."""

from __future__ import annotations

import pytest

from segments.entries.columns import RecordColumns
from segments.entries.entry import encode_entry
from segments.entries.lone_entries import LoneEntries
from segments.entries.stored_entry import decode_entry
from segments.position import Position
from segments.read.batches.record_batch import EntrySlice, RecordBatch, sliced
from segments.record import Gap, GapKind, Record


def batch() -> RecordBatch:
    records = [Record(b"v%d" % n, txid=n, key=b"k" if n % 2 else None) for n in range(6)]
    entries = [
        decode_entry(encode_entry(RecordColumns.of_records(part), first_seq_no=at, append_ms=5), 3, at)
        for at, part in ((0, records[:4]), (4, records[4:]))
    ]
    return RecordBatch([EntrySlice(entries[0], 1, 4), EntrySlice(entries[1], 0, 1)])


def test_columns_and_records_agree() -> None:
    found = batch()
    assert len(found) == 4
    assert found.values() == [record.value for record in found] == [b"v1", b"v2", b"v3", b"v4"]
    assert found.txids() == [record.txid for record in found] == [1, 2, 3, 4]
    assert found.keys() == [record.key for record in found] == [b"k", None, b"k", None]
    assert found.headers() == [{}] * 4
    assert found[0].position == found.first == Position(3, 0, 1)
    assert found[-1].position == found.last == Position(3, 4, 0)
    assert [record.seq_no for record in found[1:]] == [2, 3, 4]
    assert (found.first_seq_no, found.end_seq_no) == (1, 5)
    assert 0 < found.size < 600


def test_arrow_has_the_same_values() -> None:
    pytest.importorskip("pyarrow")
    found = batch()
    assert [value for part in found.arrow() for value in part.column("value").to_pylist()] == found.values()
    assert [n for part in found.arrow() for n in part.column("seq_no").to_pylist()] == [1, 2, 3, 4]


def test_arrow_of_several_entries_is_joined() -> None:
    pytest.importorskip("pyarrow")
    joined = batch().joined_arrow(("seq_no", "key"))
    assert joined.to_pydict() == {"seq_no": [1, 2, 3, 4], "key": [b"k", None, b"k", None]}


def test_parts_have_whole_slices_of_about_so_many_bytes() -> None:
    columns = [RecordColumns.of_values([b"x" * n]) for n in (100, 100, 1000, 100)]
    entries = [decode_entry(encode_entry(each, first_seq_no=at, append_ms=5)) for at, each in enumerate(columns)]
    slices = [EntrySlice(entry, 0, 1) for entry in entries]
    size = slices[0].entry.unpacked_size
    found = RecordBatch(slices)
    assert [part.slices for part in found.in_parts(2 * size)] == [tuple(slices[:2]), (slices[2],), (slices[3],)]
    assert [part.slices for part in found.in_parts(0)] == [(each,) for each in slices]
    assert [part.slices for part in found.in_parts(1 << 20)] == [tuple(slices)]
    assert list(RecordBatch().in_parts(100)) == []


def test_an_empty_batch_is_false_unless_it_tells_a_gap() -> None:
    nothing = RecordBatch()
    assert not nothing and list(nothing) == []
    gap = Gap(Position(1, 0, 0), Position(1, 1, -1), GapKind.LOST)
    assert RecordBatch(gap=gap)
    with pytest.raises(IndexError):
        _ = nothing.first
    assert repr(batch()) == "<4 records from 3:0:1 to 3:4:0>"


def lone_batches() -> tuple[RecordBatch, RecordBatch]:
    """Two records of a whole entry and five of a run of lone ones behind it; and the same entry by entry."""
    first = decode_entry(encode_entry(RecordColumns.of_values([b"a", b"b"]), first_seq_no=0, append_ms=1), 3, 0)
    payloads = [
        encode_entry(RecordColumns.of_values([b"%d" % n * n]), first_seq_no=n, append_ms=n) for n in range(2, 8)
    ]
    run = LoneEntries.found(payloads, 0, 3, 1, 2, 0)
    assert run is not None
    alone = [EntrySlice(entry, 0, 1) for entry in run.entries(0, 5)]
    return RecordBatch([EntrySlice(first, 0, 2), sliced(run, 0, 5)]), RecordBatch([EntrySlice(first, 0, 2), *alone])


def test_a_run_of_lone_entries_is_its_entries() -> None:
    whole, single = lone_batches()
    assert whole.records() == single.records() and len(whole) == 7
    for column in (RecordBatch.values, RecordBatch.keys, RecordBatch.txids, RecordBatch.headers):
        assert column(whole) == column(single)
    assert (whole.first, whole.last, whole.first_seq_no, whole.end_seq_no) == (
        single.first,
        single.last,
        single.first_seq_no,
        single.end_seq_no,
    )
    assert [(s.entry.encoded(), s.entry.position(0), s.a, s.b) for s in whole.slices] == [
        (s.entry.encoded(), s.entry.position(0), s.a, s.b) for s in single.slices
    ]
    assert whole.slices is whole.slices
    cut = [part.records() for part in whole.in_parts(220)]
    assert len(cut) > 2 and [record for part in cut for record in part] == single.records()


def test_arrow_of_a_run_of_lone_entries_is_that_of_its_entries() -> None:
    pa = pytest.importorskip("pyarrow")
    whole, single = lone_batches()
    assert len(whole.arrow()) == 2 and len(single.arrow()) == 6
    assert pa.Table.from_batches(whole.arrow()) == pa.Table.from_batches(single.arrow()).combine_chunks()
    assert whole.joined_arrow() == single.joined_arrow()
    assert whole.joined_arrow(("seq_no", "entry")) == single.joined_arrow(("seq_no", "entry"))
