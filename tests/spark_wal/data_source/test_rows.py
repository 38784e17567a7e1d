"""A query's rows as records: what has a meaning, what becomes JSON, and what cannot be."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as t

from segments import RecordColumns
from segments.entries.columns import BytesPieces
from segments.entries.compression import Compression
from segments.entries.entry import encode_entry
from segments.entries.stored_entry import decode_entry
from spark_wal.data_source import rows
from spark_wal.data_source.json_rows import RowValueError
from spark_wal.data_source.options import DataSourceOptionError
from spark_wal.data_source.rows import RowColumns

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
HEADERS = pa.map_(pa.string(), pa.binary())


def schema(**kinds: t.DataType) -> t.StructType:
    return t.StructType([t.StructField(name, kind) for name, kind in kinds.items()])


def read_back(parts: list[RecordColumns]) -> list[Any]:
    """The records of columns, through the stored form."""
    found: list[Any] = []
    for part in parts:
        entry = decode_entry(encode_entry(part, first_seq_no=0, append_ms=0))
        found += entry.records()
    return found


def records(columns: RowColumns, batch: pa.RecordBatch) -> list[Any]:
    return read_back(list(columns.records(batch)))


@pytest.mark.parametrize(
    ("names", "value_format", "said"),
    [
        (["value", "value"], None, "there are 2 columns value: name each otherwise"),
        (["a", "b", "a"], "json", "there are 2 columns a: name each otherwise"),
        (["Value"], None, "column Value: is value meant"),
        (["value", "Key"], "raw", "column Key: is key meant"),
        (["a", "EVENT_TIME"], "json", "column EVENT_TIME: is event_time meant"),
    ],
)
def test_names_that_spark_takes_for_others_are_refused(names: list[str], value_format: str | None, said: str) -> None:
    columns = t.StructType([t.StructField(name, t.StringType()) for name in names])
    with pytest.raises(DataSourceOptionError, match=said):
        RowColumns(columns, value_format)


@pytest.mark.parametrize("kind", [t.VariantType(), t.DayTimeIntervalType(), t.YearMonthIntervalType()])
def test_types_that_json_does_not_have_are_refused_before_a_task_runs(kind: t.DataType) -> None:
    for whole in (kind, t.ArrayType(kind), t.MapType(t.StringType(), kind), t.StructType([t.StructField("a", kind)])):
        with pytest.raises(DataSourceOptionError, match=r"column x has type .*, which cannot be JSON"):
            RowColumns(schema(x=whole), None)


@pytest.mark.parametrize(
    "kind", [t.BinaryType(), t.StructType([t.StructField("a", t.LongType())]), t.ArrayType(t.LongType())]
)
def test_maps_whose_keys_cannot_be_names_are_refused_before_a_task_runs(kind: t.DataType) -> None:
    whole = t.MapType(kind, t.LongType())
    for outer in (whole, t.ArrayType(whole)):
        with pytest.raises(DataSourceOptionError, match=r"column x has a map with keys of type .*cannot be names"):
            RowColumns(schema(x=outer), None)
    RowColumns(schema(x=t.MapType(t.DecimalType(9, 2), t.LongType()), y=t.MapType(t.DateType(), t.LongType())), None)


def test_a_json_object_may_have_a_name_like_value() -> None:
    batch = pa.record_batch({"Value": ["x"], "value": ["y"]})
    columns = RowColumns(schema(Value=t.StringType(), value=t.StringType()), "json")
    assert [each.value for each in records(columns, batch)] == [b'{"Value":"x","value":"y"}']


def test_columns_with_a_meaning_come_as_they_are_also_of_a_slice() -> None:
    kinds = schema(
        value=t.BinaryType(),
        key=t.StringType(),
        headers=t.MapType(t.StringType(), t.BinaryType()),
        event_time=t.TimestampType(),
    )
    batch = pa.record_batch(
        {
            "value": pa.array([b"cut", b"a", b"", b"c"], pa.binary()),
            "key": pa.array(["cut", "k", None, "l"], pa.string()),
            "headers": pa.array([None, [("h", b"x")], None, []], HEADERS),
            "event_time": pa.array([None, NOON, None, NOON], pa.timestamp("us", "UTC")),
        }
    ).slice(1)
    (part,) = RowColumns(kinds, None).records(batch)
    assert (part.min_event_ms, part.max_event_ms) == (1767355200000, 1767355200000)
    assert [(each.value, each.key, each.event_time, dict(each.headers)) for each in read_back([part])] == [
        (b"a", b"k", NOON, {"h": b"x"}),
        (b"", None, None, {}),
        (b"c", b"l", NOON, {}),
    ]


def test_text_is_its_bytes_however_it_is_compared() -> None:
    kinds = schema(value=t.StringType("UNICODE_CI"), key=t.StringType("UTF8_LCASE"))
    (found,) = records(RowColumns(kinds, None), pa.record_batch({"value": ["Ä"], "key": ["K"]}))
    assert (found.value, found.key) == ("Ä".encode(), b"K")


def test_columns_that_no_row_uses_are_left_out() -> None:
    kinds = schema(value=t.StringType(), key=t.BinaryType(), event_time=t.TimestampType())
    batch = pa.record_batch(
        {
            "value": pa.array(["a"], pa.string()),
            "key": pa.array([None], pa.binary()),
            "event_time": pa.array([None], pa.timestamp("us", "UTC")),
        }
    )
    (part,) = RowColumns(kinds, None).records(batch)
    assert (part.keys, part.events, part.headers) == (None, None, None)


def test_without_a_value_the_other_columns_are_a_json_object_without_nulls() -> None:
    kinds = schema(
        key=t.BinaryType(),
        count=t.LongType(),
        at=t.TimestampType(),
        day=t.DateType(),
        d=t.DecimalType(9, 2),
        b=t.BinaryType(),
    )
    batch = pa.record_batch(
        {
            "key": pa.array([b"k"], pa.binary()),
            "count": pa.array([7], pa.int64()),
            "at": pa.array([NOON], pa.timestamp("us", "UTC")),
            "day": pa.array([date(2026, 1, 2)], pa.date32()),
            "d": pa.array([Decimal("1.50")], pa.decimal128(9, 2)),
            "b": pa.array([None], pa.binary()),
        }
    )
    (found,) = records(RowColumns(kinds, None), batch)
    assert found.key == b"k"
    assert json.loads(found.value) == {"count": 7, "at": "2026-01-02T12:00:00.000Z", "day": "2026-01-02", "d": 1.5}


def test_with_json_a_column_value_is_one_of_them() -> None:
    batch = pa.record_batch({"value": pa.array(["a"], pa.string())})
    (found,) = records(RowColumns(schema(value=t.StringType()), "json"), batch)
    assert found.value == b'{"value":"a"}'


def test_small_batches_share_an_entry_and_their_rows_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "ENTRY_BYTES", 4_000)
    kinds = schema(value=t.BinaryType(), key=t.StringType(), headers=t.MapType(t.StringType(), t.BinaryType()))
    values = [b"%04d" % number + bytes(96) for number in range(200)]
    keys = [None if number % 3 else f"key {number}" for number in range(200)]
    whole = pa.record_batch(
        {
            "value": pa.array(values, pa.binary()),
            "key": pa.array(keys, pa.string()),
            "headers": pa.array([[("h", b"%d" % number)] for number in range(200)], HEADERS),
        }
    )
    columns = RowColumns(kinds, None)
    cuts = [0, 7, 7, 20, 21, 110, 118, 119, 141, 199, 200]
    parts = [part for a, b in itertools.pairwise(cuts) for part in columns.add(whole.slice(a, b - a))]
    waiting = columns.rest()
    assert waiting, "the last batch alone fills no entry"
    assert columns.rest() == []
    found = read_back([*parts, *waiting])
    assert [(each.value, each.key) for each in found] == [
        (value, None if key is None else key.encode()) for value, key in zip(values, keys, strict=True)
    ]
    assert [each.headers["h"] for each in found] == [b"%d" % number for number in range(200)]
    assert 8 <= len(parts) + len(waiting) <= 12
    assert all(part.size <= 4_400 for part in [*parts, *waiting])


def test_batches_of_a_thousand_small_rows_fill_entries() -> None:
    columns = RowColumns(schema(value=t.BinaryType()), None)
    batch = pa.record_batch({"value": pa.array([bytes(256)] * 1_000, pa.binary())})
    parts = [part for _ in range(30) for part in columns.add(batch)]
    assert [part.count for part in parts] == [3_000] * 9, "each goes as soon as it is full"
    assert [part.count for part in columns.rest()] == [3_000]


@given(
    st.lists(st.binary(max_size=12), min_size=1, max_size=30),
    st.sets(st.integers(0, 30)),
    st.integers(0, 3),
    st.sampled_from(Compression),
)
def test_batches_that_share_an_entry_give_its_bytes_without_a_copy_of_their_values(
    values: list[bytes], cuts: set[int], before: int, compression: Compression
) -> None:
    """However they are cut, and wherever in their arrays they begin: the bytes are those of one batch and of a
    writer's own values. The values are where Arrow has them until then."""
    kept = pa.array([b"cut"] * before + values, pa.binary())
    column = kept.slice(before)
    borders = sorted({0, len(values), *(cut for cut in cuts if cut < len(values))})
    columns = RowColumns(schema(value=t.BinaryType()), None)
    for a, b in itertools.pairwise(borders):
        assert columns.add(pa.record_batch({"value": column.slice(a, b - a)})) == []
    (part,) = columns.rest()
    own = RecordColumns.of_values(values)
    assert (part.count, part.values.offsets, part.values.data) == (len(values), own.values.offsets, own.values.data)
    stored = encode_entry(part, first_seq_no=0, append_ms=0, compression=compression)
    assert stored == encode_entry(own, first_seq_no=0, append_ms=0, compression=compression)
    assert isinstance(part.values, BytesPieces)
    first, last = kept.buffers()[2].address, kept.buffers()[2].address + kept.buffers()[2].size
    for piece in filter(len, part.values.pieces):
        assert first <= pa.py_buffer(piece).address <= last - len(piece)


def test_a_value_that_is_null_is_refused_also_where_batches_share_an_entry() -> None:
    columns = RowColumns(schema(value=t.BinaryType()), None)
    assert columns.add(pa.record_batch({"value": pa.array([b"a"], pa.binary())})) == []
    assert columns.add(pa.record_batch({"value": pa.array([None], pa.binary())})) == []
    with pytest.raises(RowValueError, match="a row's value is null"):
        columns.rest()


def test_many_rows_are_several_entries_of_about_the_same_size() -> None:
    values = [b"%03d" % n + bytes(20_000) for n in range(100)]
    parts = list(
        RowColumns(schema(value=t.BinaryType()), None).records(
            pa.record_batch({"value": pa.array(values, pa.binary())})
        )
    )
    assert 3 <= len(parts) <= 4
    assert all(len(part.values.data) <= rows.ENTRY_BYTES * 1.1 for part in parts)
    assert [each.value for each in read_back(parts)] == values


@pytest.mark.parametrize(
    ("kinds", "value_format", "message"),
    [
        ({"value": t.LongType()}, None, "column value is bigint, and must be binary or string"),
        ({"value": t.BinaryType(), "key": t.LongType()}, None, "column key is bigint, and must be binary or string"),
        ({"value": t.BinaryType(), "other": t.LongType()}, None, "a record has no place for column other"),
        ({"key": t.BinaryType()}, None, "there is no column for the value beside key"),
        ({}, None, "there is no column for the value: the rows have no column at all"),
        ({"a": t.LongType(), "event_time": t.LongType()}, None, "column event_time is bigint, and must be timestamp"),
        ({"a": t.LongType(), "headers": t.StringType()}, None, "column headers is string, and must be map"),
        ({"a": t.LongType()}, "raw", "column value is missing"),
    ],
)
def test_columns_that_cannot_be_records_are_refused(
    kinds: dict[str, t.DataType], value_format: str | None, message: str
) -> None:
    with pytest.raises(DataSourceOptionError, match=message):
        RowColumns(schema(**kinds), value_format)


def test_a_null_value_and_a_null_header_are_refused() -> None:
    with pytest.raises(RowValueError, match="a row's value is null"):
        records(
            RowColumns(schema(value=t.BinaryType()), None), pa.record_batch({"value": pa.array([None], pa.binary())})
        )
    kinds = schema(value=t.BinaryType(), headers=t.MapType(t.StringType(), t.BinaryType()))
    batch = pa.record_batch({"value": pa.array([b"x"], pa.binary()), "headers": pa.array([[("h", None)]], HEADERS)})
    with pytest.raises(RowValueError, match="header h of a row is null"):
        records(RowColumns(kinds, None), batch)


def test_many_bytes_of_rows_become_json_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_JSON_BYTES", 1_000)
    batch = pa.record_batch({"n": pa.array(range(1_001), pa.int64())})
    parts = list(RowColumns(schema(n=t.LongType()), None).records(batch))
    assert len(parts) > 4
    assert [json.loads(each.value)["n"] for each in read_back(parts)] == list(range(1_001))
    (alone,) = RowColumns(schema(s=t.StringType()), None).records(pa.record_batch({"s": pa.array(["x" * 2_000])}))
    assert alone.count == 1
