"""Blobs as ledgers: one ledger a blob, entries of one fixed size, so that an offset names an entry.

A ledger's custom metadata name its namespace and the owner that began it. That is how orphans are found.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import Final, Literal, Protocol
from urllib.parse import quote

from bookkeeper.access import ResourceKind
from bookkeeper.access.ownership import owner_text
from bookkeeper.chains.password import new_password
from bookkeeper.errors import BookKeeperError, CorruptionError, DataMissingError, NoSuchLedgerError
from bookkeeper.ids import LedgerId
from bookkeeper.ledger import LedgerMetadata
from bookkeeper.seams import Rng
from spark_wal.webhdfs.contents.blob_store import BlobInfo, BlobMissingError, BlobWriter

ENTRY_SIZE: Final = 256 * 1024
"""Bytes in every entry of a blob except the last."""

IN_FLIGHT: Final = 16
"""Entries of one upload that may be in flight."""

APPLICATION: Final = b"spark_wal"


class BlobLedgerWriter(Protocol):
    """The part of :class:`bookkeeper.client.write.write_handle.WriteHandle` that is used here."""

    @property
    def id(self) -> LedgerId: ...
    async def append(self, payload: bytes) -> int: ...
    async def close(self) -> None: ...
    async def abandon(self) -> None: ...


class BlobLedgerReader(Protocol):
    """The part of :class:`bookkeeper.client.read.read_handle.ReadHandle` that is used here."""

    @property
    def last_add_confirmed(self) -> int: ...
    def read(self, first: int, last: int) -> AsyncIterator[tuple[int, bytes]]: ...
    async def close(self) -> None: ...


class BlobLedgers(Protocol):
    """The part of :class:`bookkeeper.BookKeeper` that is used here."""

    async def create_ledger(
        self,
        *,
        password: bytes,
        custom_metadata: Mapping[str, bytes] | None,
        when_short: Literal["fail", "name_absent"],
        owner: str | None,
    ) -> BlobLedgerWriter: ...
    async def open_ledger(self, ledger_id: int, password: bytes | None, *, recovery: bool) -> BlobLedgerReader: ...
    async def delete_ledger(self, ledger_id: int) -> None: ...
    def list_ledgers(self) -> AsyncIterator[LedgerId]: ...
    async def metadata(self, ledger_id: int) -> LedgerMetadata: ...


class LedgerBlobs:
    """The blobs of one namespace, on a cluster. Each has a random password of its own, which its ledger's metadata
    keep."""

    def __init__(self, ledgers: BlobLedgers, namespace: str, rng: Rng) -> None:
        self._ledgers = ledgers
        self._rng = rng
        self._namespace = namespace.encode()
        self._owner = owner_text(ResourceKind.JOURNALS, f"webhdfs/{quote(namespace)}")
        """That of the namespace's journal: who may write the one may write the other."""

    async def create(self, epoch: int) -> BlobWriter:
        custom = {"application": APPLICATION, "namespace": self._namespace, "epoch": str(epoch).encode()}
        handle = await self._ledgers.create_ledger(
            password=new_password(self._rng), custom_metadata=custom, when_short="name_absent", owner=self._owner
        )
        return _LedgerBlobWriter(self, handle)

    async def read(self, blob: str, offset: int, length: int) -> AsyncIterator[bytes]:
        if length == 0:
            return
        first, skip = divmod(offset, ENTRY_SIZE)
        last = (offset + length - 1) // ENTRY_SIZE
        left = length
        try:
            reader = await self._ledgers.open_ledger(int(blob), None, recovery=False)
            try:
                if last > reader.last_add_confirmed:
                    raise BlobMissingError(
                        f"ledger {blob}, which holds a file, ends at entry {reader.last_add_confirmed}, not at {last}"
                    )
                async for _, payload in reader.read(first, last):
                    data = payload[skip : skip + left]
                    skip = 0
                    left -= len(data)
                    yield data
            finally:
                await reader.close()
        except (NoSuchLedgerError, DataMissingError, CorruptionError) as error:
            raise BlobMissingError(f"ledger {blob}, which holds a file, cannot be read: {error}") from error
        if left:
            raise BlobMissingError(f"ledger {blob}, which holds a file, is {left} bytes too short")

    async def delete(self, blob: str) -> None:
        try:
            await self._ledgers.delete_ledger(int(blob))
        except NoSuchLedgerError:
            return

    async def list(self) -> list[BlobInfo]:
        """List the blobs. It reads the metadata of every ledger of the cluster, so it is slow."""
        found: list[BlobInfo] = []
        async for ledger in self._ledgers.list_ledgers():
            try:
                custom = (await self._ledgers.metadata(ledger)).custom
            except NoSuchLedgerError:
                continue
            if custom.get("application") == APPLICATION and custom.get("namespace") == self._namespace:
                found.append(BlobInfo(str(ledger), int(custom.get("epoch", b"0"))))
        return found

    async def close(self) -> None:
        """Does nothing: the client's maker closes it."""


class _LedgerBlobWriter:
    """Cuts bytes into entries, and keeps a few entries in flight."""

    def __init__(self, store: LedgerBlobs, handle: BlobLedgerWriter) -> None:
        self._store = store
        self._handle = handle
        self._buffer = bytearray()
        self._in_flight: deque[asyncio.Future[int]] = deque()

    @property
    def blob(self) -> str:
        return str(self._handle.id)

    async def write(self, data: bytes) -> None:
        self._buffer += data
        while len(self._buffer) >= ENTRY_SIZE:
            await self._append(bytes(memoryview(self._buffer)[:ENTRY_SIZE]))
            del self._buffer[:ENTRY_SIZE]

    async def finish(self) -> None:
        if self._buffer:
            await self._append(bytes(self._buffer))
            self._buffer.clear()
        while self._in_flight:
            await self._in_flight.popleft()
        await self._handle.close()

    async def abandon(self) -> None:
        for future in self._in_flight:
            future.cancel()
        try:
            await self._handle.abandon()
            await self._store.delete(self.blob)
        except BookKeeperError:
            return  # an orphan: a later owner collects it

    async def _append(self, entry: bytes) -> None:
        while len(self._in_flight) >= IN_FLIGHT:
            await self._in_flight.popleft()
        self._in_flight.append(asyncio.ensure_future(self._handle.append(entry)))
