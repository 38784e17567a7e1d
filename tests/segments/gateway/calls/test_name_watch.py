"""A call that lasts reads a stream for as long as its caller may, also when the stream's name changes (X15a)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bookkeeper.gateways.access_control import AccessConfig
from bookkeeper.gateways.tokens import new_token, token_line
from bookkeeper.launchers.machine_speed import stretch
from segments.errors import StreamAccessError
from segments.protocol import segments_pb2 as pb
from segments.remote import GatewayCredentials, connect
from tests.segments.gateway.clusters import CONFIG, served


async def next_values(tail: Any) -> list[bytes]:
    while not (reply := await tail.receive()).HasField("batch"):
        pass
    return [each.record.value for each in reply.batch.records]


@pytest.mark.rule("X15a")
async def test_who_reads_a_stream_that_is_renamed_out_of_his_sight_reads_no_more_of_it(tmp_path: Path) -> None:
    """Cause: a right is had by a name, and was asked for once, by the name that the stream had then: a tail told what
    was appended under the new one, for as long as it lasted. Who may use all streams goes on."""
    root, alice = new_token(), new_token()
    tokens = tmp_path / "tokens"
    tokens.write_text(token_line("root", root, ["/"]) + token_line("alice", alice, ["/a"]))
    tokens.chmod(0o600)
    async with served(tmp_path, access=AccessConfig(token_file=str(tokens))) as gateway:
        place = f"grpc://{gateway.address}"
        async with (
            connect(place, access=GatewayCredentials(token=root)) as roots,
            connect(place, access=GatewayCredentials(token=alice)) as alices,
            asyncio.timeout(60 * stretch()),
        ):
            async with (await roots.create("a/one", config=CONFIG)).writer() as writer:
                await writer.append(b"hers")
            opened = pb.TailRequest.Open(stream="a/one", progress_ms=50)
            request = pb.TailRequest(open=opened, credits=pb.Credits(records=1000, bytes=1_000_000))
            tails = [each.channels.open("Read.Tail", str(gateway.address)) for each in (alices, roots)]
            for tail in tails:
                await tail.send(request)
                assert await next_values(tail) == [b"hers"]
            assert gateway._namespace is not None
            await gateway._namespace.rename("a/one", "b/one")  # as another gateway does it
            with pytest.raises(StreamAccessError, match="no stream has the name a/one any more"):
                while True:
                    await tails[0].receive()
            async with (await roots.open("b/one")).writer() as writer:
                await writer.append(b"his")
            assert await next_values(tails[1]) == [b"his"]
            tails[1].cancel()
