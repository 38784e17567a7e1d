"""How a stream is made: all of it, or nothing, also when a reply is lost."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from segments.config import StreamConfig
from segments.errors import StreamCorruptError, StreamExistsError, StreamMetadataError, StreamNotFoundError
from segments.stream_settings import find_stream, make_stream, read_settings
from tests.journal_manager.backends.bookkeeper.fake import Died, LostReplies
from tests.segments.fake import Cluster
from tests.spark_wal.webhdfs.virtual import in_virtual_time


@in_virtual_time
async def test_a_stream_that_is_made_while_a_reply_is_lost_is_whole_or_not_there() -> None:
    """SEG-16 SEG-21"""
    for lost in range(8):
        cluster = Cluster()
        metadata = cluster.client().metadata_store
        cluster.metadata.interference = LostReplies(lost)
        await make_stream(metadata, "s", "1" * 32, StreamConfig(), b"p" * 32)  # type: ignore[arg-type]
        cluster.metadata.interference = None
        assert await find_stream(metadata, "s") == "1" * 32  # type: ignore[arg-type]
        assert await read_settings(metadata, "s", "1" * 32) == StreamConfig()  # type: ignore[arg-type]
        with pytest.raises(StreamExistsError):
            await make_stream(metadata, "s", "2" * 32, StreamConfig(), b"p" * 32)  # type: ignore[arg-type]
        with pytest.raises(StreamNotFoundError):
            await read_settings(metadata, "s", "2" * 32)  # type: ignore[arg-type]


@in_virtual_time
async def test_a_store_that_is_away_or_holds_something_else_is_told() -> None:
    cluster = Cluster()
    metadata = cluster.client().metadata_store
    await make_stream(metadata, "s", "1" * 32, StreamConfig(), b"p" * 32)  # type: ignore[arg-type]
    path = metadata.own("segments", "streams", "1" * 32, "config")
    await metadata.store.set(path, b"{}", None)
    with pytest.raises(StreamCorruptError):
        await read_settings(metadata, "s", "1" * 32)  # type: ignore[arg-type]
    cluster.metadata.begin_outage()
    with pytest.raises(StreamMetadataError):
        await find_stream(metadata, "s")  # type: ignore[arg-type]


@pytest.mark.rule("F1", "F9")
@in_virtual_time
async def test_a_first_use_that_is_cut_short_anywhere_is_repeated_until_the_stream_is_whole() -> None:
    """By a kill at any step, and by a session that ends there."""
    for ends in (False, True):
        for step in range(40):
            cluster = Cluster()
            first: Any = cluster.client()
            steps = 0

            def cut(name: str, ends: bool = ends, step: int = step, first: Any = first) -> None:
                nonlocal steps
                steps += 1
                if steps == step + 1 and ends:
                    first.cluster.metadata.expire(first.metadata_store.store._store)
                if steps == step + 1 and not ends:
                    raise Died(name)

            cluster.step = cut  # type: ignore[method-assign]
            with suppress(Died, StreamMetadataError):
                await make_stream(first.metadata_store, "s", "1" * 32, StreamConfig(), b"p" * 32)
            begun, steps = steps, 1 << 30
            again: Any = cluster.client().metadata_store
            try:
                found = await find_stream(again, "s")
            except StreamNotFoundError:
                found = "2" * 32
                await make_stream(again, "s", found, StreamConfig(), b"p" * 32)
            assert await read_settings(again, "s", found) == StreamConfig()
            assert await again.store.exists(again.own("segments", "streams", found, "chain")) is not None
            if begun <= step:
                break
        assert step > 5, "some steps were cut"
