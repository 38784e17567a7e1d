from __future__ import annotations

import pytest

from segments.entries.layout import BATCH, Columns
from segments.entries.sections import EntryBatch, PieceInfo, read_sections


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


def test_the_last_piece_knows_that_it_is() -> None:
    assert PieceInfo(2, 3, 9).is_last and not PieceInfo(1, 3, 9).is_last
