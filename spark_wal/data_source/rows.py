"""A query's rows as records of a stream.

    value        the record's value: binary, or text as UTF-8
    key          binary or text; may be null
    headers      a map of text to binary or text; may be null
    event_time   a timestamp; may be null

Without a column ``value``, or with valueFormat json, the value is a JSON object of all columns that have none of these
meanings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from segments import RecordColumns
from segments.entries.columns import BytesColumn, BytesPieces, encode_headers
from spark_wal.data_source.json_rows import RowValueError, json_objects
from spark_wal.data_source.options import DataSourceOptionError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

ENTRY_BYTES: Final = 768 * 1024
"""About the bytes of one entry: few entries cost little, and one that becomes somewhat larger is still whole."""
_JSON_BYTES: Final = 64 << 20
"""So many bytes of rows become JSON at a time, which may take several times as many: a column has 2 GiB at most."""
_COLLATED: Final = " collate "
"""Behind it is how text is compared, which its bytes do not tell."""
_FIELD_COLUMNS: Final = ("key", "headers", "event_time")


class RowColumns:
    """Turns batches of rows into records.

    Args:
        schema: the query's columns.
        value_format: ``raw`` or ``json``; None: raw if there is a column ``value``.

    Raises:
        DataSourceOptionError: the columns cannot be records.
    """

    def __init__(self, schema: StructType, value_format: str | None) -> None:
        kinds = {field.name: field.dataType for field in schema}
        _check_names(schema.names, value_format)
        self._json = value_format == "json" or (value_format is None and "value" not in kinds)
        self._own = [name for name in kinds if name not in _FIELD_COLUMNS] if self._json else []
        if self._json and not self._own:
            beside = f" beside {', '.join(kinds)}" if kinds else ": the rows have no column at all"
            raise DataSourceOptionError(f"there is no column for the value{beside}")
        for name in self._own:
            _check_can_be_json(kinds[name], name)
        if not self._json:
            _check(kinds, "value", "binary", "string")
            if odd := [name for name in kinds if name not in (*_FIELD_COLUMNS, "value")]:
                raise DataSourceOptionError(
                    f"a record has no place for column {odd[0]}: there are value, {', '.join(_FIELD_COLUMNS)}. With "
                    'option("valueFormat", "json") all other columns become the value'
                )
        for name, allowed in (("key", ("binary", "string")), ("event_time", ("timestamp",))):
            if name in kinds:
                _check(kinds, name, *allowed)
        if "headers" in kinds:
            _check(kinds, "headers", "map<string,binary>", "map<string,string>")
        self._has = {name for name in _FIELD_COLUMNS if name in kinds}
        self._waiting: list[Any] = []
        """Batches that together fill no entry."""
        self._waiting_bytes = 0

    def add(self, batch: Any) -> list[RecordColumns]:
        """The records of one ``pyarrow.RecordBatch`` after the other, in parts of about one entry: small batches share
        one, and wait for those that follow, or for ``rest``. Raises RowValueError."""
        if not batch.num_rows:
            return []
        size = batch.nbytes
        found = self.rest() if self._waiting_bytes + size > ENTRY_BYTES else []
        if size > ENTRY_BYTES // 2 and not self._waiting:
            return [*found, *self.records(batch)]
        self._waiting.append(batch)
        self._waiting_bytes += size
        return found

    def rest(self) -> list[RecordColumns]:
        """The records of the batches that wait. Raises RowValueError."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if self._json or len(waiting) < 2:
            return [part for batch in _joined(waiting) for part in self.records(batch)]
        values = [_binary(batch.column("value")) for batch in waiting]
        _check_values(values)
        (beside,) = _joined([batch.select(sorted(self._has)) for batch in waiting]) if self._has else (None,)
        return [self._part(beside, values)]

    def records(self, batch: Any) -> Iterator[RecordColumns]:
        """The records of a ``pyarrow.RecordBatch``, in equal parts of one entry at most. Raises RowValueError."""
        if not batch.num_rows:
            return
        if self._json and batch.nbytes > _JSON_BYTES and batch.num_rows > 1:
            for half in (batch.slice(0, batch.num_rows // 2), batch.slice(batch.num_rows // 2)):
                yield from self.records(half)
            return
        values = json_objects(batch, self._own) if self._json else _binary(batch.column("value"))
        _check_values([values])
        size = sum(column.nbytes for column in (values, *(batch.column(name) for name in self._has)))
        rows = -(-batch.num_rows // max(1, -(-size // ENTRY_BYTES)))
        for at in range(0, batch.num_rows, rows):
            yield self._part(batch.slice(at, rows), [values.slice(at, rows)])

    def _part(self, batch: Any, values: Sequence[Any]) -> RecordColumns:
        """The records with these values, which follow each other in several arrays, and with the other columns of
        ``batch``, which is None where there are none. Values stay where Arrow has them until the entry is made."""
        keys, key_bits = (None, None)
        if "key" in self._has:
            column = _binary(batch.column("key"))
            if column.null_count < len(column):
                keys, key_bits = _bytes_column(column.fill_null(b"")), _valid_bits(column)
        events, event_bits, least, greatest = _times(batch.column("event_time")) if "event_time" in self._has else _NONE
        headers = _headers(batch.column("headers")) if "headers" in self._has else None
        return RecordColumns(
            sum(map(len, values)),
            _pieces(values),
            keys,
            key_bits,
            events=events,
            event_bits=event_bits,
            headers=headers,
            min_event_ms=least,
            max_event_ms=greatest,
        )


_NONE: Final = (None, None, None, None)


def _check_values(values: Sequence[Any]) -> None:
    """Refuse a row without a value. Raises RowValueError."""
    if any(column.null_count for column in values):
        raise RowValueError("a row's value is null, and a record has one; write an empty value instead")


def _check_names(names: Sequence[str], value_format: str | None) -> None:
    """Refuse names that Spark takes for the same, and those that it takes for one with a meaning."""
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise DataSourceOptionError(f"there are {names.count(twice[0])} columns {twice[0]}: name each otherwise")
    meant = _FIELD_COLUMNS if value_format == "json" else ("value", *_FIELD_COLUMNS)
    for name in names:
        if name not in meant and name.lower() in meant:
            raise DataSourceOptionError(f"column {name}: is {name.lower()} meant? Rename it to that, or otherwise")


def _check(kinds: dict[str, DataType], name: str, *allowed: str) -> None:
    kind = kinds[name].simpleString() if name in kinds else "missing"
    if kind.partition(_COLLATED)[0] not in allowed:
        raise DataSourceOptionError(f"column {name} is {kind}, and must be {' or '.join(allowed)}")


def _check_can_be_json(kind: DataType, name: str) -> None:
    """Refuse a column whose type JSON does not have, wherever it stands. Raises DataSourceOptionError."""
    from pyspark.sql import types as t

    match kind:
        case t.ArrayType():
            parts = [kind.elementType]
        case t.MapType():
            if isinstance(kind.keyType, t.BinaryType | t.ArrayType | t.StructType | t.NullType):
                raise DataSourceOptionError(
                    f"column {name} has a map with keys of type {kind.keyType.simpleString()}, which cannot be names "
                    "in JSON; use Spark's to_json, or cast them"
                )
            parts = [kind.keyType, kind.valueType]
        case t.StructType():
            parts = [field.dataType for field in kind]
        case (
            t.BooleanType() | t.IntegralType() | t.FractionalType() | t.StringType() | t.CharType() | t.VarcharType()
            | t.BinaryType() | t.DateType() | t.TimestampType() | t.TimestampNTZType() | t.NullType()
        ):  # fmt: skip
            parts = []
        case _:
            raise DataSourceOptionError(
                f"column {name} has type {kind.simpleString()}, which cannot be JSON; use Spark's to_json, or cast it"
            )
    for part in parts:
        _check_can_be_json(part, name)


def _joined(batches: list[Any]) -> list[Any]:
    """The rows of the batches in one, if there are any."""
    if len(batches) < 2:
        return batches
    import pyarrow as pa

    joined: list[Any] = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return joined


def _binary(column: Any) -> Any:
    import pyarrow as pa

    wanted = pa.binary()
    return column if column.type == wanted else column.cast(wanted)


def _pieces(columns: Sequence[Any]) -> BytesPieces:
    """Strings of bytes, none of them missing, where they lie. Only their offsets are copied."""
    import pyarrow as pa
    import pyarrow.compute as compute

    offsets: list[bytes | memoryview[Any]] = [bytes(4)]
    pieces: list[memoryview[Any]] = []
    size = 0
    for column in columns:
        _, places, data = column.buffers()
        numbers = memoryview(places).cast("i")[column.offset : column.offset + len(column) + 1]
        first, last = numbers[0], numbers[-1]
        if first == size:
            offsets.append(numbers[1:])
        else:
            own = pa.Array.from_buffers(pa.int32(), len(column), [None, places], offset=column.offset + 1)
            moved = compute.add(own, pa.scalar(size - first, pa.int32()))
            offsets.append(memoryview(moved.buffers()[1]).cast("i")[moved.offset : moved.offset + len(column)])
        if data is not None:
            pieces.append(memoryview(data)[first:last])
        size += last - first
    return BytesPieces(b"".join(offsets), pieces)


def _bytes_column(column: Any) -> BytesColumn:
    """The same copied, for columns that are small."""
    found = _pieces([column])
    return BytesColumn(found.offsets, found.data)


def _valid_bits(column: Any) -> bytes | None:
    """Which values are there, a bit each; None: all."""
    if not column.null_count:
        return None
    there = column.is_valid()
    bits: int = (int.from_bytes(there.buffers()[1], "little") >> there.offset) & ((1 << len(there)) - 1)
    return bits.to_bytes((len(there) + 7) // 8, "little")


def _times(column: Any) -> tuple[bytes | None, bytes | None, int | None, int | None]:
    """Milliseconds since 1970, 0 where there is none; which are there; the least and the greatest."""
    import pyarrow as pa
    import pyarrow.compute as compute

    if column.null_count == len(column):
        return _NONE
    ms = column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())
    ends = compute.min_max(ms).as_py()
    filled = ms.fill_null(0)
    begin = 8 * filled.offset
    numbers = bytes(memoryview(filled.buffers()[1])[begin : begin + 8 * len(ms)])
    return numbers, _valid_bits(column), ends["min"], ends["max"]


def _headers(column: Any) -> BytesColumn | None:
    found: list[bytes] = []
    for pairs in column.to_pylist():
        headers = {}
        for name, value in pairs or ():
            if value is None:
                raise RowValueError(f"header {name} of a row is null; leave it out instead")
            headers[name] = value.encode() if isinstance(value, str) else value
        found.append(encode_headers(headers) if headers else b"")
    return BytesColumn.of(found) if any(found) else None
