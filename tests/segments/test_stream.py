"""A stream as an application holds it: its writers, producers and settings. What reads and cares for it is tested
where it stands."""

from __future__ import annotations

import pytest

from segments.errors import StreamNotFoundError
from segments.write import Producer, Writer
from tests.segments.fake import AT_ONCE, Cluster, stream_on
from tests.spark_wal.webhdfs.virtual import in_virtual_time


@in_virtual_time
async def test_writers_and_producers_are_opened_by_await_or_by_async_with() -> None:
    stream = await stream_on(Cluster())
    writer = await stream.writer()
    assert isinstance(writer, Writer)
    await writer.close()
    async with stream.producer("p") as producer:
        assert isinstance(producer, Producer)
        assert (await stream.segments())[-1].is_open
    assert (await stream.chain()).epoch == 2


@in_virtual_time
async def test_settings_are_read_as_they_are_now() -> None:
    stream = await stream_on(Cluster())
    changed = AT_ONCE.patched({"compression": "lz4"})
    metadata = stream.client.metadata_store
    path = metadata.own("segments", "streams", stream.id, "config")
    await metadata.store.set(path, changed.encode(), None)
    assert await stream.read_config() == stream.config == changed
    await metadata.store.delete(path, None)
    with pytest.raises(StreamNotFoundError):
        await stream.read_config()
