"""Idle is told from stuck, and how far a reader is behind is told."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.errors import BookieUnavailableError, MetadataUnavailableError
from segments.read.reader_state import Activity
from tests.segments.read.built_stream import BuiltStream, simulated


def test_a_reader_is_reading_idle_stuck_or_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """SEG-78: a silent writer is idle; bookies or metadata that do not answer make a reader stuck."""

    async def story(stream: BuiltStream) -> None:
        await stream.segment(1)
        async with stream.reader(follow=True) as reader:
            assert (await reader.state()).activity is Activity.READING
            await reader.next_batch()
            assert await reader.next(timeout=1) is None
            state = await reader.state()
            assert state.activity is Activity.IDLE and "nobody writes" in state.reason
            await stream.start()
            assert await reader.next(timeout=3) is None
            state = await reader.state()
            assert state.activity is Activity.IDLE and "test writes to segment 2" in state.reason
            await stream.add(1)
            assert isinstance((await reader.next_batch())[0].seq_no, int)
            assert await reader.next(timeout=1) is None
            feed = reader._fetcher.feed
            assert feed is not None

            async def away() -> None:
                raise BookieUnavailableError("bookies are away")

            monkeypatch.setattr(feed.handle, "read_last_add_confirmed", away)
            state = await reader.state()
            assert state.activity is Activity.STUCK and "bookies are away" in state.reason
            monkeypatch.undo()

            async def no_store() -> None:
                raise MetadataUnavailableError("store is away")

            monkeypatch.setattr(stream.record, "read", no_store)
            state = await reader.state()
            assert state.activity is Activity.STUCK and "metadata" in state.reason
            monkeypatch.undo()
        async with stream.reader() as reader:
            async for _ in reader:
                pass
            assert (await reader.state()).activity is Activity.ENDED

    simulated(story)


def test_lag_in_records_bytes_and_time() -> None:
    async def story(stream: BuiltStream) -> None:
        await stream.segment(10, 10)
        await stream.start()
        await stream.add(5)
        async with stream.reader(follow=True) as reader:
            lag = await reader.lag()
            assert lag.records == 25 and lag.bytes > 0 and lag.seconds is None
            await reader.next_batch(4)
            await asyncio.sleep(1)
            lag = await reader.lag()
            assert lag.records == 21 and lag.seconds is not None
            while await reader.next(timeout=1) is not None:
                pass
            assert await reader.lag() == (0, 0, 0.0)

    simulated(story)
