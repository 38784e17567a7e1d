"""The streams of a cluster, through its gateways: connect, create, open, list, rename, delete."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from bookkeeper.real import read_private
from segments.checks.checker import CheckOptions
from segments.checks.findings import Finding
from segments.closing import Closing
from segments.config import StreamConfig
from segments.directory.directory import NamespaceEvent, StreamInfo
from segments.errors import StreamNotFoundError
from segments.names import check_stream_name
from segments.protocol import segments_pb2 as pb
from segments.protocol.messages import put_settings
from segments.protocol.report_messages import get_event, get_finding, get_info
from segments.remote.gateway_address import GatewayAddresses, GatewayCredentials
from segments.remote.gateway_channels import GatewayChannels
from segments.remote.remote_stream import RemoteStream
from segments.remote.remote_transfer import import_stream
from segments.transfer.transfer import ImportResult
from segments.write.opening import Opening


def connect(uri: str, *, access: GatewayCredentials | None = None) -> Opening[RemoteNamespace]:
    """Connect to gateways: ``async with connect("grpc://HOST:PORT,HOST:PORT") as namespace``.

    ``access`` is what the client shows; by default what the environment names (BK_TLS_CA, BK_TLS_CERT, BK_TLS_KEY,
    BK_GATEWAY_TOKEN_FILE) if the address begins with ``grpcs://``, and the token alone otherwise.

    Raises (when awaited or entered):
        StreamConfigError: the address is none of gateways, or a token would be sent to another host in clear.
        OSError: a file of the environment cannot be read. ConfigError: others may read one that holds a secret.
    """
    return Opening(partial(_connect, uri, access))


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


class RemoteNamespace(Closing):
    """All streams of one cluster, through its gateways. Belongs to the loop that made it."""

    def __init__(self, channels: GatewayChannels) -> None:
        self.channels = channels

    async def create(self, name: str, *, config: StreamConfig | None = None, exist_ok: bool = False) -> RemoteStream:
        """Make a stream; with ``exist_ok`` open it if there is one already, whatever its settings are.

        Raises:
            StreamExistsError, StreamNameError, StreamConfigError, StreamUnavailableError.
        """
        request = pb.CreateStreamRequest(
            stream=check_stream_name(name),
            settings=None if config is None else put_settings(config),
            exist_ok=exist_ok,
        )
        return RemoteStream(self.channels, await self.channels.call("Streams.Create", request, repeat=exist_ok))

    async def open(self, name: str, *, create: bool = False, config: StreamConfig | None = None) -> RemoteStream:
        """Open a stream; with ``create`` make it, with these settings, if there is none.

        Raises:
            StreamNotFoundError, StreamNameError, StreamUnavailableError.
        """
        name = check_stream_name(name)
        if create:
            return await self.create(name, config=config, exist_ok=True)
        return RemoteStream(self.channels, await self.channels.call("Streams.Get", pb.GetStreamRequest(stream=name)))

    async def exists(self, name: str) -> bool:
        """Whether there is a stream of this name. Raises: StreamNameError, StreamUnavailableError."""
        try:
            await self.open(name)
        except StreamNotFoundError:
            return False
        return True

    async def list(self, prefix: str = "") -> AsyncIterator[str]:
        """The names of the streams that begin with ``prefix``, sorted. Raises: StreamUnavailableError."""
        async for info in self.channels.stream("Streams.List", pb.ListStreamsRequest(prefix=prefix)):
            yield info.stream

    async def infos(self, prefix: str = "") -> AsyncIterator[StreamInfo]:
        """The streams whose names begin with ``prefix``, each in one line. Raises: as list."""
        async for info in self.channels.stream("Streams.List", pb.ListStreamsRequest(prefix=prefix)):
            yield get_info(info)

    async def watch(self, prefix: str = "") -> AsyncIterator[NamespaceEvent]:
        """The streams whose names begin with ``prefix``, as they come, go and are renamed; first those that exist.
        A kind of change that only later versions know is passed over.

        Raises:
            StreamUnavailableError: the gateway has gone. Another watch begins with the streams that exist then.
        """
        async for message in self.channels.stream("Streams.Watch", pb.WatchStreamsRequest(prefix=prefix)):
            if (event := get_event(message)) is not None:
                yield event

    async def rename(self, old: str, new: str) -> None:
        """Give a stream another name. Raises: StreamNotFoundError, StreamExistsError, StreamUnavailableError."""
        request = pb.RenameStreamRequest(stream=check_stream_name(old), new_name=check_stream_name(new))
        await self.channels.call("Streams.Rename", request, repeat=False)

    async def delete(self, name: str, *, missing_ok: bool = False, force: bool = False) -> None:
        """Delete a stream with everything that belongs to it. Raises: StreamNotFoundError, StreamHeldError."""
        request = pb.DeleteStreamRequest(stream=check_stream_name(name), missing_ok=missing_ok, force=force)
        await self.channels.call("Streams.Delete", request, repeat=missing_ok)

    async def import_stream(
        self,
        chunks: AsyncIterator[bytes],
        *,
        name: str | None = None,
        changes: Mapping[str, Any] | None = None,
        dry_run: bool = False,
    ) -> ImportResult:
        """Make a stream of an exported file, under its old name or another, with its positions kept. With ``dry_run``
        the file is only verified. ``changes`` are settings that shall differ.

        Raises:
            StreamCorruptError, UnsupportedStreamFormatError, StreamExistsError, StreamNameError, StreamConfigError,
            StreamAccessError, GatewayTooOldError: there is no new stream. StreamUnavailableError: the gateway went
            away; its ``outcome`` says whether the stream may be there.
        """
        if name is not None:
            name = check_stream_name(name)
        return await import_stream(self.channels, chunks, name=name, changes=changes or {}, dry_run=dry_run)

    async def verify(self, name: str | None = None, options: CheckOptions | None = None) -> tuple[Finding, ...]:
        """Compare what is known of a stream, or of all streams: records, ledgers, entries, cursors, names. With
        ``options.repair`` what can be repaired is.

        Raises:
            StreamNotFoundError, StreamUnavailableError, StreamAccessError, GatewayTooOldError. What is wrong is a
            finding, and no error.
        """
        options = options or CheckOptions()
        request = pb.CheckRequest(
            stream="" if name is None else check_stream_name(name),
            no_scan=not options.scan,
            repair=options.repair,
            no_orphans=not options.orphans,
            older_than_s=options.older_than_s,
        )
        replies = self.channels.stream("Streams.Check", request, repeat=not options.repair)
        return tuple([get_finding(each) async for reply in replies for each in reply.findings])

    async def close(self) -> None:
        """End the connections. Idempotent."""
        await self.channels.close()
