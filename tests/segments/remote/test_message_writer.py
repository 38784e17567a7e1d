"""Rows that go along with the call that publishes them; test_publish_calls publishes some."""

from __future__ import annotations

import pytest

from segments import Record
from segments.entries.columns import RecordColumns
from segments.entries.stored_entry import decode_entry
from segments.errors import BatchRefusedError
from segments.remote import message_writer
from segments.remote.message_writer import MessageWriter


async def test_rows_are_counted_and_keep_their_order_and_their_keys() -> None:
    writer = MessageWriter(("s", "id"), "staging")
    await writer.add(RecordColumns.of_records([Record(b"a", key=b"k"), Record(b"b")]), RecordColumns.of_values([]))
    rows = await writer.finish(RecordColumns.of_values([b"c"]))
    assert (rows.staging, rows.stream_id, rows.records, rows.ledger) == ("staging", "id", 3, None)
    entries = [decode_entry(entry, 0, at) for at, entry in enumerate(rows.entries)]
    assert [(entry.first_seq_no, entry.values()) for entry in entries] == [(0, [b"a", b"b"]), (2, [b"c"])]
    assert [record.key for record in entries[0].records()] == [b"k", None]


async def test_more_rows_than_a_batch_takes_are_refused_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_writer, "ENTRIES_BYTES", 1_000)
    writer = MessageWriter(("s", "id"), "staging")
    await writer.add(RecordColumns.of_values([bytes(500)]))
    with pytest.raises(BatchRefusedError, match=r"a gateway takes 1000: make batches smaller, or give tasks"):
        await writer.add(RecordColumns.of_values([bytes(500)]))
    await writer.abandon()
    assert (await writer.finish()).entries == ()
