from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segments.entries.columns import (
    RecordColumns,
    bits_of,
    decode_headers,
    encode_headers,
    flags_of,
    joined,
)
from segments.errors import EntryCorruptError
from segments.record import Record
from tests.segments.entries.records import RECORDS


@given(st.lists(st.lists(RECORDS, max_size=6), min_size=1, max_size=4))
def test_joined_columns_are_the_columns_of_all_records(parts: list[list[Record]]) -> None:
    whole = RecordColumns.of_records([record for part in parts for record in part])
    assert joined([RecordColumns.of_records(part) for part in parts]) == whole


@given(st.lists(st.binary(max_size=9)))
def test_values_alone_are_the_columns_of_plain_records(values: list[bytes]) -> None:
    assert RecordColumns.of_values(values) == RecordColumns.of_records([Record(value) for value in values])


@given(st.lists(st.tuples(st.binary(max_size=9), st.integers(min_value=0, max_value=99)), min_size=1))
def test_values_with_transaction_ids(pairs: list[tuple[bytes, int]]) -> None:
    values, txids = [value for value, _ in pairs], [txid for _, txid in pairs]
    records = [Record(value, txid) for value, txid in pairs]
    assert RecordColumns.of_values(values, txids=txids) == RecordColumns.of_records(records)


def test_no_records_are_columns_too() -> None:
    assert RecordColumns.of_records([]) == RecordColumns.of_values([]) and RecordColumns.of_values([]).count == 0


def test_a_column_that_nobody_uses_is_absent() -> None:
    columns = RecordColumns.of_values([b"a", b"bc"])
    assert (columns.keys, columns.txids, columns.events, columns.headers) == (None, None, None, None)
    assert columns.size == 3 * 4 + 3


def test_what_is_no_bytes_is_refused() -> None:
    with pytest.raises(TypeError):
        RecordColumns.of_values(["text"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="time zone"):
        RecordColumns.of_records([Record(b"", event_time=datetime(2026, 1, 1))])
    with pytest.raises(ValueError, match="65,535"):
        RecordColumns.of_records([Record(b"", headers={"x" * 70_000: b""})])


def test_the_span_of_transaction_ids_and_event_times_is_known() -> None:
    records = [
        Record(b"", 3, event_time=datetime(2026, 1, 2, tzinfo=UTC)),
        Record(b"", 8, event_time=datetime(2026, 1, 1, tzinfo=UTC)),
        Record(b""),
    ]
    columns = RecordColumns.of_records(records)
    assert (columns.first_txid, columns.last_txid) == (3, 8)
    assert columns.min_event_ms is not None and columns.max_event_ms == columns.min_event_ms + 86_400_000


@given(st.lists(st.booleans(), max_size=40))
def test_a_bitmap_has_the_lowest_bit_first(flags: list[bool]) -> None:
    raw = bytes(flags)
    bits = bits_of(raw)
    assert len(bits) == (len(flags) + 7) // 8
    assert [bool(bits[i >> 3] >> (i & 7) & 1) for i in range(len(flags))] == flags
    assert flags_of(bits, len(flags)) == raw


@pytest.mark.parametrize("damage", [lambda raw: raw[:-1], lambda raw: raw[:1], lambda raw: b"\xff\xff" + raw[2:]])
def test_damaged_headers_are_noticed(damage: object) -> None:
    raw = encode_headers({"one": b"1", "two": b""})
    assert decode_headers(raw) == {"one": b"1", "two": b""}
    with pytest.raises(EntryCorruptError):
        decode_headers(damage(raw))  # type: ignore[operator]
