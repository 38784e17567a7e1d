"""What the codec cuts of a connection's bytes, and what storage makes of a single entry, are the same to storage."""

from __future__ import annotations

from types import ModuleType

import pytest

from bookkeeper.codec.shapes import RECORD_HEADER
from bookkeeper.storage.updates.record_runs import EntryRecords, RecordRun, one_record
from tests.bookkeeper.codec.codecs import CODECS, KEY, adds


def described(run: RecordRun, batch: EntryRecords) -> tuple[object, ...]:
    """All that storage asks of them."""
    begin = batch.record_ends[run.i0 - 1] if run.i0 else batch.record_start
    return (
        run.ledger_id,
        run.master_key,
        run.lac,
        run.contiguous,
        list(batch.entry_ids[run.i0 : run.i1]),
        bytes(memoryview(batch.records)[begin : batch.record_ends[run.i1 - 1]]),
    )


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("payload", [b"", b"x", b"y" * 70_000])
def test_one_entry_is_what_the_codec_makes_of_its_add(codec: ModuleType, payload: bytes) -> None:
    chunk = adds(2, ledger_id=2**40 + 7, first=12, many=[payload], lac=11)
    batch = codec.split_adds(chunk, 0, len(chunk))
    entry = bytes(batch.records)[batch.record_start + RECORD_HEADER : batch.record_ends[0]]
    assert described(*one_record(entry, KEY)) == described(batch.runs[0], batch)
