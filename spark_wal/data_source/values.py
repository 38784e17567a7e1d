"""Values that are JSON or Arrow, as a user's own columns.

A value that does not fit the schema ends the query with the record's number (FAILFAST), or becomes a row of nulls
(PERMISSIVE), with its bytes in the column ``_corrupt_record`` if the schema has it.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Collection
from typing import Any, Final

from bookkeeper.errors import in_words
from spark_wal.data_source.columns import (
    CORRUPT,
    RECORD_COLUMNS,
    ValueFormatError,
    column_of,
    needed,
    not_null,
    record_type,
)
from spark_wal.data_source.options import DataSourceOptionError

_WORDS: Final = ("NaN", "Infinity", "-Infinity")
"""Numbers that JSON does not have, and that are text there."""


class ValueColumns:
    """Turns the values of a stream's records into a user's columns. A column whose name is that of a record's column
    behind an underscore (``_seq_no``) is the record's.

    Args:
        wanted: a ``pyarrow.Schema``.
        value_format: ``json`` or ``arrow``.

    Raises:
        DataSourceOptionError: the schema cannot be read from such values.
    """

    def __init__(self, wanted: Any, value_format: str, *, permissive: bool) -> None:
        import pyarrow as pa

        self.schema = wanted
        self._permissive = permissive
        self._of_record = {
            field.name: field.name[1:] for field in wanted if field.name[:1] == "_" and field.name[1:] in RECORD_COLUMNS
        }
        self.needs = needed(["value", "seq_no", *self._of_record.values()])
        for name, of in self._of_record.items():
            _check_cast(wanted.field(name), of)
        if CORRUPT in wanted.names:
            _check_corrupt(wanted.field(CORRUPT))
        own = [field for field in wanted if field.name not in self._of_record and field.name != CORRUPT]
        if not own:
            raise DataSourceOptionError(
                f"valueFormat {value_format} needs the columns of your values: give .schema(...)"
            )
        self._own = pa.schema(own)
        self._decode = _JsonValues(self._own).decode if value_format == "json" else _ArrowValues(self._own).decode

    def convert(self, batch: Any, stream: str) -> Any:
        """The columns of a batch of records, as a ``pyarrow.RecordBatch``. Raises ValueFormatError."""
        import pyarrow as pa

        values = batch.column("value")
        rows, owners, bad = self._decoded(values, batch, stream)
        at = pa.array(owners, pa.int64()) if owners is not None else None
        columns = []
        for field in self.schema:
            if field.name in self._of_record:
                column = column_of(self._of_record[field.name], batch, stream)
                columns.append(not_null(_cast(column if at is None else column.take(at), field), field, True))
            elif field.name == CORRUPT:
                columns.append(_corrupt(values, bad, owners, field))
            else:
                columns.append(not_null(rows.column(field.name), field, self._permissive))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _decoded(self, values: Any, batch: Any, stream: str) -> tuple[Any, list[int] | None, set[int]]:
        """The rows; of each row the record, unless each record has one row; and the records that do not fit."""
        import pyarrow as pa

        whole = self._decode(values)
        if whole is not None:
            return whole, None, set()
        parts, owners, bad = [], [], set()
        for at in range(len(values)):
            one = values.slice(at, 1)
            try:
                found = self._decode(one, one_by_one=True)
            except (pa.ArrowException, ValueError, OSError, KeyError, TypeError) as error:
                if not self._permissive:
                    number = batch.column("seq_no")[at].as_py()
                    raise ValueFormatError(
                        f"the value of record {number} of stream {stream} does not fit the schema: {in_words(error)}. "
                        'With option("mode", "PERMISSIVE") such records become rows of nulls'
                    ) from error
                bad.add(at)
                found = pa.RecordBatch.from_arrays(
                    [pa.nulls(1, field.type) for field in self._own],
                    schema=pa.schema([field.with_nullable(True) for field in self._own]),
                )
            parts.append(pa.Table.from_batches([found]).cast(_all_nullable(self._own)))
            owners += [at] * found.num_rows
        table = pa.concat_tables(parts).combine_chunks() if parts else _all_nullable(self._own).empty_table()
        batches = table.to_batches()
        return batches[0] if batches else pa.RecordBatch.from_pylist([], _all_nullable(self._own)), owners, bad


class _JsonValues:
    """Values that are one JSON object each."""

    def __init__(self, schema: Any) -> None:
        import pyarrow as pa

        for field in schema:
            if _has_map(field.type):
                raise DataSourceOptionError(
                    f"column {field.name} is a map, which cannot be read from JSON: name a struct, or take raw values "
                    "and Spark's from_json"
                )
        self._schema = schema
        self._read_as = _all_nullable(pa.schema([field.with_type(_json_type(field.type)) for field in schema]))
        self._floats = [field.name for field in schema if pa.types.is_floating(field.type)]

    def decode(self, values: Any, *, one_by_one: bool = False) -> Any:
        """The rows of values, one for each; None if some do not fit. Of a single one it raises why."""
        import pyarrow as pa

        if len(values) == 0:
            return pa.RecordBatch.from_pylist([], self._schema)
        data: bytes | None = values[0].as_py().strip() if one_by_one else _lines(values)
        if data is None:
            return None
        if not data.startswith(b"{"):
            raise ValueError("it is no JSON object")
        try:
            if not data.isascii():
                data.decode()  # Arrow would take any bytes for text
            table = self._parsed(data) if one_by_one else self._parse(data, lines=True)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
            if one_by_one:
                raise ValueError(str(error)) from error
            return None
        if table.num_rows != len(values):
            if one_by_one:
                raise ValueError(f"it is {table.num_rows} JSON objects")
            return None
        return table.combine_chunks().to_batches()[0]

    def _parsed(self, data: bytes) -> Any:
        """The row of a single value."""
        import pyarrow as pa

        try:
            return self._parse(data, lines=False)
        except pa.ArrowInvalid:
            row = _parse_object(data) if self._floats else {}
            if not (words := {name for name in self._floats if row.get(name) in _WORDS}):
                raise
        return self._parse(data, lines=False, as_text=words)

    def _parse(self, data: bytes, *, lines: bool, as_text: Collection[str] = ()) -> Any:
        import pyarrow as pa
        import pyarrow.json as json_of_arrow

        read_as = self._read_as
        if as_text:
            read_as = pa.schema([each.with_type(pa.string()) if each.name in as_text else each for each in read_as])
        table = json_of_arrow.read_json(
            io.BytesIO(data),
            json_of_arrow.ReadOptions(block_size=len(data) + 1),
            json_of_arrow.ParseOptions(
                explicit_schema=read_as,
                newlines_in_values=not lines,
                unexpected_field_behavior="ignore",
            ),
        )
        if read_as.types == self._schema.types:
            return table
        columns = [_read(table.column(field.name).combine_chunks(), field.type) for field in self._schema]
        return pa.Table.from_arrays(columns, schema=_all_nullable(self._schema))


def _parse_object(data: bytes) -> dict[str, Any]:
    """An object, or nothing if it is none that Python reads."""
    try:
        found: dict[str, Any] = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found


def _json_type(kind: Any) -> Any:
    """The type as which JSON has a type: dates and bytes are text, wherever they stand."""
    import pyarrow as pa

    if pa.types.is_date(kind) or pa.types.is_binary(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_json_type(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_json_type(field.type)) for field in kind])
    return kind


def _read(column: Any, kind: Any) -> Any:
    """A column of a type that is spelt otherwise in JSON. Raises: ArrowInvalid, ValueError: it does not fit."""
    import pyarrow as pa

    if column.type == kind:
        return column
    if pa.types.is_binary(kind):
        return pa.array([None if each is None else _from_base64(each) for each in column.to_pylist()], kind)
    if pa.types.is_list(kind):
        values = _read(column.values, kind.value_type)
        return pa.ListArray.from_arrays(column.offsets, values, type=kind, mask=column.is_null())
    if pa.types.is_struct(kind):
        parts = [_read(column.field(at), field.type) for at, field in enumerate(kind)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=column.is_null())
    return column.cast(kind)


def _from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise ValueError(f"bytes are base64 in JSON, and {text[:40]!r} is not: {error}") from error


def _lines(values: Any) -> bytes | None:
    """JSON objects as lines; None if a value is not a line that begins and ends an object.

    No object can go on in the next line, because behind a "}" no JSON begins with "{". So as many rows as values are
    one row of each.
    """
    import pyarrow as pa
    import pyarrow.compute as compute

    whole = pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)
    data: bytes = compute.binary_join(whole, b"\n")[0].as_py()
    ends = len(values) - 1
    if data.count(b"\n") != ends or data.count(b"}\n{") != ends or data[:1] != b"{" or data[-1:] != b"}":
        return None
    return data


class _ArrowValues:
    """Values that are an Arrow IPC stream each, of any number of rows."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema

    def decode(self, values: Any, *, one_by_one: bool = False) -> Any:
        """The rows of a single value; None of several."""
        import pyarrow as pa

        if not one_by_one:
            return None
        with pa.ipc.open_stream(values[0].as_buffer()) as reader:
            table = reader.read_all()
        names = self._schema.names
        if missing := [name for name in names if name not in table.column_names]:
            raise ValueError(f"it has no column {missing[0]}")
        found = table.select(names).cast(_all_nullable(self._schema)).combine_chunks().to_batches()
        return found[0] if found else pa.RecordBatch.from_pylist([], _all_nullable(self._schema))


def _all_nullable(schema: Any) -> Any:
    import pyarrow as pa

    return pa.schema([field.with_nullable(True) for field in schema])


def _has_map(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_map(kind):
        return True
    return any(_has_map(kind.field(at).type) for at in range(kind.num_fields))


def _corrupt(values: Any, bad: set[int], owners: list[int] | None, field: Any) -> Any:
    import pyarrow as pa

    if owners is None:
        return pa.nulls(len(values), field.type)
    kept = [values[at].as_py() if at in bad else None for at in owners]
    if pa.types.is_string(field.type):
        return pa.array([None if each is None else each.decode(errors="replace") for each in kept], field.type)
    return pa.array(kept, field.type)


def _check_cast(field: Any, of: str) -> None:
    """Refuse a type that the record's column cannot become. Raises DataSourceOptionError."""
    import pyarrow as pa

    kind = record_type(of)
    try:
        pa.nulls(0, kind).cast(field.type)
    except pa.ArrowNotImplementedError as error:
        raise DataSourceOptionError(
            f"column {field.name} is {of} of the record, which is {kind} and cannot be read as {field.type}"
        ) from error


def _check_corrupt(field: Any) -> None:
    import pyarrow as pa

    if not field.nullable or not (pa.types.is_string(field.type) or pa.types.is_binary(field.type)):
        raise DataSourceOptionError(
            f"column {CORRUPT} has the bytes of values that do not fit, and nothing beside others: it is STRING or "
            'BINARY, without "NOT NULL"'
        )


def _cast(column: Any, field: Any) -> Any:
    """A record's column in the type that is asked for. Raises ValueFormatError."""
    import pyarrow as pa

    try:
        return column if column.type == field.type else column.cast(field.type)
    except pa.ArrowInvalid as error:
        raise ValueFormatError(f"column {field.name} of some records is not {field.type}: {in_words(error)}") from error
