"""Following a journal."""

from __future__ import annotations

import asyncio

import pytest

from journal_manager import JournalGapError, TxId, open_reader, open_writer
from journal_manager.backends.memory import MemoryHub
from journal_manager.read import tail
from tests.contracts.journal_backend import batch, write_segment


async def test_a_tail_waits_for_news_and_ends_when_told() -> None:
    hub, stop, seen = MemoryHub(), asyncio.Event(), list[int]()
    writer = await open_writer("mem:x", hub=hub)
    reader = await open_reader("mem:x", hub=hub)

    async def follow() -> None:
        async for op in tail(reader, TxId(2), stop=stop):
            seen.append(op.txid)
            if op.txid == 5:
                stop.set()

    following = asyncio.create_task(follow())
    await write_segment(writer, 1, 3)
    segment = await writer.start_segment(TxId(4), 1)
    await segment.append(batch(4, 4))
    await following
    assert seen == [2, 3, 4, 5]


async def test_segments_in_progress_can_be_left_out() -> None:
    hub = MemoryHub()
    writer = await open_writer("mem:x", hub=hub)
    following = tail(writer, TxId(1), in_progress=False)
    segment = await writer.start_segment(TxId(1), 1)
    await segment.append(batch(1))
    waiting = asyncio.ensure_future(anext(following))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not waiting.done()
    await segment.close()
    await writer.finalize_segment(TxId(1), TxId(1))
    assert (await waiting).txid == 1
    await following.aclose()


@pytest.mark.rule("C6")
async def test_a_purge_behind_a_reader_is_told() -> None:
    hub = MemoryHub()
    writer = await open_writer("mem:x", hub=hub)
    for first in (1, 2):
        await write_segment(writer, first, first)
    await writer.purge(TxId(2))
    with pytest.raises(JournalGapError):
        await anext(tail(writer, TxId(1)))
