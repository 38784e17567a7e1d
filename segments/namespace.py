"""The streams of a cluster: connect, create, open, list."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from bookkeeper import BookKeeper
from bookkeeper.chains.password import new_password
from bookkeeper.errors import NoSuchKeyError
from bookkeeper.secret import without_secrets
from segments.arguments import check_address, is_gateway_uri
from segments.checks.checker import CheckOptions, StreamChecker
from segments.checks.findings import Finding
from segments.config import DEFAULTS, StreamConfig
from segments.directory.directory import NamespaceEvent, StreamInfo, list_streams, rename_stream, watch_streams
from segments.error_translation import worded
from segments.errors import StreamExistsError, StreamNotFoundError
from segments.names import names_path, new_stream_id, unescape_name
from segments.namespace_front import NamespaceFront
from segments.retention.cursor_positions import cursor_needs
from segments.retention.deletion import Tombstone, delete_stream, finish_deletions
from segments.stream import Stream
from segments.stream_settings import find_stream, make_stream, read_settings
from segments.transfer.transfer import ImportResult, import_stream
from segments.write.opening import PendingOpen

if TYPE_CHECKING:
    from bookkeeper import ClientConfig


def connect(
    uri: str, *, config: ClientConfig | None = None, client: BookKeeper | None = None
) -> PendingOpen[StreamNamespace]:
    """Connect to the streams of the cluster at a metadata URI: ``async with connect(uri) as namespace``.

    It takes every address that ``BookKeeper.connect`` takes, and ``grpc://HOST:PORT`` of gateways (see
    :mod:`segments.remote`). With ``client`` that client is used, and stays open.

    Raises (when awaited or entered):
        StreamConfigError: the address is not a metadata URI, or there is no cluster at it.
        StreamMetadataError: the store does not answer.
    """
    if client is None and isinstance(uri, str) and is_gateway_uri(uri):
        from segments.remote import connect as connect_gateways  # gRPC is an extra

        return cast("PendingOpen[StreamNamespace]", connect_gateways(uri))
    return PendingOpen(partial(_connect, uri, config, client))


async def _connect(uri: str, config: ClientConfig | None, client: BookKeeper | None) -> StreamNamespace:
    if client is not None:
        return StreamNamespace(client, owns_client=False)
    check_address(uri)
    with worded(f"connecting to {without_secrets(uri)}"):
        return StreamNamespace(await BookKeeper.connect(uri, config=config), owns_client=True)


class StreamNamespace(NamespaceFront[Stream]):
    """All streams of a cluster, with a client of it."""

    def __init__(self, client: BookKeeper, *, owns_client: bool = False) -> None:
        super().__init__()
        self.client = client
        self._owns_client = owns_client

    async def _create(self, name: str, config: StreamConfig | None, exist_ok: bool) -> Stream:
        settings = config or DEFAULTS
        stream_id = new_stream_id(self.client.services.seams.rng.getrandbits(128))
        try:
            await make_stream(
                self.client.metadata_store, name, stream_id, settings, new_password(self.client.services.seams.rng)
            )
        except StreamExistsError:
            if not exist_ok:
                raise
            return await self._open(name)
        return Stream(self.client, name, stream_id, settings)

    async def _open(self, name: str) -> Stream:
        stream_id = await self._find(name)
        return Stream(self.client, name, stream_id, await read_settings(self.client.metadata_store, name, stream_id))

    async def _open_or_create(self, name: str, config: StreamConfig | None) -> Stream:
        try:
            return await self._open(name)
        except StreamNotFoundError:
            return await self._create(name, config, exist_ok=True)

    async def _find(self, name: str) -> str:
        return await find_stream(self.client.metadata_store, name)

    async def _list(self, prefix: str) -> AsyncIterator[str]:
        metadata = self.client.metadata_store
        with worded("listing streams"):
            path = names_path(metadata)
            await metadata.store.sync(path)  # a stream that somebody has just made is listed
            try:
                names = await metadata.store.children(path)
            except NoSuchKeyError:
                return
        for name in sorted(map(unescape_name, names)):
            if name.startswith(prefix):
                yield name

    def _infos(self, prefix: str) -> AsyncIterator[StreamInfo]:
        return list_streams(self.client, prefix)

    def _watch(self, prefix: str) -> AsyncIterator[NamespaceEvent]:
        return watch_streams(self.client, prefix)

    async def _rename(self, old: str, new: str) -> None:
        await rename_stream(self.client, old, new)

    async def _delete(self, name: str, missing_ok: bool, force: bool) -> None:
        await delete_stream(self.client, name, force=force)

    async def finish_deletions(self) -> tuple[Tombstone, ...]:
        """Finish the deletions that a crash has left; returns them. Raises: as delete()."""
        self.ensure_open()
        return await finish_deletions(self.client)

    async def _import(
        self, chunks: AsyncIterator[bytes], name: str | None, changes: Mapping[str, Any], dry_run: bool
    ) -> ImportResult:
        return await import_stream(self.client, chunks, name=name, changes=dict(changes), dry_run=dry_run)

    async def _verify(self, name: str | None, options: CheckOptions) -> tuple[Finding, ...]:
        checker = StreamChecker(self.client, partial(cursor_needs, self.client.metadata_store), options)
        return await (checker.check_all() if name is None else checker.check(name, await self._find(name)))

    async def _end(self) -> None:
        if self._owns_client:
            await self.client.close()
