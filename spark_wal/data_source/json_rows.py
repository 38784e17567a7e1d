"""Codec: columns as JSON objects, one for each row, as Spark's ``to_json`` writes them.

Each column becomes text as a whole, and the texts are joined. Only values that JSON has no word for, or that consist of
others, take a step each.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

_TO_ESCAPE: Final = r'["\\\x00-\x1f]'
_WHOLE: Final = r"^-?[0-9]+$"
_UTC: Final = (None, "UTC", "Etc/UTC")
_WORDS: Final = {math.inf: "Infinity", -math.inf: "-Infinity"}
"""Numbers that JSON does not have are text."""


class RowValueError(ValueError):
    """A row cannot be a record."""


def json_objects(batch: Any, names: Sequence[str]) -> Any:
    """One JSON object for each row of a ``pyarrow.RecordBatch``, of these columns: UTF-8 as ``pyarrow.BinaryArray``.
    What is null is left out.

    Raises:
        RowValueError: a value cannot be JSON.
    """
    import pyarrow as pa
    import pyarrow.compute as compute

    fields = []
    for name in names:
        column = batch.column(name)
        if column.null_count < len(column):
            word = f",{json.dumps(name, ensure_ascii=False)}:"
            fields.append(compute.binary_join_element_wise(word, _text(column, name), ""))
    if not fields:
        return pa.repeat(pa.scalar(b"{}", pa.binary()), batch.num_rows)
    # Nulls are replaced, because Arrow loses rows of which it skips all of them (seen in version 26).
    inner = compute.binary_join_element_wise(*fields, "", null_handling="replace", null_replacement="")
    begun = compute.binary_replace_slice(inner, 0, 1, "{")  # in the place of the comma
    return compute.binary_join_element_wise(begun, "}", "").cast(pa.binary())


def _text(column: Any, name: str) -> Any:
    """The values of a column as JSON, as ``pyarrow.StringArray``; null where the column is."""
    import pyarrow as pa

    types, kind = pa.types, column.type
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_decimal(kind):
        return column.cast(pa.string())
    if types.is_floating(kind):
        return _numbers(column)
    if types.is_string(kind) or types.is_large_string(kind):
        return _strings(column.cast(pa.string()), name)
    if types.is_date32(kind):
        return _quoted(column.cast(pa.string()))
    if types.is_timestamp(kind) and kind.tz in _UTC:
        return _times(column)
    return _one_by_one(column, lambda value: _dumps(value, kind, name))


def _quoted(texts: Any) -> Any:
    import pyarrow.compute as compute

    return compute.binary_join_element_wise('"', texts, '"', "")


def _strings(texts: Any, name: str) -> Any:
    """Text in quotation marks; only what has something to be escaped takes a step each."""
    import pyarrow as pa
    import pyarrow.compute as compute

    try:
        texts.validate(full=True)
    except pa.ArrowInvalid as error:
        raise RowValueError(f"a value of column {name} is no UTF-8, so it cannot be JSON; cast it to binary") from error
    quoted = _quoted(texts)
    strange = compute.match_substring_regex(texts, _TO_ESCAPE)
    if not compute.any(strange).as_py():
        return quoted
    escaped = _one_by_one(texts.filter(strange), lambda value: json.dumps(value, ensure_ascii=False))
    return compute.replace_with_mask(quoted, strange, escaped)


def _numbers(column: Any) -> Any:
    """Floating-point numbers, with a point or an exponent in each."""
    import pyarrow as pa
    import pyarrow.compute as compute

    texts = column.cast(pa.string())
    whole = compute.match_substring_regex(texts, _WHOLE)
    texts = compute.if_else(whole, compute.binary_join_element_wise(texts, ".0", ""), texts)
    finite = compute.is_finite(column)
    if compute.all(finite).as_py() is not False:
        return texts
    strange = compute.invert(finite)
    words = _one_by_one(column.filter(strange), lambda value: f'"{_WORDS.get(value, "NaN")}"')
    return compute.replace_with_mask(texts, strange, words)


def _times(column: Any) -> Any:
    """Times in UTC, or without a zone, to the millisecond before."""
    import pyarrow as pa
    import pyarrow.compute as compute

    zone = "" if column.type.tz is None else "Z"
    plain = compute.floor_temporal(column.cast(pa.timestamp(column.type.unit)), unit="millisecond")
    texts = plain.cast(pa.timestamp("ms")).cast(pa.string())
    return compute.binary_join_element_wise('"', compute.replace_substring(texts, " ", "T"), f'{zone}"', "")


def _one_by_one(column: Any, text: Callable[[Any], str]) -> Any:
    import pyarrow as pa

    return pa.array([None if value is None else text(value) for value in column.to_pylist()], pa.string())


def _dumps(value: object, kind: Any, name: str) -> str:
    try:
        spoken = _json_value(value, kind)
        return json.dumps(spoken, default=_as_json, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except RowValueError as error:
        raise RowValueError(f"column {name}: {error}") from error


def _json_value(value: Any, kind: Any) -> Any:
    """A value as JSON has it: without numbers that JSON does not have; a map is an object, and what is null within a
    struct is left out."""
    import pyarrow as pa

    if value is None:
        return None
    if isinstance(value, float):
        return value if math.isfinite(value) else _WORDS.get(value, "NaN")
    if pa.types.is_struct(kind):
        return {each.name: _json_value(value[each.name], each.type) for each in kind if value[each.name] is not None}
    if pa.types.is_map(kind):
        return {_map_key(key): _json_value(each, kind.item_type) for key, each in value}
    return [_json_value(each, kind.value_type) for each in value] if isinstance(value, list) else value


def _map_key(key: object) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, int | float | Decimal):
        return str(key)
    if isinstance(key, date):  # a time, too
        return str(_as_json(key))
    raise RowValueError(
        f"a map's key of type {type(key).__name__} cannot be a name in JSON; use Spark's to_json and valueFormat raw"
    )


def _as_json(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return _number(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise RowValueError(
        f"a value of type {type(value).__name__} cannot be JSON; use Spark's to_json and valueFormat raw"
    )


def _number(value: Decimal) -> float | int:
    if value == value.to_integral_value():
        return int(value)
    if Decimal(repr(float(value))) != value:
        raise RowValueError(
            f"the number {value} within an array, struct or map has too many digits; use Spark's to_json and "
            "valueFormat raw"
        )
    return float(value)
