"""Streams in which nothing happens are followed without an open ledger, and still at once."""

from __future__ import annotations

import asyncio

import pytest

from segments.record import StoredRecord
from tests.segments.read.built_stream import BuiltStream, simulated


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
            async with await stream.client.open_ledger(ledger):
                pass  # another owner recovers it
            waiting = asyncio.create_task(reader.next())
            await asyncio.sleep(1)
            await stream.change(lambda chain: chain.complete(3, stream.contents(), 1).seal())
            assert await waiting is None and reader.ended

    simulated(story)


def test_with_a_crowd_a_reader_rests_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(stream: BuiltStream) -> None:
        monkeypatch.setattr("segments.read.stream_source.CROWD", 0)
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
