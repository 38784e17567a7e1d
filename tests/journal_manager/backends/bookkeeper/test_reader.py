"""Reading a journal from ledgers."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.errors import DigestMismatchError
from journal_manager import JournalCorruptionError, SegmentNotFoundError, TxId, open_reader, open_writer
from tests.contracts.journal_backend import batch, txids, write_segment
from tests.journal_manager.backends.bookkeeper.fake import Cluster


async def test_the_entry_of_an_edit_is_found_without_reading_what_is_before_it() -> None:
    cluster = Cluster()
    writer = await open_writer("bk:edits", client=cluster.client())
    await write_segment(writer, 1, 256, batches_of=2)
    reader = await open_reader("bk:edits", client=cluster.client())
    cluster.steps.clear()
    assert await txids(reader, 250) == list(range(250, 257))
    assert cluster.steps.count("read") <= 8 + 4


@pytest.mark.rule("C8")
async def test_a_reader_never_opens_with_recovery() -> None:
    cluster = Cluster()
    writer = await open_writer("bk:edits", client=cluster.client())
    segment = await writer.start_segment(TxId(1), 1)
    await segment.append(batch(1))
    reader = await open_reader("bk:edits", client=cluster.client())
    assert await txids(reader) == [1]
    await reader.close()
    assert "recovered" not in cluster.steps


async def test_a_ledger_that_is_gone_and_one_that_is_damaged_are_told_apart() -> None:
    cluster = Cluster()
    writer = await open_writer("bk:edits", client=cluster.client())
    await write_segment(writer, 1, 2)
    cluster.fail_at = ("read", DigestMismatchError("every copy"))
    with pytest.raises(JournalCorruptionError):
        await txids(writer)
    cluster.ledgers.clear()
    with pytest.raises(SegmentNotFoundError):
        await txids(writer)


async def test_news_of_the_record_and_of_an_open_ledger_end_the_wait() -> None:
    cluster = Cluster()
    writer = await open_writer("bk:edits", client=cluster.client())
    segment = await writer.start_segment(TxId(1), 1)
    await segment.append(batch(1))
    reader = await open_reader("bk:edits", client=cluster.client())
    assert await txids(reader) == [1]
    waiting = asyncio.create_task(reader.changed(60))
    await asyncio.sleep(0)
    await segment.append(batch(2))
    await waiting
    await segment.close()
    waiting = asyncio.create_task(reader.changed(60))
    await asyncio.sleep(0)
    await writer.finalize_segment(TxId(1), TxId(2))
    await waiting
    await reader.changed(0)
