from __future__ import annotations

import pytest

from segments.entries.layout import BATCH, ONE_BATCH, Columns
from segments.entries.sections import EntryBatch, PieceInfo, only_value, read_sections


def body(records: int = 1, *, names: bytes = b"", claimed: int | None = None) -> bytes:
    count = records if claimed is None else claimed
    head = BATCH.pack(count, len(names), 0, 0, 0) + names + bytes(-len(names) % 8)
    offsets = bytes(4 * (records + 1))
    return head + offsets + bytes(-len(offsets) % 8)


def test_the_columns_are_found() -> None:
    found = read_sections(memoryview(body(3)), Columns(0), 3, 1)
    assert found.batches == (EntryBatch(3),) and len(found.values.offsets) == 16 and not found.has_producers


@pytest.mark.parametrize(
    ("data", "flags", "what"),
    [
        (body(3)[:-8], Columns(0), "cut short"),
        (body(3) + bytes(8), Columns(0), "its columns"),
        (body(3, claimed=2), Columns(0), "do not have 3 records"),
        (body(3), Columns.TXIDS, "cut short"),
        (body(3), Columns.KEYS, "cut short"),
        (body(3), Columns.EVENT_NULLS, "cut short"),
    ],
)
def test_a_body_that_is_none_is_refused(data: bytes, flags: Columns, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        read_sections(memoryview(data), flags, 3, 1)


def _one(*, records: int = 1, name: int = 0, flags: int = 0, begin: int = 0, end: int = 5) -> bytes:
    return ONE_BATCH.pack(records, name, flags, 0, 0, begin, end) + b"value" + bytes(3)


def test_the_value_of_one_record_is_found_without_sections() -> None:
    assert only_value(_one()) == b"value" == only_value(memoryview(_one(end=5)))
    assert only_value(ONE_BATCH.pack(1, 0, 0, 0, 0, 0, 0)) == b""


@pytest.mark.parametrize(
    "data",
    [
        b"",
        _one()[:31],
        _one()[:-1],
        _one() + bytes(8),
        _one(records=2),
        _one(name=1),
        _one(flags=1),
        _one(begin=1),
        _one(end=9),
        _one(end=-1),
        _one(end=0),
    ],
)
def test_a_body_of_more_than_a_value_or_a_damaged_one_is_left_to_its_sections(data: bytes) -> None:
    assert only_value(data) is None


def test_the_last_piece_knows_that_it_is() -> None:
    assert PieceInfo(2, 3, 9).is_last and not PieceInfo(1, 3, 9).is_last
