"""What writers and producers share, near and behind gateways."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.outcome import Outcome
from segments.errors import StreamConfigError, StreamError, StreamOverloadedError
from segments.remote import RemoteProducer, RemoteWriter
from segments.write import Producer, Writer
from segments.write.writer_front import AppendFront
from tests.segments.fake import AT_ONCE, Cluster, stream_on
from tests.spark_wal.webhdfs.virtual import in_virtual_time


def test_near_and_behind_gateways_they_wait_in_the_same_way() -> None:
    for near, far in ((Writer, RemoteWriter), (Producer, RemoteProducer)):
        for name in ("append", "append_batch", "_within", "__aenter__", "__aexit__"):
            assert getattr(near, name) is getattr(far, name)


@in_virtual_time
async def test_the_time_limit_of_a_producer_holds_for_the_room_too() -> None:
    """Cause: it was only looked at once there was room, so a full writer kept its producers waiting for ever."""
    cluster = Cluster()
    stream = await stream_on(cluster, config=AT_ONCE.patched({"limits.pending_bytes": 1, "limits.record_bytes": 1000}))
    async with stream.producer("p") as producer:
        await producer.append(b"first")
        await producer.room()
        cluster.delay_s = 3600
        stuck = producer.append_nowait(bytes(100))
        await asyncio.sleep(1)
        with pytest.raises(StreamOverloadedError, match="no room within 5 s") as full:
            await producer.append(b"second", timeout=5)
        assert full.value.outcome is Outcome.REJECTED
        with pytest.raises(StreamConfigError):
            await producer.append(b"second", timeout="5")  # type: ignore[arg-type]
        await producer.writer.abort()
        with pytest.raises(StreamError):
            await stuck


class Broken(AppendFront):
    """Its end fails."""

    async def _in_turn(self, submit: object) -> asyncio.Future[object]:  # type: ignore[override]
        raise NotImplementedError

    async def room(self) -> None: ...

    async def flush(self) -> None: ...

    async def close(self) -> None:
        raise StreamError("it cannot be closed")


async def test_an_error_of_closing_hides_none_of_the_body() -> None:
    with pytest.raises(KeyError):
        async with Broken("s"):
            raise KeyError
    with pytest.raises(StreamError, match="it cannot be closed"):
        async with Broken("s"):
            pass
