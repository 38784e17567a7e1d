"""Values as a user's columns: what fits is taken, what does not is an error or a row of nulls, and nothing moves."""

from __future__ import annotations

import io
import json
import math
from datetime import date
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spark_wal.data_source.columns import ValueFormatError, record_type
from spark_wal.data_source.options import DataSourceOptionError
from spark_wal.data_source.values import ValueColumns

AB = pa.schema([pa.field("a", pa.int64()), pa.field("b", pa.string())])


def records(*values: bytes) -> Any:
    return pa.record_batch({"seq_no": pa.array(range(len(values)), pa.int64()), "value": pa.array(values, pa.binary())})


def taken(schema: Any, *values: bytes, permissive: bool = False, value_format: str = "json") -> list[dict[str, Any]]:
    batch = ValueColumns(schema, value_format, permissive=permissive).convert(records(*values), "s")
    assert batch.schema.equals(schema)
    batch.validate(full=True)
    return list(batch.to_pylist())


@given(st.lists(st.fixed_dictionaries({"a": st.integers(-(2**63), 2**63 - 1) | st.none(), "b": st.text() | st.none()})))
def test_json_is_what_json_says(rows: list[dict[str, Any]]) -> None:
    assert taken(AB, *(json.dumps(row).encode() for row in rows)) == rows


PIECES = [
    b'{"a":',
    b'{"a":1}',
    b"}",
    b'{"a":{"a":1}',
    b" ",
    b'{"a":1}{"a":2}',
    b'{"a":"}',
    b"\n",
    b"",
    b",",
    b'{"a":3 }',
]


@example([b'{"a":1}{"a":2}', b" ", b'{"a":3}'])  # as many rows as values, and not one of each
@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=3).map(b"".join), min_size=1, max_size=4))
def test_a_value_is_never_completed_by_its_neighbour(values: list[bytes]) -> None:
    """What is wrong alone is wrong beside others; and what is right alone is the same row there."""
    schema = pa.schema([pa.field("a", pa.int64()), pa.field("_seq_no", pa.int64())])
    alone = [taken(pa.schema([schema.field("a")]), value, permissive=True)[0]["a"] for value in values]
    together = taken(schema, *values, permissive=True)
    assert [row["a"] for row in together] == alone
    assert [row["_seq_no"] for row in together] == list(range(len(values)))


def test_failfast_names_the_record() -> None:
    with pytest.raises(ValueFormatError, match=r"value of record 1 of stream s does not fit.*PERMISSIVE"):
        taken(AB, b'{"a": 1}', b'{"a": "x"}')


@pytest.mark.parametrize(
    "value", [b"", b"1", b"[1]", b"null", b"{", b'{"a": 1} {"a": 2}', b'{"a": 1.5}', b'{"b": "x\ny"}', b"\xff"]
)
def test_permissive_gives_nulls_and_keeps_the_bytes(value: bytes) -> None:
    schema = pa.schema([*AB, pa.field("_corrupt_record", pa.binary()), pa.field("_seq_no", pa.int64())])
    good, bad = taken(schema, b'{"a": 1, "b": "x", "c": 2}', value, permissive=True)
    assert good == {"a": 1, "b": "x", "_corrupt_record": None, "_seq_no": 0}
    assert bad == {"a": None, "b": None, "_corrupt_record": value, "_seq_no": 1}


def test_json_over_several_lines_is_one_value() -> None:
    assert taken(AB, b'{\n "a": 1,\n "b": "x"\n}\n', b'{"a": 2}') == [{"a": 1, "b": "x"}, {"a": 2, "b": None}]


def test_a_column_that_may_not_be_null_is_told() -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    with pytest.raises(ValueFormatError, match="column a is declared NOT NULL"):
        taken(schema, b'{"a": null}')


def test_dates_and_structs() -> None:
    schema = pa.schema([pa.field("d", pa.date32()), pa.field("s", pa.struct([("x", pa.list_(pa.int64()))]))])
    (row,) = taken(schema, b'{"d": "2026-11-27", "s": {"x": [1, 2]}}')
    assert (str(row["d"]), row["s"]) == ("2026-11-27", {"x": [1, 2]})


def test_bytes_are_base64_wherever_they_stand() -> None:
    """As ``to_json`` and ``valueFormat=json`` write them, and ``from_json`` reads them."""
    inner = pa.struct([("raw", pa.binary()), ("days", pa.list_(pa.date32()))])
    schema = pa.schema([pa.field("b", pa.binary()), pa.field("l", pa.list_(pa.binary())), pa.field("s", inner)])
    value = b'{"b": "AAH/", "l": ["AA==", null], "s": {"raw": "AQ==", "days": ["2026-11-27"]}}'
    one, nothing = taken(schema, value, b'{"s": null}')
    assert (one["b"], one["l"]) == (b"\0\1\xff", [b"\0", None])
    assert one["s"] == {"raw": b"\1", "days": [date(2026, 11, 27)]}
    assert nothing == {"b": None, "l": None, "s": None}
    with pytest.raises(ValueFormatError, match=r"value of record 1.*bytes are base64 in JSON, and 'A,' is not"):
        taken(schema, value, b'{"b": "A,"}')


def test_numbers_that_json_does_not_have_are_read_as_they_are_written() -> None:
    schema = pa.schema([pa.field("x", pa.float64()), pa.field("y", pa.float32()), pa.field("t", pa.string())])
    rows = taken(schema, b'{"x": "-Infinity", "y": 1.5, "t": "NaN"}', b'{"x": 2, "y": "NaN"}', b'{"x": 0.1}')
    assert [row["x"] for row in rows] == [-math.inf, 2.0, 0.1]
    assert (rows[0]["y"], rows[0]["t"], rows[2]["y"]) == (1.5, "NaN", None)
    assert math.isnan(rows[1]["y"])
    for other in (b'{"x": "1.5"}', b'{"x": "NaN", "y": true}', b'{"x": ' + b"[" * 100_000):
        assert taken(schema, other, permissive=True) == [{"x": None, "y": None, "t": None}]


def test_text_that_is_no_utf8_does_not_fit() -> None:
    schema = pa.schema([pa.field("b", pa.string())])
    with pytest.raises(ValueFormatError, match="value of record 1 of stream s does not fit"):
        taken(schema, '{"b": "é"}'.encode(), b'{"b": "\xff"}')


def test_what_cannot_be_read_is_refused_before_the_query_runs() -> None:
    with pytest.raises(DataSourceOptionError, match="column m is a map"):
        ValueColumns(pa.schema([pa.field("m", pa.map_(pa.string(), pa.string()))]), "json", permissive=False)
    with pytest.raises(DataSourceOptionError, match="needs the columns of your values"):
        ValueColumns(pa.schema([pa.field("_seq_no", pa.int64())]), "json", permissive=False)


RECORD = {
    "_stream": "s", "_position": {"segment": 1, "entry": 2, "slot": 3}, "_seq_no": 7, "_key": b"k", "_value": b"{}",
    "_headers": [("h", b"x")], "_event_time": None, "_append_time": None, "_txid": None,
}  # fmt: skip


def whole_record(key: bytes | None = b"k") -> Any:
    """A record with all columns, as a reader gives it."""
    columns = {
        name: pa.array([RECORD[f"_{name}"]], record_type(name)) for name in ("seq_no", "value", "headers", "txid")
    }
    columns |= {name: pa.array([number], pa.int64()) for number, name in enumerate(("segment", "entry", "slot"), 1)}
    columns |= {name: pa.array([None], pa.timestamp("ms", "UTC")) for name in ("event_time", "append_time")}
    return pa.record_batch(columns | {"key": pa.array([key], pa.binary())})


def test_columns_of_the_record_have_its_types_or_those_that_these_can_become() -> None:
    own = [pa.field(name, record_type(name[1:])) for name in RECORD]
    found = ValueColumns(pa.schema([pa.field("a", pa.int64()), *own]), "json", permissive=False).convert(
        whole_record(), "s"
    )
    assert found.to_pylist() == [{"a": None, **RECORD}]
    text = pa.schema([pa.field("a", pa.int64()), pa.field("_key", pa.string()), pa.field("_seq_no", pa.int32())])
    columns = ValueColumns(text, "json", permissive=False)
    assert columns.convert(whole_record(), "s").to_pylist() == [{"a": None, "_key": "k", "_seq_no": 7}]
    with pytest.raises(ValueFormatError, match="column _key of some records is not string"):
        columns.convert(whole_record(b"\xff"), "s")


@pytest.mark.parametrize(
    ("field", "said"),
    [
        (pa.field("_position", pa.string()), "column _position is position of the record, which is struct<.*as string"),
        (pa.field("_headers", pa.int64()), "column _headers is headers of the record"),
        (pa.field("_corrupt_record", pa.int64()), "it is STRING or BINARY"),
        (pa.field("_corrupt_record", pa.string(), nullable=False), "it is STRING or BINARY"),
    ],
)
def test_a_column_with_a_meaning_that_has_another_type_is_refused_before_the_query_runs(field: Any, said: str) -> None:
    with pytest.raises(DataSourceOptionError, match=said):
        ValueColumns(pa.schema([pa.field("a", pa.int64()), field]), "json", permissive=True)


@pytest.mark.parametrize("permissive", [True, False])
def test_a_column_of_the_record_that_may_not_be_null_is_told(permissive: bool) -> None:
    schema = pa.schema([pa.field("a", pa.int64()), pa.field("_key", pa.binary(), nullable=False)])
    columns = ValueColumns(schema, "json", permissive=permissive)
    assert columns.convert(whole_record(), "s").num_rows == 1
    with pytest.raises(ValueFormatError, match="column _key is declared NOT NULL, and some values have none"):
        columns.convert(whole_record(None), "s")


def ipc(rows: list[dict[str, Any]], schema: Any) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_table(pa.Table.from_pylist(rows, schema))
    return sink.getvalue()


def test_an_arrow_value_has_any_number_of_rows() -> None:
    schema = pa.schema([pa.field("a", pa.int64()), pa.field("_seq_no", pa.int64())])
    small = pa.schema([("a", pa.int32()), ("other", pa.int64())])
    values = [
        ipc([{"a": 1, "other": 0}, {"a": 2, "other": 0}], small),
        ipc([], small),
        ipc([{"a": 3, "other": 0}], small),
    ]
    rows = taken(schema, *values, value_format="arrow")
    assert rows == [{"a": 1, "_seq_no": 0}, {"a": 2, "_seq_no": 0}, {"a": 3, "_seq_no": 2}]
    assert taken(schema, value_format="arrow") == []


def test_an_arrow_value_that_does_not_fit() -> None:
    one = pa.schema([pa.field("a", pa.int64())])
    with pytest.raises(ValueFormatError, match="it has no column a"):
        taken(one, ipc([{"b": 1}], pa.schema([("b", pa.int64())])), value_format="arrow")
    with pytest.raises(ValueFormatError, match="record 0"):
        taken(one, b"no arrow", value_format="arrow")
    assert taken(one, b"no arrow", value_format="arrow", permissive=True) == [{"a": None}]
    for other in (pa.struct([("b", pa.int64())]), pa.list_(pa.int64())):
        value = ipc([{"a": None}], pa.schema([("a", other)]))
        with pytest.raises(ValueFormatError, match="record 0"):
            taken(one, value, value_format="arrow")
    twice = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, twice.schema) as writer:
        writer.write_table(twice)
    with pytest.raises(ValueFormatError, match="record 0"):
        taken(one, sink.getvalue(), value_format="arrow")
