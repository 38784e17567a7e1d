"""The calls of the service Streams that copy streams: out to a file, and in from one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing, suppress
from typing import Final

from segments.errors import StreamConfigError, StreamError, StreamNotReadyError
from segments.gateway.calls.name_watch import while_named
from segments.gateway.calls.served_streams import ServedStreams
from segments.gateway.gateway_metrics import GatewayMetrics
from segments.gateway.guard.call_guard import Behaviour
from segments.gateway.guard.grpc_call import GrpcCall
from segments.gateway.guard.request_rights import CREATE
from segments.position import EARLIEST, LATEST
from segments.protocol import segments_pb2 as pb
from segments.protocol.messages import get_patch, get_seek, put_position
from segments.protocol.report_messages import put_totals
from segments.stream import Stream
from segments.transfer.transfer import import_stream

CHUNK_BYTES: Final = 256 * 1024
"""Of an export: small entries are sent together, until they have so many bytes."""

DISCARD_S: Final = 30.0
"""After a failed import its client may take so long until it sends nothing more."""


class TransferCalls:
    """The behaviours of these calls."""

    def __init__(self, table: ServedStreams, metrics: GatewayMetrics, draining: asyncio.Event) -> None:
        """``draining`` is set when the gateway ends: then copies end, too."""
        self._table = table
        self._metrics = metrics
        self._draining = draining

    @property
    def behaviours(self) -> Mapping[str, Behaviour]:
        """By service and name."""
        return {"Streams.Export": self.export, "Streams.Import": self.import_stream}

    async def export(self, request: pb.ExportRequest, call: GrpcCall) -> AsyncIterator[pb.ExportReply]:
        """The bytes of a file, then what is in it. gRPC's own flow control slows it down to the client's pace.

        Raises: as ``StreamExport.chunks``.
        """
        async with (
            while_named(self._table, request.stream, call) as served,
            aclosing(self._export(request, served.stream, call)) as replies,
        ):
            async for reply in replies:
                yield reply

    async def _export(
        self, request: pb.ExportRequest, stream: Stream, call: GrpcCall
    ) -> AsyncGenerator[pb.ExportReply, None]:
        await stream.read_config()
        start, stop = get_seek(request.start, EARLIEST), get_seek(request.stop, LATEST)
        copy = stream.export(await stream.position_of(start), await stream.position_of(stop))
        watch = _CallWatch(call, self._draining)
        waiting = bytearray()
        async with aclosing(copy.chunks()) as chunks:
            async for chunk in chunks:
                watch.require_ongoing()
                waiting += chunk
                if len(waiting) >= CHUNK_BYTES:
                    self._metrics.exported_bytes.add(len(waiting))
                    yield pb.ExportReply(chunk=bytes(waiting))
                    waiting.clear()
        self._metrics.exported_bytes.add(len(waiting))
        yield pb.ExportReply(chunk=bytes(waiting))
        done = copy.result
        assert done is not None
        yield pb.ExportReply(
            exported=pb.Exported(
                start=put_position(done.start), end=put_position(done.end), totals=put_totals(done.totals)
            )
        )

    async def import_stream(
        self, requests: AsyncIterator[pb.ImportRequest], call: GrpcCall
    ) -> AsyncIterator[pb.ImportReply]:
        """Make a stream of the bytes of a file. Raises: as ``import_stream``; then there is no new stream."""
        first = await anext(aiter(requests), None)
        if first is None or not first.HasField("open"):
            raise StreamConfigError("the first request of an import has `open`: the stream's name, or none")
        opened = first.open
        call.on_end = _at_the_next_chunk
        changes = get_patch(opened.settings)
        yield pb.ImportReply(ready=pb.Empty())
        try:
            async with AsyncExitStack() as held:

                async def may_make(name: str) -> None:
                    call.require(name, CREATE)
                    if not opened.dry_run:
                        await held.enter_async_context(self._table.room.making(call, name))

                made = await import_stream(
                    self._table.namespace.client,
                    self._chunks(requests, call, counted=not opened.dry_run),
                    name=opened.stream or None,
                    changes=changes,
                    dry_run=opened.dry_run,
                    may_make=may_make,
                )
        except Exception:  # the status tells it; gRPC loses the status of a call that ends while its client still sends
            yield pb.ImportReply(stop=pb.Empty())
            await _discard(requests)
            raise
        yield pb.ImportReply(
            imported=pb.Imported(
                stream=made.name,
                stream_id=made.stream_id,
                start=put_position(made.start),
                segments=made.segments,
                records=made.records,
                totals=put_totals(made.totals),
            )
        )

    async def _chunks(
        self, requests: AsyncIterator[pb.ImportRequest], call: GrpcCall, *, counted: bool
    ) -> AsyncIterator[bytes]:
        """The file. Its end shows that it is complete, whoever ended the call. ``counted``: by the caller's rates."""
        watch = _CallWatch(call, self._draining)
        async for request in requests:
            watch.require_ongoing()
            if counted:
                await call.charge_in_time(1, len(request.chunk))
            self._metrics.imported_bytes.add(len(request.chunk))
            yield request.chunk


class _CallWatch:
    """Ends a long call when it must end, or the gateway ends."""

    def __init__(self, call: GrpcCall, draining: asyncio.Event) -> None:
        self._call = call
        self._draining = draining

    def require_ongoing(self) -> None:
        """Check that the call may continue. Raises: StreamAccessError, StreamNotReadyError."""
        if self._call.ended is not None:
            raise self._call.ended
        if self._draining.is_set():
            raise StreamNotReadyError("this gateway is being stopped: copy the stream through another one")


async def _discard(requests: AsyncIterator[pb.ImportRequest]) -> None:
    """Read until the client sends nothing more, or does not want to know why it should not."""
    with suppress(TimeoutError):
        async with asyncio.timeout(DISCARD_S):
            async for _ in requests:
                pass


def _at_the_next_chunk(error: StreamError) -> None:
    """A client that still sends would not hear why its call ends: see :meth:`TransferCalls.import_stream`."""
