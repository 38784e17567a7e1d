"""Records become the columns that Spark asks for, with its types."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema

from segments import Position, Record, sync
from spark_wal.data_source.columns import (
    LEDGER_DDL,
    STREAM_DDL,
    STREAMS_DDL,
    StreamColumns,
    ValueFormatError,
    arrow_schema,
    check_columns,
    column_of,
    rows_batch,
)
from spark_wal.data_source.options import DataSourceOptionError
from tests.spark_wal.data_source.clusters import ONE_BOOKIE

POSITION = t.StructType([t.StructField(name, t.LongType()) for name in ("segment", "entry", "slot")])
WHOLE = t.StructType(
    [
        t.StructField("stream", t.StringType()),
        t.StructField("position", POSITION),
        t.StructField("seq_no", t.LongType()),
        t.StructField("key", t.BinaryType()),
        t.StructField("value", t.BinaryType(), nullable=False),
        t.StructField("headers", t.MapType(t.StringType(), t.BinaryType())),
        t.StructField("event_time", t.TimestampType()),
        t.StructField("append_time", t.TimestampType()),
        t.StructField("txid", t.LongType()),
    ]
)


def test_all_columns_of_a_record_with_and_without_what_may_be_missing(namespace: sync.Namespace) -> None:
    stream = namespace.create("columns", config=ONE_BOOKIE)
    when = datetime(2026, 11, 27, 1, 2, 3, 4000, UTC)
    with stream.writer() as writer:
        full = Record(b"v", key=b"k", headers={"a": b"1"}, event_time=when, txid=7)
        writer.append_batch([full, Record(b"", txid=8)])
    wanted = arrow_schema(WHOLE)
    with stream.read() as reader:
        (batch,) = reader.arrow_batches()
    taken = StreamColumns(wanted).convert(batch, "columns")
    assert taken.schema.equals(wanted)
    taken.validate(full=True)
    first, second = taken.to_pylist()
    assert first["position"] == {"segment": 1, "entry": 0, "slot": 0} and second["position"]["slot"] == 1
    assert (first["stream"], first["seq_no"], first["key"], first["value"]) == ("columns", 0, b"k", b"v")
    assert (first["headers"], first["event_time"], first["txid"]) == ([("a", b"1")], when, 7)
    assert (second["key"], second["value"], second["event_time"]) == (None, b"", None)
    assert second["append_time"].tzinfo is not None


def test_a_column_that_may_not_be_null_is_told_because_spark_believes_it(namespace: sync.Namespace) -> None:
    stream = namespace.create("without-key", config=ONE_BOOKIE)
    with stream.writer() as writer:
        writer.append_batch([Record(b"v", key=b"k"), Record(b"w")])
    columns = StreamColumns(arrow_schema(t.StructType([t.StructField("key", t.BinaryType(), nullable=False)])))
    with stream.read() as reader:
        (batch,) = reader.arrow_batches()
    assert columns.convert(batch.slice(0, 1), "without-key").to_pylist() == [{"key": b"k"}]
    with pytest.raises(ValueFormatError, match=r'column key is declared NOT NULL.*is declared without "NOT NULL"'):
        columns.convert(batch, "without-key")


def test_the_schema_is_the_one_that_spark_compares_with() -> None:
    kinds = [t.ByteType(), t.ShortType(), t.IntegerType(), t.FloatType(), t.DoubleType(), t.BooleanType(), t.DateType()]
    fields = [t.StructField(f"c{at}", kind, nullable=at % 2 == 0) for at, kind in enumerate(kinds)]
    fields += [
        t.StructField("decimal", t.DecimalType(20, 3)),
        t.StructField("list", t.ArrayType(t.LongType(), containsNull=False)),
        t.StructField("map", t.MapType(t.StringType(), t.BinaryType())),
        t.StructField("ntz", t.TimestampNTZType()),
        *WHOLE.fields,
    ]
    schema = t.StructType(fields)
    assert arrow_schema(schema).equals(to_arrow_schema(schema, timezone="UTC"))


def test_a_type_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(DataSourceOptionError, match="column x has type interval"):
        arrow_schema(t.StructType([t.StructField("x", t.DayTimeIntervalType())]))


def test_a_users_columns_are_compared_by_name_and_type_but_not_by_null() -> None:
    check_columns(t.StructType(WHOLE.fields[1:]), STREAM_DDL, "stream a")
    check_columns(WHOLE, STREAMS_DDL, "streams a*")
    with pytest.raises(DataSourceOptionError, match="stream a has no column stream; there are position, seq_no"):
        check_columns(WHOLE, STREAM_DDL, "stream a")
    text = t.StructType([t.StructField("value", t.StringType())])
    with pytest.raises(DataSourceOptionError, match="value of stream a is binary, and your schema says string: cast"):
        check_columns(text, STREAM_DDL, "stream a")
    with pytest.raises(DataSourceOptionError, match="no column value; there are entry_id, payload"):
        check_columns(text, LEDGER_DDL, "ledger 1")


def test_rows_of_bytes_become_the_columns_that_are_wanted_in_their_order() -> None:
    wanted = pa.schema([("payload", pa.binary()), ("entry_id", pa.int64())])
    assert rows_batch([(3, b"x")], ("entry_id", "payload"), wanted).to_pylist() == [{"payload": b"x", "entry_id": 3}]


def test_a_column_of_a_slice_is_that_of_its_rows(namespace: sync.Namespace) -> None:
    stream = namespace.create("sliced", config=ONE_BOOKIE)
    with stream.writer() as writer:
        writer.append_batch([b"%d" % n for n in range(5)])
    with stream.read(Position(1, 0, 2)) as reader:
        (batch,) = reader.arrow_batches()
    assert [each["slot"] for each in column_of("position", batch, "sliced").to_pylist()] == [2, 3, 4]
