"""Records as the columns that Spark asks for.

Spark compares the schema of what a reader yields with the one that was declared: names, types and nullability.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from bookkeeper.install import how_to_install
from spark_wal.data_source.options import DataSourceOptionError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

STREAM_DDL: Final = (
    "position STRUCT<segment: BIGINT, entry: BIGINT, slot: BIGINT>, seq_no BIGINT, key BINARY, value BINARY, "
    "headers MAP<STRING, BINARY>, event_time TIMESTAMP, append_time TIMESTAMP, txid BIGINT"
)
STREAMS_DDL: Final = f"stream STRING, {STREAM_DDL}"
LEDGER_DDL: Final = "entry_id BIGINT, payload BINARY"
JOURNAL_DDL: Final = "txid BIGINT, body BINARY"

RECORD_COLUMNS: Final = ("stream", "position", "seq_no", "key", "value", "headers", "event_time", "append_time", "txid")
CORRUPT: Final = "_corrupt_record"
"""The column of a user's schema that takes a value which does not fit."""


def arrow_schema(schema: StructType) -> Any:
    """The ``pyarrow.Schema`` that Spark expects of a reader with these columns.

    Raises:
        DataSourceOptionError: a type cannot be read, or pyarrow is not installed.
    """
    try:
        import pyarrow as pa
    except ImportError as error:
        raise DataSourceOptionError(f'format("bookkeeper") needs pyarrow: {how_to_install("copy")}') from error

    return pa.schema([pa.field(each.name, _arrow_type(each.dataType, each.name), each.nullable) for each in schema])


def _arrow_type(kind: DataType, name: str) -> Any:
    import pyarrow as pa
    from pyspark.sql import types as t

    match kind:
        case t.DecimalType():
            return pa.decimal128(kind.precision, kind.scale)
        case t.ArrayType():
            return pa.list_(pa.field("element", _arrow_type(kind.elementType, name), kind.containsNull))
        case t.MapType():
            key = pa.field("key", _arrow_type(kind.keyType, name), nullable=False)
            return pa.map_(key, pa.field("value", _arrow_type(kind.valueType, name), kind.valueContainsNull))
        case t.StructType():
            return pa.struct([pa.field(each.name, _arrow_type(each.dataType, name), each.nullable) for each in kind])
    simple = {
        t.BooleanType: pa.bool_(),
        t.ByteType: pa.int8(),
        t.ShortType: pa.int16(),
        t.IntegerType: pa.int32(),
        t.LongType: pa.int64(),
        t.FloatType: pa.float32(),
        t.DoubleType: pa.float64(),
        t.StringType: pa.string(),
        t.BinaryType: pa.binary(),
        t.DateType: pa.date32(),
        t.TimestampType: pa.timestamp("us", "UTC"),
        t.TimestampNTZType: pa.timestamp("us"),
    }
    if type(kind) not in simple:
        raise DataSourceOptionError(f"column {name} has type {kind.simpleString()}, which cannot be read")
    return simple[type(kind)]


class ValueFormatError(ValueError):
    """What a record holds does not fit the schema, and the mode is FAILFAST."""


class StreamColumns:
    """Turns batches of a stream's records, as ``Reader.arrow_batches`` gives them, into columns of a schema.

    Args:
        wanted: the columns, by names of ``RECORD_COLUMNS``; their types are those of ``STREAMS_DDL``.
    """

    def __init__(self, wanted: Any) -> None:
        self.schema = wanted
        self.needs = needed(wanted.names)

    def convert(self, batch: Any, stream: str) -> Any:
        """The columns of a batch, as a ``pyarrow.RecordBatch``. Raises ValueFormatError."""
        import pyarrow as pa

        columns = [not_null(column_of(field.name, batch, stream), field) for field in self.schema]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def needed(names: Sequence[str]) -> tuple[str, ...]:
    """The columns of ``Reader.arrow_batches`` of which these are made: one at least, which tells how many rows there
    are."""
    found = [part for name in names for part in _MADE_OF.get(name, (name,))]
    return tuple(dict.fromkeys(found or ["seq_no"]))


_MADE_OF: Final = {"stream": (), "position": ("segment", "entry", "slot")}


def column_of(name: str, batch: Any, stream: str) -> Any:
    """One column of a batch of records."""
    import pyarrow as pa

    match name:
        case "stream":
            return pa.repeat(pa.scalar(stream, pa.string()), batch.num_rows)
        case "position":
            parts = [batch.column(part) for part in ("segment", "entry", "slot")]
            return pa.StructArray.from_arrays(parts, ["segment", "entry", "slot"])
        case "event_time" | "append_time":
            return batch.column(name).cast(pa.timestamp("us", "UTC"))
    return batch.column(name)


def not_null(column: Any, field: Any, permissive: bool = False) -> Any:
    """A column whose values are there, if the field says so: Spark believes it without looking. Raises
    ValueFormatError."""
    if not field.nullable and column.null_count:
        hint = "" if permissive else '; a column that may be null is declared without "NOT NULL"'
        raise ValueFormatError(f"column {field.name} is declared NOT NULL, and some values have none{hint}")
    return column


def record_type(name: str) -> Any:
    """The ``pyarrow.DataType`` of a record's column."""
    return _record_types()[name]


@cache
def _record_types() -> dict[str, Any]:
    import pyarrow as pa

    long, time = pa.int64(), pa.timestamp("us", "UTC")
    place = pa.struct([(name, long) for name in ("segment", "entry", "slot")])
    types = (pa.string(), place, long, pa.binary(), pa.binary(), pa.map_(pa.string(), pa.binary()), time, time, long)
    return dict(zip(RECORD_COLUMNS, types, strict=True))


def rows_batch(rows: Sequence[tuple[int, bytes]], names: tuple[str, str], wanted: Any) -> Any:
    """Numbered rows of bytes as a ``pyarrow.RecordBatch`` of the wanted columns."""
    import pyarrow as pa

    columns = [pa.array([row[names.index(field.name)] for row in rows], field.type) for field in wanted]
    return pa.RecordBatch.from_arrays(columns, schema=wanted)


def check_columns(schema: StructType, ddl: str, what: str, hint: str = "") -> None:
    """Refuse columns of a user's schema that what is read does not have, or has with another type.

    Args:
        ddl: the columns that there are.

    Raises: DataSourceOptionError.
    """
    known = _kinds(ddl)
    for field in schema:
        kind = _without_nulls(field.dataType.jsonValue())
        if field.name not in known:
            raise DataSourceOptionError(f"{what} has no column {field.name}; there are {', '.join(known)}{hint}")
        if kind != known[field.name][0]:
            raise DataSourceOptionError(
                f"column {field.name} of {what} is {known[field.name][1]}, and your schema says "
                f"{field.dataType.simpleString()}: cast it after reading{hint}"
            )


@cache
def _kinds(ddl: str) -> dict[str, tuple[Any, str]]:
    """Of each column its type without nullability, and as people write it."""
    from pyspark.sql import types as t

    position = t.StructType([t.StructField(name, t.LongType()) for name in ("segment", "entry", "slot")])
    simple: dict[str, DataType] = {
        "STRING": t.StringType(),
        "BIGINT": t.LongType(),
        "BINARY": t.BinaryType(),
        "TIMESTAMP": t.TimestampType(),
        "STRUCT": position,
        "MAP": t.MapType(t.StringType(), t.BinaryType()),
    }
    columns = re.sub(r"<[^>]*>", "", ddl).split(", ")
    found = {name: simple[kind] for name, kind in (column.split(" ") for column in columns)}
    return {name: (_without_nulls(kind.jsonValue()), kind.simpleString()) for name, kind in found.items()}


def _without_nulls(kind: Any) -> Any:
    """A type as JSON says it, without what may be null."""
    if isinstance(kind, dict):
        left_out = ("nullable", "containsNull", "valueContainsNull", "metadata")
        return {key: _without_nulls(value) for key, value in kind.items() if key not in left_out}
    return [_without_nulls(each) for each in kind] if isinstance(kind, list) else kind
