"""How a stream is made: all of it, or nothing, also when a reply is lost."""

from __future__ import annotations

import pytest

from segments.config import StreamConfig
from segments.errors import StreamCorruptError, StreamExistsError, StreamMetadataError, StreamNotFoundError
from segments.stream_settings import find_stream, make_stream, read_settings
from tests.journal_manager.backends.bookkeeper.fake import LostReplies
from tests.segments.fake import Cluster
from tests.spark_wal.webhdfs.virtual import in_virtual_time


@in_virtual_time
async def test_a_stream_that_is_made_while_a_reply_is_lost_is_whole_or_not_there() -> None:
    """SEG-16 SEG-21"""
    for lost in range(8):
        cluster = Cluster()
        metadata = cluster.client().metadata_store
        cluster.metadata.interference = LostReplies(lost)
        await make_stream(metadata, "s", "1" * 32, StreamConfig())  # type: ignore[arg-type]
        cluster.metadata.interference = None
        assert await find_stream(metadata, "s") == "1" * 32  # type: ignore[arg-type]
        assert await read_settings(metadata, "s", "1" * 32) == StreamConfig()  # type: ignore[arg-type]
        with pytest.raises(StreamExistsError):
            await make_stream(metadata, "s", "2" * 32, StreamConfig())  # type: ignore[arg-type]
        with pytest.raises(StreamNotFoundError):
            await read_settings(metadata, "s", "2" * 32)  # type: ignore[arg-type]


@in_virtual_time
async def test_a_store_that_is_away_or_holds_something_else_is_told() -> None:
    cluster = Cluster()
    metadata = cluster.client().metadata_store
    await make_stream(metadata, "s", "1" * 32, StreamConfig())  # type: ignore[arg-type]
    path = metadata.own("segments", "streams", "1" * 32, "config")
    await metadata.store.set(path, b"{}", None)
    with pytest.raises(StreamCorruptError):
        await read_settings(metadata, "s", "1" * 32)  # type: ignore[arg-type]
    cluster.metadata.begin_outage()
    with pytest.raises(StreamMetadataError):
        await find_stream(metadata, "s")  # type: ignore[arg-type]
