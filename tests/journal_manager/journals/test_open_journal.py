"""The functions of the front door, over memory."""

from __future__ import annotations

import pytest

from journal_manager import (
    JournalExistsError,
    UnknownSchemeError,
    format_journal,
    has_data,
    open_reader,
    open_snapshots,
    open_writer,
)
from journal_manager.backends.memory import MemoryHub
from journal_manager.edits import encode_batch


async def test_an_address_is_all_it_takes() -> None:
    hub = MemoryHub()
    await format_journal("mem:a/b", hub=hub)
    assert not await has_data("mem://a/b", hub=hub)
    async with await open_writer("mem:a/b", owner="me", hub=hub) as writer, await open_reader("mem:a/b", hub=hub) as r:
        segment = await writer.start_segment(1, 1)
        assert [segment.first for segment in await r.segments()] == [1]
        await segment.append(encode_batch(1, [(1, b"x")]))
        await writer.save_snapshot(1, [b"x"])
    async with await open_snapshots("mem:a/b", hub=hub) as snapshots:
        assert len(await snapshots.list()) == 1
    assert await has_data("mem:a/b", hub=hub)
    with pytest.raises(JournalExistsError):
        await format_journal("mem:a/b", hub=hub)


async def test_an_unknown_scheme_is_refused_everywhere() -> None:
    for call in (open_writer, open_reader, open_snapshots, format_journal, has_data):
        with pytest.raises(UnknownSchemeError):
            await call("nowhere:x")
