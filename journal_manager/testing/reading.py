"""The contract of journal backends: what readers get, and whom they disturb (J4, J6)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from journal_manager import (
    JournalGapError,
    TxId,
    UnsupportedCapabilityError,
    capability,
    format_journal,
)
from journal_manager.edits import encode_batch
from journal_manager.journals.capabilities import DescribableReader, Upgrade
from journal_manager.read import read_ops, tail
from journal_manager.testing.journal import NAMESPACE, Journal, batch, txids, write_segment


class ReadingContract:
    """Every durable edit, in order, from anywhere."""

    @pytest.mark.rule("J4", "C4")
    async def test_j4_reading_may_begin_at_any_edit(self, journal: Journal) -> None:
        writer = await journal.writer()
        for first in range(1, 31, 10):
            await write_segment(writer, first, first + 9, batches_of=4)
        segment = await writer.start_segment(TxId(31), 1)
        await segment.append(batch(31, 3))
        await segment.append(batch(34, 2))
        reader = await journal.reader()
        for start in range(1, 36):
            assert await txids(reader, start, 33) == list(range(start, 34))
            assert await txids(reader, start, in_progress=False) == list(range(start, 31))
        assert await txids(reader, 31, 30) == []
        assert await txids(reader, 500) == [], "nobody but its writer knows where an open segment ends"

    @pytest.mark.rule("J4", "C4")
    async def test_j4_reading_from_beyond_the_end_is_a_gap(self, journal: Journal) -> None:
        writer = await journal.writer()
        assert await txids(writer) == []
        with pytest.raises(JournalGapError):
            await txids(writer, 2)
        await write_segment(writer, 1, 3)
        reader = await journal.reader()
        for each in (reader, writer):
            assert await txids(each, 4) == [] and await txids(each, 4, 3) == []
            with pytest.raises(JournalGapError, match="no edit after 3") as caught:
                await txids(each, 5)
            assert (caught.value.wanted, caught.value.next_available) == (5, None)
        log = await journal.log()
        await log.log(b"4")
        with pytest.raises(JournalGapError, match="no edit after 4"):
            await anext(log.read(6))

    @pytest.mark.rule("J4", "C4", "C7")
    async def test_j4_an_end_that_is_not_there_is_a_gap(self, journal: Journal) -> None:
        writer = await journal.writer()
        await write_segment(writer, 1, 3)
        with pytest.raises(JournalGapError) as caught:
            await txids(writer, 2, 5)
        assert caught.value.wanted == 4

    async def test_a_long_segment_of_large_batches_is_read_back(self, journal: Journal) -> None:
        writer = await journal.writer()
        segment = await writer.start_segment(TxId(1), 1)
        for first in range(1, 13):
            await segment.append(encode_batch(TxId(first), [(1, bytes([first]) * 700_000)]))
        await segment.close()
        await writer.finalize_segment(TxId(1), TxId(12))
        sizes = [(op.txid, op.body == bytes([op.txid]) * 700_000) async for op in read_ops(writer, TxId(1))]
        assert sizes == [(txid, True) for txid in range(1, 13)]

    async def test_many_edits_in_one_segment_and_many_segments_are_read_back(self, journal: Journal) -> None:
        writer = await journal.writer()
        await write_segment(writer, 1, 10_000, batches_of=500)
        for first in range(10_001, 10_101):
            await write_segment(writer, first, first)
        reader = await journal.reader()
        assert len(await reader.segments()) == 101
        assert await txids(reader) == list(range(1, 10_101))
        assert (await journal.writer()).recovery.last_txid == 10_100

    @pytest.mark.rule("J6", "C8")
    async def test_j6_a_reader_disturbs_nobody(self, journal: Journal) -> None:
        writer = await journal.writer()
        segment = await writer.start_segment(TxId(1), 1)
        await segment.append(batch(1, 2))
        reader = await journal.reader()
        assert set(await txids(reader)) <= {1, 2}
        assert [s.in_progress for s in await reader.segments()] == [True]
        await segment.append(batch(3))
        await segment.close()
        await writer.finalize_segment(TxId(1), TxId(3))
        assert await txids(reader) == [1, 2, 3]
        assert not {"append", "start_segment", "finalize_segment", "purge", "discard_segment"} & set(dir(reader))

    @pytest.mark.rule("J6", "C4", "C8")
    async def test_j6_a_tail_follows_rolls_and_takeovers(self, journal: Journal) -> None:
        log = await journal.log("one")
        await log.log(b"1")
        stop = asyncio.Event()
        seen: list[tuple[int, bytes]] = []
        reader = await journal.reader()

        async def follow() -> None:
            async for op in tail(reader, TxId(1), poll_s=0.2, stop=stop):
                seen.append((op.txid, op.body))
                if op.txid == 7:
                    return

        following = asyncio.create_task(follow())
        await log.log(b"2")
        await log.roll()
        await log.log(b"3")
        other = await journal.log("two")
        await other.log_group([(0, b"4"), (0, b"5")])
        await other.roll()
        await other.log(b"6")
        await other.log(b"7")
        await asyncio.wait_for(following, 30)
        assert seen == [(txid, b"%d" % txid) for txid in range(1, 8)]

    async def test_a_reader_says_whose_journal_it_is_or_it_cannot(self, journal: Journal) -> None:
        await format_journal(journal.uri, namespace=NAMESPACE, **journal.options)
        writer = await journal.writer("its owner")
        reader = await journal.reader()
        if not isinstance(reader, DescribableReader):
            with pytest.raises(UnsupportedCapabilityError):
                capability(reader, DescribableReader)  # type: ignore[type-abstract]
            return
        found = await reader.describe()
        assert (found.namespace, found.token, found.upgraded_at) == (NAMESPACE, writer.token, None)
        if isinstance(writer, Upgrade):
            await write_segment(writer, 1, 3)
            await writer.begin_upgrade(replace(NAMESPACE, layout_version=2))
            found = await reader.describe()
            assert (found.namespace.layout_version, found.upgraded_at) == (2, 3)
