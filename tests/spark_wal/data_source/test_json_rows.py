"""Columns as JSON objects: each kind of column against Python's own JSON, and what JSON has no word for."""

from __future__ import annotations

import json
import math
import random
import struct
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from spark_wal.data_source.json_rows import RowValueError, json_objects


def objects(**columns: pa.Array) -> list[bytes]:
    batch = pa.record_batch(columns)
    found: list[bytes] = json_objects(batch, list(columns)).to_pylist()
    return found


def texts(column: pa.Array) -> list[str]:
    """What a column becomes, in objects that have nothing else; nulls are left out."""
    whole = objects(x=column)
    assert all(each == b"{}" or (each.startswith(b'{"x":') and each.endswith(b"}")) for each in whole)
    return [each[5:-1].decode() for each in whole]


def test_nulls_are_left_out_wherever_they_stand() -> None:
    columns = {
        "a": pa.array([1, None, 3, None], pa.int64()),
        "b": pa.array([None, True, False, None], pa.bool_()),
        "c": pa.array([None, None, "x", None], pa.string()),
        "d": pa.nulls(4, pa.string()),
    }
    assert objects(**columns) == [b'{"a":1}', b'{"b":true}', b'{"a":3,"b":false,"c":"x"}', b"{}"]
    assert objects(d=columns["d"]) == [b"{}"] * 4


def test_of_a_slice_only_its_rows() -> None:
    batch = pa.record_batch({"a": pa.array(range(9), pa.int32()), "b": pa.array(["x", None, 'q"'] * 3)}).slice(4, 2)
    assert json_objects(batch, ["a", "b"]).to_pylist() == [b'{"a":4}', b'{"a":5,"b":"q\\""}']


def test_a_name_is_escaped_as_a_value_is() -> None:
    assert objects(**{'a"b\n': pa.array([1], pa.int8())}) == [b'{"a\\"b\\n":1}']


@pytest.mark.parametrize("large", [False, True])
def test_text_is_what_json_says(large: bool) -> None:
    some = random.Random(7)
    letters = [*map(chr, range(0x30)), "\\", "\x7f", "\u2028", "é", "\U0001f600", *"abcdefgh"]
    values = [None if some.random() < 0.2 else "".join(some.choices(letters, k=some.randrange(5))) for _ in range(500)]
    found = objects(x=pa.array(values, pa.large_string() if large else pa.string()))
    assert found == [
        b"{}" if each is None else json.dumps({"x": each}, ensure_ascii=False, separators=(",", ":")).encode()
        for each in values
    ]


def test_numbers_come_back_as_they_were() -> None:
    some = random.Random(7)
    bits = [struct.unpack("<d", some.randbytes(8))[0] for _ in range(500)]
    whole = [0.0, -0.0, 1.0, -7.0, 1e15, 1e16, 1e22, -1e300, 5e-324, 1e-5, 0.1 + 0.2]
    values = [*whole, None, *(each for each in bits if math.isfinite(each))]
    found = [json.loads(each).get("x") for each in objects(x=pa.array(values, pa.float64()))]
    assert [None if each is None else (each, type(each)) for each in found] == [
        None if each is None else (each, float) for each in values
    ]


def test_numbers_that_json_does_not_have_are_text() -> None:
    column = pa.array([1.0, float("nan"), None, float("inf"), float("-inf"), -0.5], pa.float64())
    assert texts(column) == ["1.0", '"NaN"', "", '"Infinity"', '"-Infinity"', "-0.5"]
    nested = pa.array([[1.0, float("nan")], [float("-inf")]], pa.list_(pa.float64()))
    assert texts(nested) == ['[1.0,"NaN"]', '["-Infinity"]']


def test_a_single_float_has_no_digits_that_it_was_not_given() -> None:
    assert texts(pa.array([0.1, 16777216.0], pa.float32())) == ["0.1", "16777216.0"]


def test_decimals_keep_all_their_digits() -> None:
    many = Decimal("12345678901234567890.123456789")
    found = texts(pa.array([many, Decimal("1.5"), None], pa.decimal128(38, 9)))
    assert [Decimal(each) for each in found if each] == [many, Decimal("1.5")]
    within = pa.array([[Decimal("1.5"), Decimal("7")]], pa.list_(pa.decimal128(38, 9)))
    assert texts(within) == ["[1.5,7]"]
    with pytest.raises(RowValueError, match=r"column x: the number 12345678901234567890\.123456789 within an array"):
        texts(pa.array([[many]], pa.list_(pa.decimal128(38, 9))))


@pytest.mark.parametrize("zone", [None, "UTC", "Etc/UTC"])
def test_times_are_cut_to_the_millisecond_before(zone: str | None) -> None:
    some, first = random.Random(7), datetime(1, 1, 1)
    values = [first, datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(1969, 12, 31, 23, 59, 59, 999999), None]
    values += [
        first + timedelta(days=some.randrange(3_652_000), microseconds=some.randrange(10**11)) for _ in range(200)
    ]
    given_values = [None if each is None or zone is None else each.replace(tzinfo=UTC) for each in values]
    column = pa.array(values if zone is None else given_values, pa.timestamp("us", zone))
    assert texts(column) == [
        "" if each is None else f'"{each.isoformat(timespec="milliseconds")}{"" if zone is None else "Z"}"'
        for each in values
    ]


def test_times_of_another_zone_have_its_offset() -> None:
    noon = datetime(2026, 1, 2, 12, 0, 0, 999, tzinfo=ZoneInfo("Europe/Berlin"))
    assert texts(pa.array([noon], pa.timestamp("us", "Europe/Berlin"))) == ['"2026-01-02T12:00:00.000+01:00"']


def test_dates_bytes_and_what_consists_of_others() -> None:
    assert texts(pa.array([date(2026, 1, 2), date(1, 1, 1)], pa.date32())) == ['"2026-01-02"', '"0001-01-01"']
    assert texts(pa.array([b"\x00\xff", b""], pa.binary())) == ['"AP8="', '""']
    inner = pa.struct([("when", pa.timestamp("us", "UTC")), ("day", pa.date32()), ("raw", pa.binary())])
    row = {"when": datetime(2026, 1, 2, tzinfo=UTC), "day": date(2026, 1, 2), "raw": b"a"}
    assert texts(pa.array([row, None], inner)) == [
        '{"when":"2026-01-02T00:00:00.000Z","day":"2026-01-02","raw":"YQ=="}',
        "",
    ]


def test_maps_are_objects_and_nulls_within_structs_are_left_out() -> None:
    """As ``to_json`` writes them; a null within a map or an array stays."""
    inner = pa.struct([("q", pa.map_(pa.int32(), pa.float64())), ("n", pa.int32())])
    names = pa.array([[("a", 1), ("b", None)], [], None], pa.map_(pa.string(), pa.int64()))
    assert texts(names) == ['{"a":1,"b":null}', "{}", ""]
    nested = pa.array([[{"q": [(1, math.nan)], "n": None}, None]], pa.list_(inner))
    assert texts(nested) == ['[{"q":{"1":"NaN"}},null]']
    days = pa.array([[(date(2026, 1, 2), [("x", True)])]], pa.map_(pa.date32(), pa.map_(pa.string(), pa.bool_())))
    assert texts(days) == ['{"2026-01-02":{"x":true}}']
    assert texts(pa.array([[(True, 1)]], pa.map_(pa.bool_(), pa.int8()))) == ['{"true":1}']


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (pa.array([[(b"k", 1)]], pa.map_(pa.binary(), pa.int8())), "column x: a map's key of type bytes cannot be"),
        (pa.array([timedelta(1)], pa.duration("us")), "column x: a value of type timedelta cannot be JSON"),
        (pa.array([b"\xff"], pa.binary()).view(pa.string()), "a value of column x is no UTF-8"),
    ],
)
def test_what_cannot_be_json_is_refused_with_its_column(column: Any, said: str) -> None:
    with pytest.raises(RowValueError, match=said):
        objects(x=column)
