"""What a gateway does with copies whose client, or whose right to them, goes away. The copies are compared with the
library's in tests/segments/remote and tests/segments/commands."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bookkeeper.access import Principal, QuotaKind, QuotaRefusal
from bookkeeper.gateways.caller import Caller
from bookkeeper.gateways.permissions import CallerRights
from bookkeeper.launchers.machine_speed import stretch
from segments.errors import StreamAccessError, StreamConfigError, StreamError, StreamNotReadyError
from segments.gateway.calls import transfer_calls
from segments.gateway.calls.transfer_calls import TransferCalls
from segments.gateway.gateway_metrics import GatewayMetrics
from segments.gateway.guard.grpc_call import CallEndedError, GrpcCall
from segments.gateway.service import GrpcGatewayService
from segments.protocol import segments_pb2 as pb
from segments.remote import connect
from segments.retention.deletion import LeakedLedgers
from segments.transfer.transfer import ImportResult, import_stream
from tests.segments.gateway.clusters import CONFIG, served

ANYBODY = GrpcCall(None)


def calls_of(
    gateway: GrpcGatewayService, draining: asyncio.Event | None = None
) -> tuple[TransferCalls, GatewayMetrics]:
    metrics = GatewayMetrics()
    assert gateway._table is not None
    return TransferCalls(gateway._table, metrics, draining or asyncio.Event()), metrics


async def filled(gateway: GrpcGatewayService, entries: int = 20) -> Any:
    assert gateway._namespace is not None
    stream = await gateway._namespace.create("s", config=CONFIG)
    async with stream.writer() as writer:
        for _ in range(entries):
            await writer.append(bytes(50_000))
    return stream


async def sent(chunks: list[bytes], **opened: Any) -> AsyncIterator[pb.ImportRequest]:
    yield pb.ImportRequest(open=pb.ImportRequest.Open(**opened))
    for chunk in chunks:
        yield pb.ImportRequest(chunk=chunk)


async def exported(calls: TransferCalls) -> list[bytes]:
    replies = [each async for each in calls.export(pb.ExportRequest(stream="s"), ANYBODY)]
    assert [reply.WhichOneof("reply") for reply in replies][-2:] == ["chunk", "exported"]
    return [reply.chunk for reply in replies[:-1]]


async def refused(replies: AsyncIterator[pb.ImportReply]) -> None:
    """A client that sends the file is told to send nothing more, and then why."""
    said = []
    try:
        async for reply in replies:
            said.append(reply.WhichOneof("reply"))
    finally:
        assert said in ([], ["ready", "stop"])


async def nothing_is_there(gateway: GrpcGatewayService) -> None:
    """Of an import that failed: no stream, no ledger, no mark."""
    assert gateway._namespace is not None
    namespace = gateway._namespace
    assert [name async for name in namespace.list()] == ["s"]
    assert list(await LeakedLedgers(namespace.client).find(0)) == []
    assert await namespace.verify() == ()


async def test_small_entries_are_sent_together_and_all_bytes_are_counted(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway:
        await filled(gateway)
        calls, metrics = calls_of(gateway)
        chunks = await exported(calls)
        assert 4 <= len(chunks) <= 6 and metrics.exported_bytes.value == sum(map(len, chunks)) > 1_000_000
        replies = [each async for each in calls.import_stream(sent(chunks, stream="copy"), ANYBODY)]
        assert [reply.WhichOneof("reply") for reply in replies] == ["ready", "imported"]
        assert replies[-1].imported.records == 20
        assert metrics.imported_bytes.value == metrics.exported_bytes.value


async def test_a_copy_has_the_settings_that_the_stream_has_now(tmp_path: Path) -> None:
    """Somebody may have changed them elsewhere since the gateway looked."""
    async with served(tmp_path) as gateway:
        await filled(gateway, entries=1)
        calls, _ = calls_of(gateway)
        await exported(calls)
        assert gateway._namespace is not None
        await (await gateway._namespace.open("s")).configure({"retention.max_records": 5})
        chunks = await exported(calls)
        assert [each async for each in calls.import_stream(sent(chunks, stream="copy"), ANYBODY)]
        assert (await gateway._namespace.open("copy")).config.retention.max_records == 5


async def test_an_export_that_its_client_leaves_holds_nothing_any_more(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway:
        stream = await filled(gateway)
        calls, _ = calls_of(gateway)
        replies = calls.export(pb.ExportRequest(stream="s"), ANYBODY)
        await anext(replies)
        assert len(await stream.holds()) == 1
        await replies.aclose()  # type: ignore[attr-defined]
        assert await stream.holds() == ()


async def test_an_import_whose_client_goes_away_leaves_nothing(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        await filled(gateway)
        calls, _ = calls_of(gateway)
        chunks = await exported(calls)
        with pytest.raises(StreamError, match="the exported stream is cut"):
            await refused(calls.import_stream(sent(chunks[:-1], stream="copy"), ANYBODY))
        await nothing_is_there(gateway)
        call = namespace.channels.open("Streams.Import", str(gateway.address))
        began, go_on = asyncio.Event(), asyncio.Event()

        async def slowly(client: Any, chunks: AsyncIterator[bytes], **options: Any) -> ImportResult:
            async def some() -> AsyncIterator[bytes]:
                async for chunk in chunks:
                    yield chunk
                    began.set()

            try:
                return await import_stream(client, some(), **options)
            finally:
                go_on.set()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(transfer_calls, "import_stream", slowly)
            async for request in sent(chunks[:3], stream="copy"):
                await call.send(request)
            async with asyncio.timeout(30 * stretch()):
                await began.wait()
                call.cancel()
                await go_on.wait()
        await nothing_is_there(gateway)


async def test_a_name_in_the_file_counts_as_one_that_is_given(tmp_path: Path) -> None:
    """A token that is limited to streams makes no others, whatever the file says."""
    async with served(tmp_path) as gateway:
        await filled(gateway)
        calls, _ = calls_of(gateway)
        chunks = await exported(calls)
        caller = GrpcCall(Caller("etl", ("/mine",)))
        for opened in ({}, {"stream": "other"}, {"dry_run": True}):
            with pytest.raises(StreamAccessError, match="etl may not use stream"):
                await refused(calls.import_stream(sent(chunks, **opened), caller))
            await nothing_is_there(gateway)
        made = [each async for each in calls.import_stream(sent(chunks, stream="mine/copy"), caller)]
        assert made[-1].imported.stream == "mine/copy"
        with pytest.raises(StreamConfigError, match="has `open`"):
            await anext(calls.import_stream(_only_chunks(chunks), caller))


@pytest.mark.rule("X32")
async def test_a_copy_comes_in_at_its_callers_rate(tmp_path: Path) -> None:
    """Cause: an import counted for nobody."""
    asked: list[tuple[int, int]] = []

    def take(principal: Principal, entries: int, size: int) -> QuotaRefusal | None:
        asked.append((entries, size))
        return QuotaRefusal("principal etl", QuotaKind.BYTES_PER_S, 1, 0.001) if len(asked) % 2 else None

    async with served(tmp_path) as gateway:
        await filled(gateway)
        calls, _ = calls_of(gateway)
        chunks = await exported(calls)
        caller = GrpcCall(Caller("etl"), permissions=CallerRights(take=take))
        assert [each async for each in calls.import_stream(sent(chunks, stream="copy"), caller)]
        assert asked == [(1, len(chunk)) for chunk in chunks for _ in range(2)]
        assert [each async for each in calls.import_stream(sent(chunks, stream="x", dry_run=True), caller)]
        assert len(asked) == 2 * len(chunks), "nothing is written"


async def _only_chunks(chunks: list[bytes]) -> AsyncIterator[pb.ImportRequest]:
    for chunk in chunks:
        yield pb.ImportRequest(chunk=chunk)


async def test_copies_end_when_their_credentials_are_taken_away_or_the_gateway_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(tmp_path) as gateway:
        stream = await filled(gateway)
        calls, _ = calls_of(gateway)
        chunks = await exported(calls)
        draining = asyncio.Event()
        draining.set()
        ended, _ = calls_of(gateway, draining)
        revoked = GrpcCall(None, ended=CallEndedError("its credentials are no longer valid", why="revoked"))
        for some, caller, error in ((calls, revoked, StreamAccessError), (ended, ANYBODY, StreamNotReadyError)):
            with pytest.raises(error):
                async for _ in some.export(pb.ExportRequest(stream="s"), caller):
                    pass
            assert await stream.holds() == ()
            with pytest.raises(error):
                await refused(some.import_stream(sent(chunks, stream="copy"), caller))
            await nothing_is_there(gateway)
