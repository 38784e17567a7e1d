from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segments.entries import arrow as arrow_module
from segments.entries.arrow import joined_batch, record_batch, schema
from segments.entries.columns import BytesColumn, RecordColumns
from segments.entries.compression import Compression
from segments.entries.entry import encode_entry
from segments.entries.sections import EntryBatch
from segments.entries.stored_entry import decode_entry
from segments.errors import EntryCorruptError, MissingLibraryError
from segments.record import Record
from tests.segments.entries.records import RECORDS


@given(st.lists(RECORDS, max_size=12), st.booleans(), st.sampled_from(Compression))
def test_arrow_has_the_same_records(records: list[Record], named: bool, compression: Compression) -> None:
    half = len(records) // 2
    batches = [EntryBatch(half, "p" if named else None, 1, 10), EntryBatch(len(records) - half)]
    columns = RecordColumns.of_records(records)
    data = encode_entry(columns, first_seq_no=4, append_ms=7, batches=batches, compression=compression)
    entry = decode_entry(data, 2, 3)
    batch = record_batch(entry)
    batch.validate(full=True)
    assert batch.schema == schema()
    for row, record in zip(batch.to_pylist(), entry.records(), strict=True):
        assert (row["segment"], row["entry"], row["slot"]) == record.position
        assert (row["seq_no"], row["value"], row["txid"], row["key"]) == record[1:5]
        assert row["headers"] == (list(record.headers.items()) or None)
        assert row["event_time"] == record.event_time and row["append_time"] == record.append_time
        assert (row["producer"], row["sequence"]) == (
            (None, None) if record.producer is None else (record.producer.name, record.producer.sequence)
        )


@pytest.mark.parametrize(
    "raw", [b"\x01\x00\x01\x00\x00\x00\x00\x00\xff", b"\x02\x00\x01\x00\x00\x00\x00\x00a", b"\x01\x00a"]
)
def test_damaged_headers_are_no_columns(raw: bytes) -> None:
    plain = RecordColumns.of_values([b"v", b"w"])
    columns = replace(plain, headers=BytesColumn.of([b"", raw]))
    entry = decode_entry(encode_entry(columns, first_seq_no=0, append_ms=0))
    with pytest.raises(EntryCorruptError, match="a record's headers are"):
        record_batch(entry)


def test_a_part_of_an_entry_is_a_part_of_the_batch() -> None:
    entry = decode_entry(encode_entry(RecordColumns.of_values([b"a", b"b", b"c"]), first_seq_no=0, append_ms=0))
    assert record_batch(entry, 1, 3).column("value").to_pylist() == [b"b", b"c"]
    assert record_batch(entry, 3).num_rows == 0


@given(st.lists(st.lists(RECORDS, min_size=1, max_size=5), min_size=1, max_size=4), st.integers(0, 3), st.data())
def test_joined_entries_are_their_batches_one_after_the_other(
    entries: list[list[Record]], hole: int, data: st.DataObject
) -> None:
    import pyarrow as pa

    parts, number = [], 10
    for at, records in enumerate(entries):
        number += hole if at == 1 else 0
        columns = RecordColumns.of_records(records)
        entry = decode_entry(encode_entry(columns, first_seq_no=number, append_ms=7 + at), 2, at)
        a = data.draw(st.integers(0, len(records) - 1))
        parts.append((entry, a, data.draw(st.integers(a + 1, len(records)))))
        number += len(records)
    joined = joined_batch([entry.part(a, b) for entry, a, b in parts])
    joined.validate(full=True)
    assert joined.schema == schema()
    assert joined.to_pylist() == pa.Table.from_batches([record_batch(entry, a, b) for entry, a, b in parts]).to_pylist()


def test_one_entry_that_is_joined_with_none_is_not_copied() -> None:
    data = encode_entry(RecordColumns.of_values([b"x" * 1000] * 100), first_seq_no=0, append_ms=0)
    entry = decode_entry(data)
    shared = record_batch(entry).column("value").buffers()[2].address
    assert joined_batch([entry.part(0, 100)], ("value",)).column("value").buffers()[2].address == shared


def test_values_share_the_memory_of_the_entry() -> None:
    data = encode_entry(RecordColumns.of_values([b"x" * 1000] * 100), first_seq_no=0, append_ms=0)
    batch = record_batch(decode_entry(data))
    import pyarrow

    begin = pyarrow.py_buffer(data).address
    assert begin <= batch.column("value").buffers()[2].address < begin + len(data)


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    no_library: Any = None
    monkeypatch.setitem(sys.modules, "pyarrow", no_library)
    arrow_module._arrow.cache_clear()
    try:
        with pytest.raises(MissingLibraryError, match="pip install"):
            record_batch(decode_entry(encode_entry(RecordColumns.of_values([b""]), first_seq_no=0, append_ms=0)))
    finally:
        arrow_module._arrow.cache_clear()
