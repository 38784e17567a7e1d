"""How many streams a tenant may have, whichever call makes one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from bookkeeper.access import Grant, Mode, Policy, Quota, Resource, Subject, Tenant
from bookkeeper.access.rights import EVERY_RIGHT
from bookkeeper.gateways.caller import Caller
from bookkeeper.gateways.permissions import CallerRights
from segments.errors import StreamError, TooManyStreamsError
from segments.gateway.calls.stream_calls import StreamCalls
from segments.gateway.calls.stream_room import StreamRoom
from segments.gateway.guard.grpc_call import GrpcCall
from segments.namespace import StreamNamespace
from segments.protocol import segments_pb2 as pb
from segments.protocol.refusals import status_of
from tests.segments.gateway.calls.test_transfer_calls import calls_of, exported, filled, refused, sent
from tests.segments.gateway.clusters import CONFIG, served

RED = Tenant("red", owns=(Resource.parse("streams:red"),), quota=Quota(streams=2))
GRANT = Grant(Subject.parse("etl"), EVERY_RIGHT, Resource.parse("streams:/"))


def caller(mode: Mode = Mode.ENFORCE) -> GrpcCall:
    return GrpcCall(Caller("etl"), permissions=CallerRights(lambda: Policy(mode, (GRANT,), (RED,))))


class Names:
    """A namespace of which only the names matter."""

    def __init__(self, *names: str) -> None:
        self.names = set(names)

    async def list(self, prefix: str) -> AsyncIterator[str]:
        for name in sorted(self.names):
            yield name


@pytest.mark.rule("X32")
async def test_streams_that_are_being_made_count_as_well_and_others_do_not() -> None:
    names = Names("blue", "redder", "red/a")
    room = StreamRoom(cast(StreamNamespace, names))
    ends, began = asyncio.Event(), asyncio.Event()

    async def make() -> None:
        async with room.making(caller(), "red/b"):
            began.set()
            await ends.wait()

    making = asyncio.ensure_future(make())
    await began.wait()
    with pytest.raises(
        TooManyStreamsError, match=r"the quota streams of tenant red, 2, is used up.*red/c was not made"
    ):
        async with room.making(caller(), "red/c"):
            raise AssertionError("it is made")
    for name in ("red/a", "/red/b", "blue/c"):  # it is there, it is being made, and it is nobody's
        async with room.making(caller(), name):
            pass
    for mode in (Mode.OBSERVE, Mode.OFF):
        async with room.making(caller(mode), "red/c"):
            pass
    ends.set()
    await making
    async with room.making(caller(), "red/c"):
        pass
    names.names.add("red/b")
    async with room.making(caller(), "red/c", was="red/b"):  # he has as many as before
        pass
    with pytest.raises(TooManyStreamsError):
        async with room.making(caller(), "red/c", was="blue"):
            raise AssertionError("it is renamed")


@pytest.mark.rule("X32")
async def test_a_tenant_makes_renames_and_imports_no_stream_beyond_his_quota(tmp_path: Path) -> None:
    """Cause: how many streams a tenant had was limited by nothing but its rates."""
    async with served(tmp_path) as gateway:
        assert gateway._table is not None
        await filled(gateway)
        chunks = await exported(calls_of(gateway)[0])
        streams, calls = StreamCalls(gateway._table, "here"), calls_of(gateway)[0]

        async def create(name: str) -> None:
            await streams.create(pb.CreateStreamRequest(stream=name, exist_ok=True), caller())

        async def error_of(name: str) -> StreamError:
            with pytest.raises(TooManyStreamsError) as caught:
                await create(name)
            return caught.value

        namespace = gateway._table.namespace
        for name in ("red/a", "blue"):
            await namespace.create(name, config=CONFIG)
        made = [each async for each in calls.import_stream(sent(chunks, stream="red/copy"), caller())]
        assert made[-1].imported.stream == "red/copy"
        await create("red/a")
        assert status_of(await error_of("red/b")) == "RESOURCE_EXHAUSTED"
        with pytest.raises(TooManyStreamsError):
            await refused(calls.import_stream(sent(chunks, stream="red/more"), caller()))
        assert [each async for each in calls.import_stream(sent(chunks, stream="red/more", dry_run=True), caller())]
        with pytest.raises(TooManyStreamsError):
            await streams.rename(pb.RenameStreamRequest(stream="blue", new_name="red/blue"), caller())
        await streams.rename(pb.RenameStreamRequest(stream="red/copy", new_name="red/other"), caller())
        await streams.rename(pb.RenameStreamRequest(stream="red/other", new_name="green"), caller())
        await create("red/b")
        assert [each async for each in namespace.list("red")] == ["red/a", "red/b"]
