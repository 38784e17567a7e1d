"""Blobs: bytes that are too large for a journal record. A blob is written once, and read at offsets.

A blob belongs to the file in the namespace that refers to it. A blob without such a file is an orphan, left by an
upload that ended with its gateway; a later owner collects it. Its epoch says which owner began it. Only blobs of
*earlier* owners are collected, so a running upload is never taken for an orphan.

The ledger store (one ledger a blob) is in :mod:`spark_wal.webhdfs.contents.ledger_blobs`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final, Protocol

from bookkeeper.seams import Disk, File, Rng, Worker

READ_SIZE: Final = 256 * 1024
"""Bytes that a read yields at a time."""


class BlobMissingError(Exception):
    """A blob is missing, or too short for the file that refers to it. This never means "no such file"."""


@dataclass(frozen=True, slots=True)
class BlobInfo:
    blob: str
    epoch: int
    """The epoch of the owner that began it."""


class BlobWriter(Protocol):
    """Writes one blob. One call at a time."""

    @property
    def blob(self) -> str: ...

    async def write(self, data: bytes) -> None:
        """Write bytes; wait while too many are in flight."""

    async def finish(self) -> None:
        """End the blob. Every byte is durable when this returns; nothing can be added any more."""

    async def abandon(self) -> None:
        """Give up: the blob is removed, now or by a later collection. Never raises."""


class BlobStore(Protocol):
    """Keeps blobs."""

    async def create(self, epoch: int) -> BlobWriter: ...

    def read(self, blob: str, offset: int, length: int) -> AsyncIterator[bytes]:
        """Read ``length`` bytes from ``offset``, in parts.

        Raises (while iterating):
            BlobMissingError: some of the bytes are missing.
        """

    async def delete(self, blob: str) -> None:
        """Remove a blob. A missing blob is no error."""

    async def list(self) -> list[BlobInfo]:
        """List all blobs of this namespace, finished or not."""

    async def close(self) -> None: ...


class MemoryBlobs:
    """Blobs in this process, for tests and for namespaces that need not outlive it."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytearray] = {}
        self.epochs: dict[str, int] = {}

    async def create(self, epoch: int) -> BlobWriter:
        blob = f"{len(self.epochs)}"
        self.blobs[blob] = bytearray()
        self.epochs[blob] = epoch
        return _MemoryWriter(self, blob)

    async def read(self, blob: str, offset: int, length: int) -> AsyncIterator[bytes]:
        data = self.blobs.get(blob)
        if data is None or offset + length > len(data):
            raise BlobMissingError(f"blob {blob} lacks some of its {length} bytes from {offset} on")
        for at in range(offset, offset + length, READ_SIZE):
            yield bytes(data[at : min(at + READ_SIZE, offset + length)])

    async def delete(self, blob: str) -> None:
        self.blobs.pop(blob, None)

    async def list(self) -> list[BlobInfo]:
        return [BlobInfo(blob, self.epochs[blob]) for blob in self.blobs]

    async def close(self) -> None:
        """Does nothing: there is nothing to release."""


class _MemoryWriter:
    def __init__(self, store: MemoryBlobs, blob: str) -> None:
        self._store = store
        self._blob = blob

    @property
    def blob(self) -> str:
        return self._blob

    async def write(self, data: bytes) -> None:
        self._store.blobs[self._blob] += data

    async def finish(self) -> None:
        """Does nothing: memory cannot become more durable."""

    async def abandon(self) -> None:
        self._store.blobs.pop(self._blob, None)


class FileBlobs:
    """Blobs as files in one directory, for a namespace whose journal is a directory too."""

    def __init__(self, directory: str, disk: Disk, worker: Worker, rng: Rng) -> None:
        self._directory = directory
        self._disk = disk
        self._worker = worker
        self._rng = rng

    async def open(self) -> None:
        """Make the directory."""
        await self._worker.call(lambda: self._disk.make_directories(self._directory))

    def _path(self, blob: str) -> str:
        return f"{self._directory}/{blob}"

    async def create(self, epoch: int) -> BlobWriter:
        blob = f"{epoch:08x}-{self._rng.getrandbits(64):016x}"
        file = await self._worker.call(lambda: self._disk.open(self._path(blob), create=True))
        return _FileWriter(self, blob, file, self._worker, self._disk)

    async def read(self, blob: str, offset: int, length: int) -> AsyncIterator[bytes]:
        try:
            file = await self._worker.call(lambda: self._disk.open(self._path(blob), write=False))
        except FileNotFoundError as error:
            raise BlobMissingError(f"blob {blob}, which holds a file, does not exist") from error
        try:
            end = offset + length
            while offset < end:
                size = min(READ_SIZE, end - offset)
                data = await self._worker.call(lambda at=offset, size=size: file.pread(size, at))  # type: ignore[misc]
                if len(data) != size:
                    raise BlobMissingError(
                        f"blob {blob}, which holds a file, ends at {offset + len(data)}; {end} bytes are needed"
                    )
                yield data
                offset += size
        finally:
            file.close()

    async def delete(self, blob: str) -> None:
        def unlink() -> None:
            try:
                self._disk.unlink(self._path(blob))
            except FileNotFoundError:
                return

        await self._worker.call(unlink)

    async def list(self) -> list[BlobInfo]:
        names = await self._worker.call(lambda: self._disk.list(self._directory))
        return [BlobInfo(name, int(name.split("-")[0], 16)) for name in names]

    async def close(self) -> None:
        """Does nothing: the worker's maker closes it."""


class _FileWriter:
    def __init__(self, store: FileBlobs, blob: str, file: File, worker: Worker, disk: Disk) -> None:
        self._store = store
        self._blob = blob
        self._file = file
        self._worker = worker
        self._disk = disk
        self._at = 0

    @property
    def blob(self) -> str:
        return self._blob

    async def write(self, data: bytes) -> None:
        at = self._at
        self._at += len(data)
        await self._worker.call(lambda: self._file.pwrite(data, at))

    async def finish(self) -> None:
        def sync() -> None:
            self._file.sync()
            self._file.close()
            self._disk.sync_directory(self._store._directory)

        await self._worker.call(sync)

    async def abandon(self) -> None:
        def remove() -> None:
            try:
                self._file.close()
                self._disk.unlink(self._store._path(self._blob))
            except OSError:
                return  # an orphan: the next owner collects it

        await self._worker.call(remove)
