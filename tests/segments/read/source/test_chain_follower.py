"""The stream's node is read when it may have changed, and not otherwise."""

from __future__ import annotations

import asyncio

import pytest

from segments.chain import StreamChain
from segments.errors import StreamNotFoundError
from tests.segments.read.built_stream import BuiltStream, simulated


def test_it_reads_once_until_a_change_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(stream: BuiltStream) -> None:
        follower, record = stream.source.chain, stream.node
        reads = 0
        inner = record.read

        async def read() -> object:
            nonlocal reads
            reads += 1
            return await inner()

        monkeypatch.setattr(record, "read", read)
        follower.acquire()
        for _ in range(5):
            assert isinstance(await follower.current(), StreamChain)
        assert reads == 1
        waiting = asyncio.create_task(follower.changed(None))
        await asyncio.sleep(1)
        assert not waiting.done()
        monkeypatch.undo()
        await stream.start()
        await waiting
        assert len((await follower.current()).segments) == 1
        follower.release()
        assert follower.value is None

    simulated(story)


def test_without_users_every_reading_is_fresh() -> None:
    async def story(stream: BuiltStream) -> None:
        follower = stream.source.chain
        await follower.current()
        await stream.start()
        assert len((await follower.current()).segments) == 1

    simulated(story)


def test_a_wait_ends_in_time_or_when_it_is_woken() -> None:
    async def story(stream: BuiltStream) -> None:
        follower = stream.source.chain
        loop = asyncio.get_running_loop()
        follower.acquire()
        await follower.current()
        began = loop.time()
        await follower.changed(began + 3)
        assert 2.9 < loop.time() - began < 3.5
        waiting = asyncio.create_task(follower.changed(None))
        await asyncio.sleep(0.5)
        follower.wake()
        await waiting
        follower.invalidate()
        assert follower.is_stale
        await follower.changed(None)
        follower.release()

    simulated(story)


def test_a_stream_that_was_deleted_is_told() -> None:
    """SEG-81: and told again at the next reading."""

    async def story(stream: BuiltStream) -> None:
        stream.source.chain.acquire()
        await stream.node.store.delete(stream.node.path, None)
        for _ in range(2):
            with pytest.raises(StreamNotFoundError):
                await stream.source.chain.current()

    simulated(story)
