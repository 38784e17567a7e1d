"""The client with the library's API, against a gateway in the same loop. Making, listing and deleting streams is in
test_remote_writer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from segments.errors import StreamNotFoundError, StreamUnavailableError
from segments.gateway.call_guard import GrpcCall
from segments.gateway.stream_calls import StreamCalls
from segments.life.checker import CheckOptions
from segments.life.findings import Problem
from segments.remote import connect, gateway_channels
from segments.rpc import segments_pb2 as pb
from tests.segments.gateway.clusters import CONFIG, served


async def test_a_check_is_asked_again_and_a_repair_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repair whose answer was lost may have been done, and takes streams over."""
    asked: list[bool] = []

    async def silent(self: StreamCalls, request: pb.CheckRequest, call: GrpcCall) -> AsyncIterator[pb.CheckReply]:
        asked.append(request.repair)
        if len(asked) < 3:
            raise StreamUnavailableError("this gateway goes away")
        yield pb.CheckReply(findings=[pb.Finding(problem="orphan ledger", stream="s", text="why", ledger=7)])

    monkeypatch.setattr(StreamCalls, "check", silent)
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        with pytest.raises(StreamUnavailableError):
            await namespace.verify("s", CheckOptions(repair=True))
        assert asked == [True]
        (finding,) = await namespace.verify("s")
        assert asked == [True, False, False]
        assert (finding.problem, finding.ledger, finding.segment) == (Problem.ORPHAN, 7, None)


async def test_the_options_of_a_check_come_to_the_gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_channels, "PATIENCE_S", 1.0)
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        assert gateway._namespace is not None
        seen: list[tuple[str | None, CheckOptions | None]] = []
        verify = gateway._namespace.verify

        async def noted(name: str | None = None, options: CheckOptions | None = None) -> object:
            seen.append((name, options))
            return await verify(name, options)

        monkeypatch.setattr(gateway._namespace, "verify", noted)
        await namespace.create("s", config=CONFIG)
        options = CheckOptions(scan=False, repair=True, orphans=False, older_than_s=7.5)
        assert await namespace.verify("s", options) == () == await namespace.verify()
        with pytest.raises(StreamNotFoundError):
            await namespace.verify("other", CheckOptions(older_than_s=0))
        assert seen == [("s", options), (None, CheckOptions()), ("other", CheckOptions(older_than_s=0))]
