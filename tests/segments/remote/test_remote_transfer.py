"""Copies through a gateway in the same loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bookkeeper.outcome import Outcome
from segments.errors import StreamCorruptError, StreamExistsError, StreamUnavailableError
from segments.gateway.calls import transfer_calls
from segments.gateway.calls.transfer_calls import TransferCalls
from segments.position import Position
from segments.protocol import segments_pb2 as pb
from segments.record import Record
from segments.remote import connect
from segments.transfer.bundle import Frame, Totals, read_bundle
from segments.transfer.transfer import ImportResult
from tests.segments.gateway.clusters import CONFIG, served


async def in_chunks(data: bytes, size: int = 100_000) -> AsyncIterator[bytes]:
    for begin in range(0, len(data), size):
        yield data[begin : begin + size]


async def frames_of(data: bytes) -> list[Frame]:
    """What is in a file, but for the time when it was made, which its checksum covers."""
    frames = [frame async for frame in read_bundle(in_chunks(data))]
    for frame in frames:
        frame.about.pop("exported_ms", None)
        frame.about.pop("sha256", None)
    return frames


async def test_a_copy_through_a_gateway_is_the_one_that_is_made_directly(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        async with stream.producer("p") as producer:
            for number in range(30):
                await producer.append(Record(bytes(20_000), number, b"k", {"h": b"1"}))
        await stream.roll()
        assert gateway._namespace is not None
        direct = gateway._namespace
        near, far = (await direct.open("s")).export(), stream.export()
        (here, there) = [b"".join([chunk async for chunk in copy.chunks()]) for copy in (near, far)]
        assert await frames_of(here) == await frames_of(there)
        assert far.result == near.result and await stream.holds() == ()
        planned = await namespace.import_stream(in_chunks(there), name="copy", dry_run=True)
        assert [name async for name in namespace.list()] == ["s"]
        made = await namespace.import_stream(in_chunks(there), name="copy", changes={"retention.max_records": 7})
        assert (made.records, made.totals, made.start) == (planned.records, planned.totals, planned.start)
        copy = await namespace.open("copy")
        assert copy.id == made.stream_id and copy.config.retention.max_records == 7
        records = [[record async for record in each.read()] for each in (stream, copy)]
        assert records[0] == records[1] and len(records[1]) == 30
        with pytest.raises(StreamExistsError):
            await namespace.import_stream(in_chunks(there), name="copy")
        with pytest.raises(StreamCorruptError, match="is cut"):
            await namespace.import_stream(in_chunks(there[:-1]), name="other")
        assert await namespace.verify() == ()


async def test_a_file_that_cannot_be_read_is_told_as_such_and_makes_nothing(tmp_path: Path) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"BKSTREAM"
        raise OSError("the disk is gone")

    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        with pytest.raises(OSError, match="the disk is gone"):
            await namespace.import_stream(broken(), name="copy")
        assert [name async for name in namespace.list()] == []


async def test_a_copy_without_its_end_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def cut(self: TransferCalls, request: Any, call: Any) -> AsyncIterator[pb.ExportReply]:
        yield pb.ExportReply(chunk=b"BKSTREAM")

    async def silent(self: TransferCalls, requests: Any, call: Any) -> AsyncIterator[pb.ImportReply]:
        yield pb.ImportReply(ready=pb.Empty())
        async for _ in requests:
            pass

    monkeypatch.setattr(TransferCalls, "export", cut)
    monkeypatch.setattr(TransferCalls, "import_stream", silent)
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        copy = (await namespace.create("s", config=CONFIG)).export()
        with pytest.raises(StreamUnavailableError, match="before it was complete") as told:
            async for _ in copy.chunks():
                pass
        assert copy.result is None and told.value.outcome is Outcome.REJECTED
        with pytest.raises(StreamUnavailableError, match="without an answer") as unsure:
            await namespace.import_stream(in_chunks(b"x"), name="copy")
        assert unsure.value.outcome is Outcome.UNKNOWN


async def test_a_large_file_that_is_refused_at_its_beginning_is_told_why(tmp_path: Path) -> None:
    """gRPC says "internal error" of a call that ends while its client still sends, and forgets the reason."""
    sent = 0

    async def much() -> AsyncIterator[bytes]:
        nonlocal sent
        yield b"no stream"
        for _ in range(300):
            sent += 1
            yield bytes(1024 * 1024)

    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        for _ in range(3):
            with pytest.raises(StreamCorruptError, match="does not begin with BKSTREAM"):
                await namespace.import_stream(much(), name="copy")
        assert sent < 3 * 100, "what is refused is not sent"


async def test_a_file_is_sent_at_the_gateways_pace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file may be larger than memory."""
    size, count, lead = 1024 * 1024, 64, [0]
    sent = 0

    async def much() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(count):
            sent += 1
            yield bytes(size)

    async def slowly(client: Any, chunks: AsyncIterator[bytes], **options: Any) -> ImportResult:
        taken = 0
        async for _ in chunks:
            taken += 1
            for _ in range(50):
                await asyncio.sleep(0)
            lead.append(sent - taken)
        return ImportResult("copy", "id", Position(1, 0, 0), 1, taken, Totals(1, taken, taken * size))

    monkeypatch.setattr(transfer_calls, "import_stream", slowly)
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        assert (await namespace.import_stream(much(), name="copy")).records == count
        assert max(lead) < count // 3, lead
