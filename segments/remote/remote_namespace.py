"""The streams of a cluster, through its gateways: connect, create, open, list, rename, delete."""

from __future__ import annotations

import operator
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from bookkeeper.real import read_private
from segments.checks.checker import CheckOptions
from segments.checks.findings import Finding
from segments.config import StreamConfig
from segments.directory.directory import NamespaceEvent, StreamInfo
from segments.errors import StreamAccessError, StreamCorruptError, StreamNotFoundError
from segments.namespace_front import NamespaceFront
from segments.protocol import segments_pb2 as pb
from segments.protocol.messages import put_settings
from segments.protocol.report_messages import get_event, get_finding, get_info
from segments.remote.gateway_address import GatewayAddresses, GatewayCredentials
from segments.remote.gateway_channels import GatewayChannels
from segments.remote.remote_stream import RemoteStream
from segments.remote.remote_transfer import import_stream
from segments.transfer.transfer import ImportResult
from segments.write.opening import PendingOpen


def connect(uri: str, *, access: GatewayCredentials | None = None) -> PendingOpen[RemoteNamespace]:
    """Connect to gateways: ``async with connect("grpc://HOST:PORT,HOST:PORT") as namespace``.

    ``access`` is what the client shows; by default what the environment names (BK_TLS_CA, BK_TLS_CERT, BK_TLS_KEY,
    BK_GATEWAY_TOKEN_FILE) if the address begins with ``grpcs://``, and the token alone otherwise.

    Raises (when awaited or entered):
        StreamConfigError: the address is none of gateways, or a token would be sent to another host in clear.
        OSError: a file of the environment cannot be read. ConfigError: others may read one that holds a secret.
    """
    return PendingOpen(partial(_connect, uri, access))


async def _connect(uri: str, access: GatewayCredentials | None) -> RemoteNamespace:
    addresses = GatewayAddresses.parse(uri)
    if access is None:
        names = ["BK_GATEWAY_TOKEN_FILE"]
        if addresses.tls:
            names += ["BK_TLS_CA", "BK_TLS_CERT", "BK_TLS_KEY"]
        environment = {name: os.environ[name] for name in names if name in os.environ}
        access = GatewayCredentials.from_environment(environment, lambda path: Path(path).read_bytes(), read_private)
    if addresses.tls and not access.is_encrypted:
        access = GatewayCredentials(tls=True, token=access.token)
    for address in addresses.addresses:
        access.require_protected(address)
    return RemoteNamespace(GatewayChannels(addresses.addresses, access))


class RemoteNamespace(NamespaceFront[RemoteStream]):
    """All streams of a cluster, through its gateways."""

    def __init__(self, channels: GatewayChannels) -> None:
        super().__init__()
        self.channels = channels

    async def _create(self, name: str, config: StreamConfig | None, exist_ok: bool) -> RemoteStream:
        settings = None if config is None else put_settings(config)
        request = pb.CreateStreamRequest(stream=name, settings=settings, exist_ok=exist_ok)
        return RemoteStream(self.channels, await self.channels.call("Streams.Create", request, repeat=exist_ok))

    async def _open(self, name: str) -> RemoteStream:
        return RemoteStream(self.channels, await self._find(name))

    async def _find(self, name: str) -> Any:
        return await self.channels.call("Streams.Get", pb.GetStreamRequest(stream=name))

    async def _list(self, prefix: str) -> AsyncIterator[str]:
        async for info in self.channels.stream("Streams.List", pb.ListStreamsRequest(prefix=prefix)):
            yield info.stream

    async def _infos(self, prefix: str) -> AsyncIterator[StreamInfo]:
        async for info in self.channels.stream("Streams.List", pb.ListStreamsRequest(prefix=prefix)):
            yield get_info(info)

    async def _watch(self, prefix: str) -> AsyncIterator[NamespaceEvent]:
        async for message in self.channels.stream("Streams.Watch", pb.WatchStreamsRequest(prefix=prefix)):
            if (event := get_event(message)) is not None:
                yield event

    async def _rename(self, old: str, new: str) -> None:
        await self.channels.call("Streams.Rename", pb.RenameStreamRequest(stream=old, new_name=new), repeat=False)

    async def _delete(self, name: str, missing_ok: bool, force: bool) -> None:
        request = pb.DeleteStreamRequest(stream=name, missing_ok=missing_ok, force=force)

        async def current() -> str | None:
            try:
                found = str((await self._find(name)).stream_id)
            except StreamNotFoundError:
                return None
            request.stream_id = request.stream_id or found  # an older gateway does not look at it
            return found

        if not missing_ok:
            with suppress(StreamAccessError, StreamCorruptError):  # he may delete it, and not look at it
                await current()
            await self.channels.call("Streams.Delete", request, repeat=False)
            return
        await self.channels.remove("Streams.Delete", request, current, operator.eq)

    async def _import(
        self, chunks: AsyncIterator[bytes], name: str | None, changes: Mapping[str, Any], dry_run: bool
    ) -> ImportResult:
        return await import_stream(self.channels, chunks, name=name, changes=changes, dry_run=dry_run)

    async def _verify(self, name: str | None, options: CheckOptions) -> tuple[Finding, ...]:
        request = pb.CheckRequest(
            stream=name or "",
            no_scan=not options.scan,
            repair=options.repair,
            no_orphans=not options.orphans,
            older_than_s=options.older_than_s,
        )
        replies = self.channels.stream("Streams.Check", request, repeat=not options.repair)
        return tuple([get_finding(each) async for reply in replies for each in reply.findings])

    async def _end(self) -> None:
        await self.channels.close()
