"""The services Streams and Operations: making, finding, listing, watching, renaming, deleting and sealing streams."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from bookkeeper.chains.orphans import ORPHAN_AGE_S
from segments.checks.checker import CheckOptions
from segments.config import StreamConfig
from segments.directory.directory import NameChange, NamespaceEvent, info_of
from segments.errors import StreamError, StreamNotFoundError, StreamSealedError
from segments.gateway.calls.append_calls import elsewhere
from segments.gateway.calls.served_streams import ServedStream, ServedStreams
from segments.gateway.guard.call_guard import Behaviour
from segments.gateway.guard.grpc_call import GrpcCall
from segments.protocol import segments_pb2 as pb
from segments.protocol.messages import get_patch, get_settings, put_position
from segments.protocol.report_messages import put_event, put_findings, put_info, put_overview
from segments.retention.deletion import delete_stream


class StreamCalls:
    """The behaviours of the services."""

    def __init__(self, table: ServedStreams, address: str) -> None:
        """``address`` is where this gateway answers."""
        self._table = table
        self._address = address

    @property
    def behaviours(self) -> Mapping[str, Behaviour]:
        """By service and name."""
        return {
            "Streams.Create": self.create,
            "Streams.Get": self.get,
            "Streams.List": self.list,
            "Streams.Watch": self.watch,
            "Streams.UpdateConfig": self.update_config,
            "Streams.Rename": self.rename,
            "Streams.Delete": self.delete,
            "Streams.GetOwner": self.get_owner,
            "Streams.Seal": self.seal,
            "Streams.Show": self.show,
            "Streams.Check": self.check,
            "Operations.Get": self.get_operation,
        }

    async def create(self, request: pb.CreateStreamRequest, call: GrpcCall) -> pb.StreamInfo:
        """Make a stream. Raises: as ``StreamNamespace.create``. TooManyStreamsError: its tenant has enough."""
        config = get_settings(request.settings) if request.settings.values else StreamConfig()
        async with self._table.room.making(call, request.stream):
            stream = await self._table.namespace.create(request.stream, config=config, exist_ok=request.exist_ok)
        return await self._info(self._table.add(request.stream, stream))

    async def get(self, request: pb.GetStreamRequest, call: GrpcCall) -> pb.StreamInfo:
        """What a stream is. Raises: as ``StreamNamespace.open``."""
        return await self._info(await self._table.get_fresh(request.stream))

    async def list(self, request: pb.ListStreamsRequest, call: GrpcCall) -> AsyncIterator[pb.StreamInfo]:
        """The streams that the caller may use, sorted by name."""
        async for name in self._table.namespace.list(request.prefix):
            if call.sees(name):
                try:
                    yield await self._info(await self._table.get(name))
                except StreamNotFoundError:
                    continue  # it was deleted meanwhile

    async def watch(self, request: pb.WatchStreamsRequest, call: GrpcCall) -> AsyncIterator[pb.NamespaceEvent]:
        """Streams that come, go and are renamed; first those that exist."""
        async for event in self._table.namespace.watch(request.prefix):
            told = _as_seen(event, call)
            if told is not None:
                yield put_event(told)

    async def update_config(self, request: pb.UpdateConfigRequest, call: GrpcCall) -> pb.StreamInfo:
        """Change settings. Raises: as ``Stream.configure``."""
        served = await self._table.get_fresh(request.stream)
        await served.stream.configure(get_patch(request.settings))
        return await self._info(served)

    async def rename(self, request: pb.RenameStreamRequest, call: GrpcCall) -> pb.StreamInfo:
        """Give a stream another name. Raises: as ``StreamNamespace.rename``. TooManyStreamsError: the tenant who would
        own it has enough."""
        async with self._table.room.making(call, request.new_name, was=request.stream):
            await self._table.namespace.rename(request.stream, request.new_name)
        self._table.forget(request.stream)
        return await self._info(await self._table.get_fresh(request.new_name))

    async def delete(self, request: pb.DeleteStreamRequest, call: GrpcCall) -> pb.Operation:
        """Delete a stream. Raises: as ``StreamNamespace.delete``."""
        namespace = self._table.namespace
        if request.stream_id:
            try:
                await delete_stream(namespace.client, request.stream, force=request.force, only=request.stream_id)
            except StreamNotFoundError:
                if not request.missing_ok:
                    raise
        else:
            await namespace.delete(request.stream, missing_ok=request.missing_ok, force=request.force)
        self._table.forget(request.stream)
        return pb.Operation(done=True)

    async def get_owner(self, request: pb.GetOwnerRequest, call: GrpcCall) -> pb.OwnerInfo:
        """Which gateway owns the stream. The caller need not take it for that."""
        served = await self._table.get(request.stream)
        chain = await served.stream.chain()
        if served.ownership.is_here:
            return pb.OwnerInfo(address=self._address, here=True, epoch=chain.epoch)
        return pb.OwnerInfo(address=chain.location, here=False, epoch=chain.epoch)

    async def seal(self, request: pb.SealRequest, call: GrpcCall) -> pb.PositionReply:
        """End a stream for good; sealing again is no change. Raises: as ``Writer.seal``, and GatewayRedirectError."""
        served = await self._table.get_fresh(request.stream)
        try:
            writer = await served.ownership.writer()
            last = await writer.seal()
            await served.ownership.release()
        except StreamSealedError:
            last = (await served.stream.chain()).last_position
        except StreamError as error:
            raise elsewhere(error, request.stream) from error
        return pb.PositionReply(position=None if last is None else put_position(last))

    async def show(self, request: pb.ShowStreamRequest, call: GrpcCall) -> AsyncIterator[pb.ShowReply]:
        """All that is known of a stream. Raises: as ``Stream.show``."""
        shown = await (await self._table.get(request.stream)).stream.show()
        for reply in put_overview(shown):
            yield reply

    async def check(self, request: pb.CheckRequest, call: GrpcCall) -> AsyncIterator[pb.CheckReply]:
        """What is wrong with a stream, or with all. Raises: as ``StreamNamespace.verify``."""
        options = CheckOptions(
            scan=not request.no_scan,
            repair=request.repair,
            orphans=not request.no_orphans,
            older_than_s=request.older_than_s if request.HasField("older_than_s") else ORPHAN_AGE_S,
        )
        for reply in put_findings(await self._table.namespace.verify(request.stream or None, options)):
            yield reply

    async def get_operation(self, request: pb.GetOperationRequest, call: GrpcCall) -> pb.Operation:
        """Every operation is done when its call returns, so there is none to ask for."""
        raise StreamNotFoundError(f"there is no operation {request.id}: all end with the call that begins them")

    async def _info(self, served: ServedStream) -> pb.StreamInfo:
        """The settings are read anew: somebody may have changed them at another gateway."""
        stream = served.stream
        chain, config = await stream.chain(), await stream.read_config()
        return put_info(info_of(stream.name, chain), config, chain.start)


def _as_seen(event: NamespaceEvent, call: GrpcCall) -> NamespaceEvent | None:
    """What a caller is told of an event: of names that he may not know, neither the new one nor the former one. A
    stream that is renamed out of his sight is deleted to him, one that comes into it is created."""
    sees = call.sees(event.name)
    if event.was is None:
        return event if sees else None
    saw = call.sees(event.was)
    if sees and saw:
        return event
    if sees:
        return NamespaceEvent(NameChange.CREATED, event.name, event.stream_id)
    return NamespaceEvent(NameChange.DELETED, event.was, event.stream_id) if saw else None
