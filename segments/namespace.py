"""The streams of a cluster: connect, create, open, list."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from bookkeeper import BookKeeper
from bookkeeper.errors import NoSuchKeyError
from bookkeeper.secret import without_secrets
from segments.arguments import check_address
from segments.checks.checker import CheckOptions, StreamChecker
from segments.checks.findings import Finding
from segments.closing import Closing
from segments.config import DEFAULTS, StreamConfig
from segments.directory.directory import NamespaceEvent, StreamInfo, list_streams, rename_stream, watch_streams
from segments.error_translation import worded
from segments.errors import StreamClosedError, StreamExistsError, StreamNotFoundError
from segments.names import check_stream_name, names_path, new_stream_id, unescape_name
from segments.retention.cursor_places import cursor_needs
from segments.retention.deletion import Tombstone, delete_stream, finish_deletions
from segments.stream import Stream
from segments.stream_settings import find_stream, make_stream, read_settings
from segments.transfer.transfer import ImportResult, import_stream
from segments.write.opening import Opening

if TYPE_CHECKING:
    from bookkeeper import ClientConfig


def connect(
    uri: str, *, config: ClientConfig | None = None, client: BookKeeper | None = None
) -> Opening[StreamNamespace]:
    """Connect to the streams of the cluster at a metadata URI: ``async with connect(uri) as namespace``.

    It takes every address that ``BookKeeper.connect`` takes, and ``grpc://HOST:PORT`` of gateways (see
    :mod:`segments.remote`). With ``client`` that client is used, and stays open.

    Raises (when awaited or entered):
        StreamConfigError: the address is not a metadata URI, or there is no cluster at it.
        StreamMetadataError: the store does not answer.
    """
    if client is None and isinstance(uri, str) and uri.startswith(("grpc://", "grpcs://")):
        from segments.remote import connect as connect_gateways  # gRPC is an extra

        return cast("Opening[StreamNamespace]", connect_gateways(uri))
    return Opening(partial(_connect, uri, config, client))


async def _connect(uri: str, config: ClientConfig | None, client: BookKeeper | None) -> StreamNamespace:
    if client is not None:
        return StreamNamespace(client, owns_client=False)
    check_address(uri)
    with worded(f"connecting to {without_secrets(uri)}"):
        return StreamNamespace(await BookKeeper.connect(uri, config=config), owns_client=True)


class StreamNamespace(Closing):
    """All streams of one cluster. Belongs to the loop that made it."""

    def __init__(self, client: BookKeeper, *, owns_client: bool = False) -> None:
        self.client = client
        self._owns_client = owns_client
        self._closed = False

    async def create(self, name: str, *, config: StreamConfig | None = None, exist_ok: bool = False) -> Stream:
        """Make a stream; with ``exist_ok`` open it if there is one already, whatever its settings are.

        Raises:
            StreamExistsError, StreamNameError, StreamMetadataError.
        """
        self.ensure_open()
        name = check_stream_name(name)
        settings = config or DEFAULTS
        stream_id = new_stream_id(self.client.services.seams.rng.getrandbits(128))
        try:
            await make_stream(self.client.metadata_store, name, stream_id, settings)
        except StreamExistsError:
            if not exist_ok:
                raise
            return await self.open(name)
        return Stream(self.client, name, stream_id, settings)

    async def open(self, name: str, *, create: bool = False, config: StreamConfig | None = None) -> Stream:
        """Open a stream; with ``create`` make it, with these settings, if there is none.

        Raises:
            StreamNotFoundError, StreamNameError, StreamMetadataError.
        """
        self.ensure_open()
        name = check_stream_name(name)
        metadata = self.client.metadata_store
        try:
            stream_id = await find_stream(metadata, name)
        except StreamNotFoundError:
            if not create:
                raise
            return await self.create(name, config=config, exist_ok=True)
        return Stream(self.client, name, stream_id, await read_settings(metadata, name, stream_id))

    async def exists(self, name: str) -> bool:
        """Whether there is a stream of this name. Raises: StreamNameError, StreamMetadataError."""
        self.ensure_open()
        try:
            await find_stream(self.client.metadata_store, check_stream_name(name))
        except StreamNotFoundError:
            return False
        return True

    async def list(self, prefix: str = "") -> AsyncIterator[str]:
        """The names of the streams that begin with ``prefix``, sorted. Raises: StreamMetadataError."""
        self.ensure_open()
        metadata = self.client.metadata_store
        with worded("listing streams"):
            try:
                names = await metadata.store.children(names_path(metadata))
            except NoSuchKeyError:
                return
        for name in sorted(map(unescape_name, names)):
            if name.startswith(prefix):
                yield name

    async def infos(self, prefix: str = "") -> AsyncIterator[StreamInfo]:
        """The streams whose names begin with ``prefix``, each in one line. Raises: StreamMetadataError."""
        self.ensure_open()
        async for info in list_streams(self.client, prefix):
            yield info

    async def watch(self, prefix: str = "") -> AsyncIterator[NamespaceEvent]:
        """The streams whose names begin with ``prefix``, as they come, go and are renamed; first those that exist.
        Raises: StreamMetadataError."""
        self.ensure_open()
        async for event in watch_streams(self.client, prefix):
            yield event

    async def rename(self, old: str, new: str) -> None:
        """Give a stream another name. Writers, readers and cursors go on.

        Raises:
            StreamNotFoundError, StreamExistsError, StreamNameError, StreamMetadataError.
        """
        self.ensure_open()
        await rename_stream(self.client, check_stream_name(old), new)

    async def delete(self, name: str, *, missing_ok: bool = False, force: bool = False) -> None:
        """Delete a stream with everything that belongs to it. A running writer is fenced.

        Args:
            force: also if an active hold is on it.

        Raises:
            StreamNotFoundError, StreamHeldError. StreamUnavailableError: its name is gone, and a ledger could not be
            deleted now; ``finish_deletions()`` goes on. StreamMetadataError.
        """
        self.ensure_open()
        try:
            await delete_stream(self.client, check_stream_name(name), force=force)
        except StreamNotFoundError:
            if not missing_ok:
                raise

    async def finish_deletions(self) -> tuple[Tombstone, ...]:
        """Finish the deletions that a crash has left; returns them. Raises: as delete()."""
        self.ensure_open()
        return await finish_deletions(self.client)

    async def import_stream(
        self,
        chunks: AsyncIterator[bytes],
        *,
        name: str | None = None,
        changes: dict[str, Any] | None = None,
        dry_run: bool = False,
    ) -> ImportResult:
        """Make a stream of an exported file, under its old name or another, with its positions kept. With ``dry_run``
        the file is only verified. ``changes`` are settings that shall differ.

        Raises:
            StreamCorruptError, UnsupportedStreamFormatError, StreamExistsError, StreamNameError, StreamConfigError,
            StreamUnavailableError, StreamMetadataError. In all cases there is no new stream.
        """
        self.ensure_open()
        return await import_stream(self.client, chunks, name=name, changes=changes, dry_run=dry_run)

    async def verify(self, name: str | None = None, options: CheckOptions | None = None) -> tuple[Finding, ...]:
        """Compare what is known of a stream, or of all streams: records, ledgers, entries, cursors, names. With
        ``options.repair`` what can be repaired is.

        Raises:
            StreamNotFoundError, StreamMetadataError, StreamUnavailableError. What is wrong is a finding, and no error.
        """
        self.ensure_open()
        checker = StreamChecker(self.client, partial(cursor_needs, self.client.metadata_store), options)
        if name is None:
            return await checker.check_all()
        name = check_stream_name(name)
        return await checker.check(name, await find_stream(self.client.metadata_store, name))

    def ensure_open(self) -> None:
        """Raise StreamClosedError if this namespace was closed."""
        if self._closed:
            raise StreamClosedError("this namespace is closed: connect() again")

    async def close(self) -> None:
        """End the connection; writers that are still open are not closed: the next owner recovers them. Idempotent."""
        if not self._closed:
            self._closed = True
            if self._owns_client:
                await self.client.close()
