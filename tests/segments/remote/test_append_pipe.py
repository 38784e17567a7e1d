from __future__ import annotations

import asyncio

import pytest

from segments.errors import AppendOutcomeUnknownError, StreamClosedError, StreamUnavailableError
from segments.protocol import segments_pb2 as pb
from segments.remote.append_pipe import AppendPipe
from segments.remote.gateway_address import GatewayCredentials
from segments.remote.gateway_channels import GatewayChannels


async def test_who_reaches_no_gateway_is_told_so_after_a_while_and_nothing_was_appended() -> None:
    channels = GatewayChannels(["127.0.0.1:1"], GatewayCredentials())
    pipe = AppendPipe(channels, "s", idempotent=True, patience_s=0.3)
    answer = pipe.submit(pb.AppendRequest(stream="s", values=[b"v"]), 1, 1)
    assert (pipe.pending, pipe.pending_bytes) == (1, 1)
    async with asyncio.timeout(30):
        with pytest.raises(StreamUnavailableError):
            await answer
    assert not isinstance(answer.exception(), AppendOutcomeUnknownError)
    with pytest.raises(StreamUnavailableError):
        pipe.submit(pb.AppendRequest(), 1, 1)
    await pipe.close()
    await channels.close()


async def test_a_pipe_that_was_closed_takes_nothing() -> None:
    channels = GatewayChannels(["127.0.0.1:1"], GatewayCredentials())
    pipe = AppendPipe(channels, "s", idempotent=False)
    await pipe.close()
    with pytest.raises(StreamClosedError):
        pipe.submit(pb.AppendRequest(), 1, 1)
    await channels.close()
