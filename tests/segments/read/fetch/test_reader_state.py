"""Idle is told from stuck, and how far a reader is behind is told."""

from __future__ import annotations

import asyncio
from math import inf

import pytest

from bookkeeper.errors import BookieUnavailableError, MetadataUnavailableError
from segments.errors import StreamNotFoundError
from segments.position import EARLIEST, LATEST, Position
from segments.read import StreamReading
from segments.read.fetch.fetcher import StreamFetcher
from segments.read.fetch.reader_state import Activity, idle_error, wait_deadline
from segments.seek import AtSeqNo
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

            monkeypatch.setattr(stream.node, "read", no_store)
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
            await reader.seek(AtSeqNo(5))
            lag = await reader.lag()
            assert (lag.records, lag.seconds) == (20, None), "when the record before its new place came is unknown"
        async with stream.reader(AtSeqNo(21)) as reader:
            assert (await reader.lag()).records == 4, "also before its first read"
            await stream.change(lambda chain: chain.truncate(Position(2, 0, 0), 20))
            assert (await reader.lag()).records == 4
        async with stream.reader(Position(1, 0, 0)) as reader:
            assert (await reader.lag()).records == 5, "what is truncated is nobody's"

    simulated(story)


def test_what_a_reader_elsewhere_can_be_doing_is_told_from_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(stream: BuiltStream) -> None:
        reading = StreamReading(stream.client, stream.node, stream._no_cursor)
        assert await reading.activity(EARLIEST) == (Activity.IDLE, "no segment is open: nobody writes to the stream")
        await stream.segment(3)
        await stream.start()
        await stream.add(2)
        assert await reading.activity(EARLIEST) == (Activity.READING, "there are records to hand out")
        assert (await reading.activity(AtSeqNo(4)))[0] is Activity.READING
        end = (await stream.locator.end()).position
        for place in (LATEST, end, AtSeqNo(5), Position(2, 0, 2)):
            activity, reason = await reading.activity(place)
            assert activity is Activity.IDLE and reason == "test writes to segment 2, and has added nothing"
        client = stream.client

        async def away(*arguments: object, **options: object) -> None:
            raise BookieUnavailableError("bookies are away")

        monkeypatch.setattr(client, "open_ledger", away)
        activity, reason = await reading.activity(end)
        assert activity is Activity.STUCK and "bookies are away" in reason
        monkeypatch.undo()

        async def no_store() -> None:
            raise MetadataUnavailableError("store is away")

        monkeypatch.setattr(stream.node, "read", no_store)
        activity, reason = await reading.activity(end)
        assert activity is Activity.STUCK and "metadata store does not answer" in reason
        monkeypatch.undo()

        async def nothing(self: StreamFetcher, timeout: float | None) -> bool:
            return False

        monkeypatch.setattr(StreamFetcher, "fetch", nothing)
        activity, reason = await reading.activity(EARLIEST)
        assert activity is Activity.STUCK and "have not given the next entry" in reason
        monkeypatch.undo()
        await stream.client.metadata_store.store.delete(stream.node.path, (await stream.node.read())[1])
        with pytest.raises(StreamNotFoundError):
            await reading.activity(EARLIEST)

    simulated(story)


HERE = Position(1, 2, 0)


def test_a_wait_ends_when_the_reader_would_count_as_idle() -> None:
    assert wait_deadline(inf, 10.0, 5.0) == 15.0
    assert wait_deadline(12.0, 10.0, 5.0) == 12.0


def test_without_a_limit_or_a_first_read_nothing_ends_it_earlier() -> None:
    assert wait_deadline(inf, 10.0, None) == inf
    assert wait_deadline(20.0, None, 5.0) == 20.0


def test_it_is_idle_exactly_when_the_wait_ends() -> None:
    assert idle_error("s", HERE, 14.9, 10.0, 5.0) is None
    error = idle_error("s", HERE, 15.0, 10.0, 5.0)
    assert error is not None and error.position == HERE and "for 5 s" in str(error)
    assert idle_error("s", HERE, 1e9, 10.0, None) is None
    assert idle_error("s", HERE, 1e9, None, 5.0) is None
