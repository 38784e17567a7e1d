from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from bookkeeper.launchers.machine_speed import stretch
from segments.config import ProducerPolicy
from segments.directory.directory import NameChange
from segments.errors import StreamConfigError, StreamNotFoundError
from segments.gateway.calls.stream_calls import StreamCalls
from segments.gateway.guard.grpc_call import GrpcCall
from segments.protocol import segments_pb2 as pb
from segments.remote import connect
from tests.segments.gateway.clusters import CONFIG, served


async def test_streams_are_watched_as_they_come_and_go(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        await namespace.create("a", config=CONFIG)
        events = namespace.watch()
        seen = []
        async with asyncio.timeout(30 * stretch()):
            seen.append(await anext(events))
            await namespace.rename("a", "b")
            seen.append(await anext(events))
            await namespace.delete("b")
            seen.append(await anext(events))
        await events.aclose()  # type: ignore[attr-defined]
        assert [(each.change, each.name, each.was) for each in seen] == [
            (NameChange.CREATED, "a", None),
            (NameChange.RENAMED, "b", "a"),
            (NameChange.DELETED, "b", None),
        ]
        assert len({each.stream_id for each in seen}) == 1


async def test_a_stream_has_no_owner_before_somebody_appends(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        assert await stream.owner() is None
        with pytest.raises(StreamNotFoundError, match="no operation"):
            await namespace.channels.call("Operations.Get", pb.GetOperationRequest(id="x"))


@pytest.mark.rule("X35")
async def test_no_caller_gets_a_stream_that_remembers_producers_without_bound(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        much = replace(CONFIG, producers=ProducerPolicy(positions_each=1 << 40))
        with pytest.raises(StreamConfigError, match="is more than 4000000"):
            await namespace.create("s", config=much)
        stream = await namespace.create("s", config=CONFIG)
        with pytest.raises(StreamConfigError, match="is more than"):
            await stream.configure({"producers.snapshot_every_bytes": 1 << 40})


@pytest.mark.rule("M8")
async def test_a_deletion_that_comes_late_deletes_no_later_stream_of_the_name(tmp_path: Path) -> None:
    """A gateway that stood still goes on with a call that its client has repeated elsewhere since."""
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        former = await namespace.create("s", config=CONFIG)
        assert gateway._table is not None
        calls = StreamCalls(gateway._table, str(gateway.address))
        late = pb.DeleteStreamRequest(stream="s", stream_id=former.id)
        await calls.delete(late, GrpcCall(None))
        present = await namespace.create("s", config=CONFIG)
        with pytest.raises(StreamNotFoundError, match="with id"):
            await calls.delete(late, GrpcCall(None))
        late.missing_ok = True
        await calls.delete(late, GrpcCall(None))
        assert (await namespace.open("s")).id == present.id
        await namespace.delete("s")
