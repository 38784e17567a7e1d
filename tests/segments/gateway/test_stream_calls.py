from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from segments.errors import StreamNotFoundError
from segments.remote import connect
from segments.rpc import segments_pb2 as pb
from tests.segments.gateway.clusters import CONFIG, served


async def test_streams_are_watched_as_they_come_and_go(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        await namespace.create("a", config=CONFIG)
        events = namespace.channels.stream("Streams.Watch", pb.WatchStreamsRequest())
        seen = []
        async with asyncio.timeout(30):
            seen.append(await anext(events))
            await namespace.rename("a", "b")
            seen.append(await anext(events))
            await namespace.delete("b")
            seen.append(await anext(events))
        await events.aclose()  # type: ignore[attr-defined]
        kinds = pb.NamespaceEvent
        assert [(each.kind, each.stream, each.former) for each in seen] == [
            (kinds.KIND_CREATED, "a", ""),
            (kinds.KIND_RENAMED, "b", "a"),
            (kinds.KIND_DELETED, "b", ""),
        ]


async def test_a_stream_has_no_owner_before_somebody_appends(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        assert await stream.owner() is None
        with pytest.raises(StreamNotFoundError, match="no operation"):
            await namespace.channels.call("Operations.Get", pb.GetOperationRequest(id="x"))
