from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segments.entries.columns import RecordColumns
from segments.entries.compression import Compression
from segments.entries.entry import encode_entry, encode_pieces
from segments.entries.sections import EntryBatch
from segments.entries.stored_entry import StoredEntry, decode_entry
from segments.errors import EntryCorruptError
from segments.protocol.entry_messages import get_entries, get_records, put_entries
from segments.protocol.messages import put_batch
from segments.read import RecordBatch
from segments.read.batches.record_batch import EntrySlice
from segments.record import Record
from tests.segments.entries.records import RECORDS


def entry_of(
    records: Sequence[Record], *, producers: bool = True, compression: Compression = Compression.NONE
) -> StoredEntry:
    half = len(records) // 2
    batches = [EntryBatch(half, "p" if producers else None, 1, 10), EntryBatch(len(records) - half, "q", 2, 0)]
    columns = RecordColumns.of_records(records)
    raw = encode_entry(columns, first_seq_no=40, append_ms=7, batches=batches, compression=compression)
    return decode_entry(raw, 2, 3)


@given(st.lists(RECORDS, min_size=1, max_size=12), st.booleans(), st.sampled_from(Compression), st.data())
def test_records_come_back_either_way(
    records: list[Record], producers: bool, compression: Compression, data: st.DataObject
) -> None:
    entry = entry_of(records, producers=producers, compression=compression)
    kept = sorted(data.draw(st.sets(st.sampled_from(range(len(records))), min_size=1)))
    batch = RecordBatch([EntrySlice(entry, slot, slot + 1) for slot in kept])
    message = put_entries(batch)
    assert [bool(each.stored) for each in message.slices] == [True] + [False] * (len(kept) - 1)
    assert RecordBatch(get_entries(message)).records() == batch.records()
    older = RecordBatch(get_records(put_batch(batch.records())))
    assert older.records() == batch.records() and older.first == batch.first and older.last == batch.last


def test_entries_and_large_records_of_an_older_gateway_stay_apart() -> None:
    large = decode_entry(encode_entry(RecordColumns.of_values([b"small"]), first_seq_no=42, append_ms=8), 2, 4)
    columns = RecordColumns.of_values([bytes(3_000_000)])
    pieces = [
        decode_entry(raw, 2, 5 + at) for at, raw in enumerate(encode_pieces(columns, first_seq_no=43, append_ms=9))
    ]
    first = entry_of([Record(b"a"), Record(b"b")])
    batch = RecordBatch(
        [EntrySlice(first, 0, 2), EntrySlice(large, 0, 1), EntrySlice(pieces[-1].assembled(pieces), 0, 1)]
    )
    for found in (get_records(put_batch(batch.records())), get_entries(put_entries(batch))):
        assert [each.entry.entry for each in found] == [3, 4, 5 + len(pieces) - 1]
        assert RecordBatch(found).records() == batch.records()


def test_what_is_not_as_it_was_stored_is_refused() -> None:
    entry = entry_of([Record(b"a"), Record(b"b")])
    good = put_entries(RecordBatch([EntrySlice(entry, 0, 1), EntrySlice(entry, 1, 2)]))
    damaged, lost, other, beyond = (type(good).FromString(good.SerializeToString()) for _ in range(4))
    damaged.slices[0].stored = bytes([*good.slices[0].stored[:-1], good.slices[0].stored[-1] ^ 1])
    del lost.slices[0]
    other.slices[1].entry += 1
    beyond.slices[1].end = 3
    for wrong in (damaged, lost, other, beyond):
        with pytest.raises(EntryCorruptError):
            get_entries(wrong)
    assert len(get_entries(good)) == 2
