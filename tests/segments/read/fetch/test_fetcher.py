"""Fetching across segments: what is ready, when it waits, when it has ended. (test_reader tells the stories.)"""

from __future__ import annotations

import asyncio
from math import inf

import pytest

from segments.errors import StreamClosedError
from segments.position import EARLIEST, Position
from segments.read.batches.record_batch import EntrySlice
from segments.read.fetch.fetcher import StreamFetcher
from segments.read.options import ReadOptions
from segments.record import StoredRecord
from tests.segments.read.built_stream import BuiltStream, simulated


def test_it_makes_entries_ready_and_ends_at_the_end() -> None:
    async def story(stream: BuiltStream) -> None:
        await stream.segment(3, 2)
        fetcher = StreamFetcher(stream.source, stream.locator, Position(1, 0, 1), ReadOptions())
        assert fetcher.quiet_since is None and fetcher.machine.position == Position(1, 0, 1)
        assert await fetcher.fetch(None)
        first, second = fetcher.machine.ready.take(100, inf, at_least_one=True)
        assert isinstance(first, EntrySlice) and (first.a, first.b) == (1, 3)
        assert isinstance(second, EntrySlice) and (second.a, second.b) == (0, 2)
        fetcher.machine.ready.clear()
        assert not await fetcher.fetch(None) and (fetcher.machine.ended, fetcher.machine.caught_up) == (True, True)
        await fetcher.seek(EARLIEST)
        assert await fetcher.fetch(0) and (fetcher.machine.ended,) == (False,)
        await fetcher.close()
        with pytest.raises(StreamClosedError):
            await fetcher.fetch(0)

    simulated(story)


def test_only_the_wanted_parts_become_ready() -> None:
    """SEG-90: a cursor's reader passes what is acknowledged already."""

    async def story(stream: BuiltStream) -> None:
        await stream.segment(5, 5)
        wanted = {1, 2, 4, 5, 9}

        def parts(first: int, end: int) -> list[tuple[int, int]]:
            return [(n, n + 1) for n in range(first, end) if n in wanted]

        fetcher = StreamFetcher(stream.source, stream.locator, EARLIEST, ReadOptions(), lambda: parts)
        await fetcher.fetch(None)
        found = [item.entry.first_seq_no + item.a for item in fetcher.machine.ready.take(100, inf, at_least_one=True)]
        assert found == sorted(wanted)
        await fetcher.close()

    simulated(story)


def test_no_ledger_is_open_while_there_is_no_segment() -> None:
    async def story(stream: BuiltStream) -> None:
        fetcher = StreamFetcher(stream.source, stream.locator, EARLIEST, ReadOptions(follow=True))
        loop = asyncio.get_running_loop()
        began = loop.time()
        assert not await fetcher.fetch(3)
        assert 2.9 < loop.time() - began < 3.5 and (fetcher.feed,) == (None,)
        await stream.segment(1)
        assert await fetcher.fetch(3) and fetcher.feed is not None
        fetcher.machine.ready.clear()
        assert not await fetcher.fetch(1) and fetcher.machine.caught_up
        await fetcher.close()

    simulated(story)


def test_a_reader_rests_and_wakes_with_the_next_record() -> None:
    """SEG-76: the ledger is closed while nothing happens; the next record comes within milliseconds."""

    async def story(stream: BuiltStream) -> None:
        await stream.start()
        await stream.add(1)
        async with stream.reader(follow=True, rest_after_s=2.0) as reader:
            await reader.next_batch()
            loop = asyncio.get_running_loop()
            for n in range(1, 4):
                for _ in range(2):
                    assert await reader.next(timeout=40) is None
                assert reader._fetcher.feed is None and len(stream.client.quiet_ledgers) == 1
                waiting = asyncio.create_task(reader.next())
                await asyncio.sleep(1)
                began = loop.time()
                await stream.add(1)
                record = await waiting
                assert isinstance(record, StoredRecord) and record.seq_no == n
                assert loop.time() - began < 0.1
                assert len(stream.client.quiet_ledgers) == 0
            assert await reader.next(timeout=10) is None
        assert len(stream.client.quiet_ledgers) == 0

    simulated(story)


def test_a_resting_reader_notices_rolls_take_overs_seals_and_deletion() -> None:
    """SEG-61: whatever ends the segment ends the rest."""

    async def story(stream: BuiltStream) -> None:
        await stream.start()
        await stream.add(1)
        async with stream.reader(follow=True, rest_after_s=1.0) as reader:
            await reader.next_batch()
            assert await reader.next(timeout=20) is None
            waiting = asyncio.create_task(reader.next())
            await asyncio.sleep(1)
            await stream.complete()
            await stream.segment(1)
            record = await waiting
            assert isinstance(record, StoredRecord) and record.seq_no == 1
            await stream.start()
            assert await reader.next(timeout=20) is None
            ledger = (await stream.chain()).segments[-1].ledger_id
            async with await stream.client.open_ledger(ledger, None):
                pass  # another owner recovers it
            waiting = asyncio.create_task(reader.next())
            await asyncio.sleep(1)
            await stream.change(lambda chain: chain.complete(3, stream.contents(), 1).seal())
            assert await waiting is None and reader.ended

    simulated(story)


def test_with_a_crowd_a_reader_rests_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(stream: BuiltStream) -> None:
        monkeypatch.setattr("segments.read.source.stream_source.CROWD", 0)
        await stream.start()
        await stream.add(1)
        async with stream.reader(follow=True) as reader:
            await reader.next_batch()
            assert await reader.next(timeout=1.5) is None
            assert reader._fetcher.feed is None and len(stream.client.quiet_ledgers) == 1
            state = await reader.state()
            assert state.activity.value == "idle"
            await stream.add(1)
            assert isinstance(await reader.next(timeout=1), StoredRecord)

    simulated(story)
