"""Batches of records: columns without records, and records when someone looks."""

from __future__ import annotations

import pytest

from segments.entries import RecordColumns, decode_entry, encode_entry
from segments.position import Position
from segments.read.batches.record_batch import EntrySlice, RecordBatch
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
