"""Copies of streams through gateways: out to a checksummed file, and in from one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any, Final

from bookkeeper.outcome import Outcome
from segments.errors import StreamError, StreamUnavailableError
from segments.position import EARLIEST, LATEST, Position
from segments.protocol import segments_pb2 as pb
from segments.protocol.messages import get_position, put_patch, put_seek
from segments.protocol.report_messages import get_totals
from segments.remote.gateway_channels import GatewayCall, GatewayChannels
from segments.transfer.transfer import ExportResult, ImportResult

CHUNK_BYTES: Final = 1024 * 1024
"""The most bytes of one message."""


class RemoteExport:
    """An export: ``async for chunk in export.chunks()``; then ``export.result``."""

    def __init__(
        self, channels: GatewayChannels, stream: str, start: Position = EARLIEST, stop: Position = LATEST
    ) -> None:
        self._channels = channels
        self._stream = stream
        self._request = pb.ExportRequest(stream=stream, start=put_seek(start), stop=put_seek(stop))
        self.result: ExportResult | None = None
        """Set at the end. Without it the copy is not complete."""

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The file's bytes, in order.

        Raises:
            StreamUnavailableError: the gateway does not answer, or went away: begin again. GatewayTooOldError. And as
            ``StreamExport.chunks``.
        """
        async for reply in self._channels.stream("Streams.Export", self._request):
            if reply.WhichOneof("reply") == "exported":
                done = reply.exported
                self.result = ExportResult(get_position(done.start), get_position(done.end), get_totals(done.totals))
            else:
                yield reply.chunk
        if self.result is None:
            raise StreamUnavailableError(
                "the gateway ended the copy before it was complete: copy the stream again",
                stream=self._stream,
                outcome=Outcome.REJECTED,
            )


async def import_stream(
    channels: GatewayChannels,
    chunks: AsyncIterator[bytes],
    *,
    name: str | None,
    changes: Mapping[str, Any],
    dry_run: bool,
) -> ImportResult:
    """Make a stream of an exported file. Raises: as ``RemoteNamespace.import_stream``."""
    call = channels.open("Streams.Import", channels.address_for(""))
    sender = _Sender(call, chunks)
    opened = pb.ImportRequest.Open(stream=name or "", settings=put_patch(changes), dry_run=dry_run)
    sending = asyncio.ensure_future(sender.send(opened))
    answering = asyncio.ensure_future(_answer(call, sender))
    try:
        await asyncio.wait([sending, answering], return_when=asyncio.FIRST_COMPLETED)
        if sending.done():
            sending.result()  # raises if the file cannot be read
        reply = await answering
    except StreamError as error:
        channels.note_failure("", call.address, error)
        raise
    finally:
        call.cancel()
        sending.cancel()
        answering.cancel()
        await asyncio.wait([sending, answering])
    made = reply.imported
    return ImportResult(
        made.stream, made.stream_id, get_position(made.start), made.segments, made.records, get_totals(made.totals)
    )


async def _answer(call: GatewayCall, sender: _Sender) -> Any:
    """What the gateway says at the end. Raises: why the import failed."""
    while (reply := await call.receive()) is not None:
        match reply.WhichOneof("reply"):
            case "imported":
                return reply
            case "ready":
                sender.ready.set()
            case "stop":
                sender.stopped = True
    raise StreamUnavailableError("the gateway ended the call without an answer")


class _Sender:
    """Sends a file at the gateway's pace."""

    def __init__(self, call: GatewayCall, chunks: AsyncIterator[bytes]) -> None:
        self._call = call
        self._chunks = chunks
        self.ready = asyncio.Event()
        """Set when the gateway waits for the file: until then its refusal cannot be lost."""
        self.stopped = False
        """The gateway wants no more."""

    async def send(self, opened: pb.ImportRequest.Open) -> None:
        """Send all of it. Why the call ends its answer tells. Raises: what reading the file raises."""
        try:
            await self._call.send(pb.ImportRequest(open=opened))
            await self.ready.wait()
            async for chunk in self._chunks:
                for at in range(0, len(chunk), CHUNK_BYTES):
                    if not self.stopped:
                        await self._call.send(pb.ImportRequest(chunk=chunk[at : at + CHUNK_BYTES]))
                if self.stopped:
                    break
            await self._call.end()
        except StreamError:
            pass
