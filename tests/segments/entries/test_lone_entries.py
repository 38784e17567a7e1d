"""A run of lone entries answers as its entries do one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segments.entries.arrow import record_batch
from segments.entries.columns import RecordColumns
from segments.entries.entry import encode_entry
from segments.entries.lone_entries import LoneEntries
from segments.entries.stored_entry import decode_entry
from segments.position import Position

SEGMENT, ENTRY, BASE = 4, 20, 1000


def payloads(values: list[bytes]) -> list[bytes]:
    return [
        encode_entry(RecordColumns.of_values([value]), first_seq_no=n, append_ms=50 * n)
        for n, value in enumerate(values)
    ]


def run_of(stored: list[bytes], at: int = 0, expected: int | None = None) -> LoneEntries:
    found = LoneEntries.found(stored, at, SEGMENT, ENTRY, expected, BASE)
    assert found is not None
    return found


@given(st.lists(st.binary(max_size=30), min_size=2, max_size=9), st.integers(0, 9), st.integers(0, 9))
def test_it_answers_as_its_entries(values: list[bytes], a: int, b: int) -> None:
    stored = payloads(values)
    run = run_of(stored)
    entries = [decode_entry(each, SEGMENT, ENTRY + n, BASE) for n, each in enumerate(stored)]
    chosen = entries[a:b]
    assert run.count == len(values) and run.first_seq_no == BASE and run.size == sum(e.size for e in entries)
    assert run.records(a, b) == [record for entry in chosen for record in entry.records()]
    assert run.values(a, b) == [entry.values()[0] for entry in chosen]
    assert run.keys(a, b) == [None] * len(chosen)
    assert run.txids(a, b) == [None] * len(chosen)
    assert run.headers(a, b) == [{}] * len(chosen)
    assert run.share(a, b) == sum(entry.size for entry in chosen)
    assert [vars(e) for e in run.entries(a, b)] == [vars(e) for e in chosen]
    for slot, entry in enumerate(entries):
        assert run.record(slot) == entry.records()[0]
        assert run.position(slot) == entry.position(0)
        assert run.appended_ms(slot) == entry.append_ms
    assert run.position(run.count) == Position(SEGMENT, ENTRY + run.count, 0)
    assert run.records() == run.records(0, run.count)


def test_one_record_at_a_time_is_the_same_across_runs_of_them() -> None:
    run = run_of(payloads([b"%d" % n for n in range(600)]))
    assert [run.record(slot) for slot in range(600)] == run.records()
    assert run.record(3) == run.records()[3]


def test_arrow_has_the_same_columns() -> None:
    pa = pytest.importorskip("pyarrow")
    stored = payloads([b"a", b"", b"ccc", b"dd"])
    run = run_of(stored)
    one_by_one = pa.Table.from_batches(
        [record_batch(decode_entry(each, SEGMENT, ENTRY + n, BASE)) for n, each in enumerate(stored)]
    )
    whole = record_batch(run)
    whole.validate(full=True)
    assert pa.Table.from_batches([whole]) == one_by_one
    assert pa.Table.from_batches([record_batch(run, 1, 3)]) == one_by_one.slice(1, 2)
    assert record_batch(run, 2, columns=("value", "seq_no")).to_pydict() == {
        "value": [b"ccc", b"dd"],
        "seq_no": [1002, 1003],
    }


def test_there_is_none_of_fewer_than_two() -> None:
    stored = payloads([b"a", b"b", b"c"])
    assert LoneEntries.found(stored, 2, SEGMENT, ENTRY, None, BASE) is None
    assert LoneEntries.found(stored[:1], 0, SEGMENT, ENTRY, None, BASE) is None
    assert LoneEntries.found([stored[0], stored[2]], 0, SEGMENT, ENTRY, None, BASE) is None
    assert LoneEntries.found(tuple(stored), 0, SEGMENT, ENTRY, None, BASE) is None
    assert LoneEntries.found(stored, 0, SEGMENT, ENTRY, BASE + 1, BASE) is None
    assert LoneEntries.found(stored, 0, SEGMENT, ENTRY, BASE - 1, BASE) is None
    assert run_of(stored, 1, BASE + 1).first_seq_no == BASE + 1


def test_parts_have_about_so_many_bytes() -> None:
    run = run_of(payloads([bytes(8)] * 10))
    each = run.size // 10
    assert list(run.parts(1, 8, 3 * each)) == [(1, 4), (4, 7), (7, 8)]
    assert list(run.parts(0, 2, 0)) == [(0, 1), (1, 2)]
    assert list(run.parts(0, 10, 1 << 30)) == [(0, 10)]
