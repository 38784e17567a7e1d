"""What the streams of a cluster are to an application, wherever they are: make, open, rename, delete, copy, check."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Mapping
from typing import Any, Generic, TypeVar

from segments.checks.checker import CheckOptions
from segments.checks.findings import Finding
from segments.closing import Closing
from segments.config import StreamConfig
from segments.directory.directory import NamespaceEvent, StreamInfo
from segments.errors import StreamClosedError, StreamConfigError, StreamNotFoundError
from segments.names import check_stream_name
from segments.retention.deletion import Tombstone
from segments.stream_front import StreamFront
from segments.transfer.transfer import ImportResult

S = TypeVar("S", bound=StreamFront)


class NamespaceFront(Closing, Generic[S]):
    """All streams of one cluster. Belongs to the loop that made it. Through gateways errors are also
    StreamUnavailableError, where none answers, StreamAccessError and GatewayTooOldError."""

    def __init__(self) -> None:
        self._closed = False

    async def create(self, name: str, *, config: StreamConfig | None = None, exist_ok: bool = False) -> S:
        """Make a stream; with ``exist_ok`` open it if there is one already, whatever its settings are.

        Raises:
            StreamExistsError, StreamNameError, StreamConfigError, StreamMetadataError.
        """
        return await self._create(self._checked(name), config, exist_ok)

    @abstractmethod
    async def _create(self, name: str, config: StreamConfig | None, exist_ok: bool) -> S:
        """Make a stream."""

    async def open(self, name: str, *, create: bool = False, config: StreamConfig | None = None) -> S:
        """Open a stream; with ``create`` make it, with these settings, if there is none.

        Raises:
            StreamNotFoundError, StreamNameError, StreamMetadataError.
        """
        name = self._checked(name)
        return await (self._open_or_create(name, config) if create else self._open(name))

    @abstractmethod
    async def _open(self, name: str) -> S:
        """Open a stream that is there."""

    async def _open_or_create(self, name: str, config: StreamConfig | None) -> S:
        return await self._create(name, config, exist_ok=True)

    async def exists(self, name: str) -> bool:
        """Whether there is a stream of this name. Raises: StreamNameError, StreamMetadataError."""
        try:
            await self._find(self._checked(name))
        except StreamNotFoundError:
            return False
        return True

    @abstractmethod
    async def _find(self, name: str) -> object:
        """Find a stream. Raises: StreamNotFoundError."""

    async def list(self, prefix: str = "") -> AsyncIterator[str]:
        """The names of the streams that begin with ``prefix``, sorted. Raises: StreamMetadataError."""
        self.ensure_open()
        async for name in self._list(prefix):
            yield name

    @abstractmethod
    def _list(self, prefix: str) -> AsyncIterator[str]:
        """The names."""

    async def infos(self, prefix: str = "") -> AsyncIterator[StreamInfo]:
        """The streams whose names begin with ``prefix``, each in one line. Raises: StreamMetadataError."""
        self.ensure_open()
        async for info in self._infos(prefix):
            yield info

    @abstractmethod
    def _infos(self, prefix: str) -> AsyncIterator[StreamInfo]:
        """The streams."""

    async def watch(self, prefix: str = "") -> AsyncIterator[NamespaceEvent]:
        """The streams whose names begin with ``prefix``, as they come, go and are renamed; first those that exist.
        Behind gateways a kind of change that only later versions know is passed over.

        Raises:
            StreamMetadataError. StreamUnavailableError: the gateway has gone; another watch begins with the streams
            that exist then.
        """
        self.ensure_open()
        async for event in self._watch(prefix):
            yield event

    @abstractmethod
    def _watch(self, prefix: str) -> AsyncIterator[NamespaceEvent]:
        """The changes."""

    async def rename(self, old: str, new: str) -> None:
        """Give a stream another name. Writers, readers and cursors go on.

        Raises:
            StreamNotFoundError, StreamExistsError, StreamNameError, StreamMetadataError.
        """
        await self._rename(self._checked(old), check_stream_name(new))

    @abstractmethod
    async def _rename(self, old: str, new: str) -> None:
        """Give a stream another name."""

    async def delete(self, name: str, *, missing_ok: bool = False, force: bool = False) -> None:
        """Delete a stream with everything that belongs to it. A running writer is fenced.

        Args:
            force: also if an active hold is on it.

        Raises:
            StreamNotFoundError, StreamHeldError. StreamUnavailableError: its name is gone, and a ledger could not be
            deleted now; ``finish_deletions()`` goes on. StreamMetadataError.
        """
        try:
            await self._delete(self._checked(name), missing_ok, force)
        except StreamNotFoundError:
            if not missing_ok:
                raise

    @abstractmethod
    async def _delete(self, name: str, missing_ok: bool, force: bool) -> None:
        """Delete a stream. It may raise StreamNotFoundError also with ``missing_ok``."""

    async def finish_deletions(self) -> tuple[Tombstone, ...]:
        """Finish the deletions that a crash has left; returns them. Raises: as delete(). StreamConfigError: the cluster
        is behind gateways."""
        raise StreamConfigError(
            "gateways do not finish deletions: connect to the cluster by the URI of its metadata, and finish them there"
        )

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
            StreamMetadataError: there is no new stream. StreamUnavailableError: nor is there, unless a gateway went
            away; the error's ``outcome`` says whether the stream may be there.
        """
        self.ensure_open()
        return await self._import(chunks, None if name is None else check_stream_name(name), changes or {}, dry_run)

    @abstractmethod
    async def _import(
        self, chunks: AsyncIterator[bytes], name: str | None, changes: Mapping[str, Any], dry_run: bool
    ) -> ImportResult:
        """Make a stream of a file."""

    async def verify(self, name: str | None = None, options: CheckOptions | None = None) -> tuple[Finding, ...]:
        """Compare what is known of a stream, or of all streams: records, ledgers, entries, cursors, names. With
        ``options.repair`` what can be repaired is.

        Raises:
            StreamNotFoundError, StreamMetadataError, StreamUnavailableError. What is wrong is a finding, and no error.
        """
        self.ensure_open()
        return await self._verify(None if name is None else check_stream_name(name), options or CheckOptions())

    @abstractmethod
    async def _verify(self, name: str | None, options: CheckOptions) -> tuple[Finding, ...]:
        """Check a stream, or all."""

    def ensure_open(self) -> None:
        """Raise StreamClosedError if this namespace was closed."""
        if self._closed:
            raise StreamClosedError("this namespace is closed: connect() again")

    def _checked(self, name: str) -> str:
        self.ensure_open()
        return check_stream_name(name)

    async def close(self) -> None:
        """End the connection; writers that are still open are not closed: the next owner recovers them. Idempotent."""
        if not self._closed:
            self._closed = True
            await self._end()

    @abstractmethod
    async def _end(self) -> None:
        """End the connection."""
