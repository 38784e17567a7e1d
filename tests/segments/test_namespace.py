"""Connect, create, open, list."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from segments.config import StreamConfig
from segments.errors import StreamClosedError, StreamExistsError, StreamNameError, StreamNotFoundError
from segments.namespace import StreamNamespace, connect
from tests.segments.clusters import a_namespace


async def test_a_stream_is_made_once_with_all_that_belongs_to_it(tmp_path: Path) -> None:
    """SEG-16: name, settings and record appear together; making it again says that it exists."""
    async with a_namespace(tmp_path) as namespace:
        config = StreamConfig(compression="zstd")
        made = await namespace.create("flights/eu", config=config)
        assert (await made.chain()).stream_id == made.id
        with pytest.raises(StreamExistsError):
            await namespace.create("flights/eu")
        again = await namespace.create("flights/eu", exist_ok=True)
        assert (again.id, again.config) == (made.id, config)
        assert await namespace.exists("flights/eu")


async def test_opening_a_stream_that_is_not_there_says_so_unless_it_may_be_made(tmp_path: Path) -> None:
    """SEG-17: without ``create`` a missing stream is an error."""
    async with a_namespace(tmp_path) as namespace:
        with pytest.raises(StreamNotFoundError, match="no stream named orders"):
            await namespace.open("orders")
        assert not await namespace.exists("orders")
        made = await namespace.open("orders", create=True)
        assert (await namespace.open("/orders")).id == made.id
        with pytest.raises(StreamNameError):
            await namespace.create("a b")


async def test_streams_are_listed_by_prefix_and_sorted(tmp_path: Path) -> None:
    async with a_namespace(tmp_path) as namespace:
        assert [name async for name in namespace.list()] == []
        for name in ("b/2", "a", "b/1", "b"):
            await namespace.create(name)
        assert [name async for name in namespace.list()] == ["a", "b", "b/1", "b/2"]
        assert [name async for name in namespace.list("b/")] == ["b/1", "b/2"]


async def test_a_stream_that_was_just_made_is_listed_although_a_server_of_the_store_lags_behind(tmp_path: Path) -> None:
    async with a_namespace(tmp_path) as namespace:
        await namespace.create("a")
        store: Any = namespace.client.metadata_store.store
        children, sync = store.children, store.sync
        seen: dict[str, Any] = {}

        async def lagging(path: str) -> Any:
            if path not in seen:
                seen[path] = await children(path)
            return seen[path]

        async def caught_up(path: str) -> None:
            await sync(path)
            seen.pop(path, None)

        store.children, store.sync = lagging, caught_up
        assert [name async for name in namespace.list()] == ["a"]
        await namespace.create("b")
        assert [name async for name in namespace.list()] == ["a", "b"]


async def test_a_closed_namespace_refuses_at_once(tmp_path: Path) -> None:
    """SEG-28: using a namespace after close fails fast."""
    async with a_namespace(tmp_path) as namespace:
        await namespace.create("a")
    for call in (namespace.open("a"), namespace.create("b"), namespace.exists("a")):
        with pytest.raises(StreamClosedError):
            await call
    await namespace.close()


async def test_a_client_that_was_given_stays_open(tmp_path: Path) -> None:
    async with a_namespace(tmp_path) as namespace:
        async with connect("", client=namespace.client) as other:
            assert isinstance(other, StreamNamespace)
            await other.create("a")
        assert await namespace.exists("a")
