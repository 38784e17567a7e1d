"""The client with the library's API, against a gateway in the same loop. Making, listing and deleting streams is in
test_remote_writer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bookkeeper.errors import ConfigError
from segments.checks.checker import CheckOptions
from segments.checks.findings import Problem
from segments.errors import StreamClosedError, StreamConfigError, StreamNotFoundError, StreamUnavailableError
from segments.gateway.calls.stream_calls import StreamCalls
from segments.gateway.guard.grpc_call import GrpcCall
from segments.protocol import segments_pb2 as pb
from segments.remote import connect, gateway_channels
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


async def test_a_namespace_that_is_closed_does_nothing_and_tells_who_waits(tmp_path: Path) -> None:
    """SEG-28 through a gateway: its writers and readers went on over a connection of their own."""
    async with served(tmp_path) as gateway:
        namespace = await connect(f"grpc://{gateway.address}")
        stream = await namespace.create("s", config=CONFIG)
        writer, reader, other = await stream.writer(), stream.read(follow=True), stream.read()
        await writer.append(b"0")
        assert await reader.next(timeout=20) is not None
        waiting = asyncio.ensure_future(reader.next(timeout=20))
        await asyncio.sleep(0)
        await namespace.close()
        await namespace.close()
        with pytest.raises(StreamClosedError, match="connection to the gateways is closed"):
            await waiting
        for late in (writer.append(b"1"), other.next(), stream.count(), namespace.open("s"), stream.cursors()):
            with pytest.raises(StreamClosedError, match=r"connection to the gateways is closed|namespace is closed"):
                await late
        await writer.close()
        await reader.close()
        async with connect(f"grpc://{gateway.address}") as again:
            assert await (await again.open("s")).count() == 1


@pytest.mark.rule("X2", "X43")
async def test_secrets_of_the_environment_are_judged_by_their_files_and_stay_here_without_tls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cause: a file was private only if its path had the word key or token in it, so a token in ``etl`` was used though
    everybody could read it.
    """
    secret = tmp_path / "etl"
    secret.write_text("abc")
    secret.chmod(0o644)
    monkeypatch.setenv("BK_GATEWAY_TOKEN_FILE", str(secret))
    with pytest.raises(ConfigError, match="chmod 600"):
        await connect("grpc://127.0.0.1:1")
    secret.chmod(0o600)
    await (await connect("grpc://127.0.0.1:1")).close()
    await (await connect("grpcs://gateway.example.org:1")).close()
    with pytest.raises(StreamConfigError, match="grpcs://"):
        await connect("grpc://127.0.0.1:1,gateway.example.org:1")
