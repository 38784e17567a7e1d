"""Bytes on their way in, in memory as long as they are few.

An upload is kept in memory; above ``spill_size`` it is streamed to a blob while it runs; and when all of
them together hold more than ``budget`` bytes, the largest is streamed out until they fit. No upload ever
waits for another one to *end*: Spark's state stores keep an upload open for a whole task, so that would
be a deadlock. What an upload may wait for is the blob store taking bytes.

At its end an upload is either bytes that go into one journal record (up to ``inline_size``) or a
finished, durable blob.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from bookkeeper.errors import require_range
from spark_wal.webhdfs.contents.blob_store import BlobStore, BlobWriter
from spark_wal.webhdfs.errors import PlainIOError
from spark_wal.webhdfs.files.inodes import BlobRef, Piece

MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadLimits:
    """Limits of uploads, in bytes."""

    inline_size: int = 128 * 1024
    """A file up to this goes into its journal record."""
    spill_size: int = MIB
    """An upload that grows beyond this is streamed to a blob from then on."""
    budget: int = 256 * MIB
    """What all uploads together may hold in memory."""
    file_bytes_max: int = 64 << 30
    """The largest file that is accepted."""

    def __post_init__(self) -> None:
        require_range(self, "file_bytes_max", above=0)


class Uploads:
    """All uploads of one gateway, and the memory that they hold."""

    def __init__(self, blobs: BlobStore, epoch: int, limits: UploadLimits) -> None:
        self._blobs = blobs
        self._epoch = epoch
        self.limits = limits
        self.in_memory = 0
        """Bytes that uploads hold in memory."""
        self._holders: set[Upload] = set()

    def begin(self) -> Upload:
        return Upload(self)

    async def create_blob(self) -> BlobWriter:
        return await self._blobs.create(self._epoch)

    def hold(self, upload: Upload, delta: int) -> None:
        """Note that ``upload`` holds so many bytes more (or less) in memory."""
        self.in_memory += delta
        if upload.held:
            self._holders.add(upload)
        else:
            self._holders.discard(upload)

    async def make_room(self) -> None:
        """Stream out the largest uploads until the budget is kept."""
        while self.in_memory > self.limits.budget and self._holders:
            largest = max(self._holders, key=lambda u: u.held)
            await largest.spill()

    def discard(self, blob: str) -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(self._blobs.delete(blob))


class Upload:
    """The bytes of one file, from the first one received until a record has them."""

    def __init__(self, uploads: Uploads) -> None:
        self._uploads = uploads
        self._chunks: list[bytes] = []
        self._writer: BlobWriter | None = None
        self._lock = asyncio.Lock()
        self._finished = False
        self._taken = False
        self.size = 0
        self.held = 0
        """Bytes of it in memory."""

    async def write(self, data: bytes) -> None:
        """Take the next bytes. Waits only for the blob store, if at all.

        Raises:
            PlainIOError: there are more of them than a file may have.
        """
        if self.size + len(data) > self._uploads.limits.file_bytes_max:
            raise PlainIOError(f"A file may have at most {self._uploads.limits.file_bytes_max} bytes at this gateway")
        async with self._lock:
            self.size += len(data)
            if self._writer is not None:
                await self._writer.write(data)
                return
            self._keep(data)
            if self.size > self._uploads.limits.spill_size:
                await self._stream_out()
        if self._uploads.in_memory > self._uploads.limits.budget:
            await self._uploads.make_room()

    async def finish(self) -> None:
        """End the upload: what is too large for a record is durable when this returns."""
        async with self._lock:
            self._finished = True
            if self._writer is None and self.size > self._uploads.limits.inline_size:
                await self._stream_out()
            elif self._writer is not None:
                await self._writer.finish()

    async def spill(self) -> None:
        """Move what is in memory to a blob; without anything in memory do nothing."""
        async with self._lock:
            if self.held:
                await self._stream_out()

    def pieces(self) -> tuple[Piece, ...]:
        """The pieces for the record of a finished upload. They hold until the caller pauses, or until ``take``."""
        assert self._finished
        if self._writer is not None:
            return (BlobRef(self._writer.blob, 0, self.size),)
        return (b"".join(self._chunks),) if self.size else ()

    def take(self) -> None:
        """Note that the tree has the ``pieces``, whatever becomes of the record: none of them is removed any more."""
        self._taken = True
        self._let_go()

    def _let_go(self) -> None:
        """Count the bytes in memory no longer."""
        self._chunks.clear()
        held, self.held = self.held, 0
        self._uploads.hold(self, -held)

    async def abandon(self) -> None:
        """Remove everything of the upload; after ``take`` do nothing."""
        if self._taken:
            return
        async with self._lock:
            self._let_go()
            if self._writer is None:
                return
            if self._finished:
                self._uploads.discard(self._writer.blob)
            else:
                await self._writer.abandon()

    def _keep(self, data: bytes) -> None:
        self._chunks.append(data)
        self.held += len(data)
        self._uploads.hold(self, len(data))

    async def _stream_out(self) -> None:
        """Move memory to a blob, which takes the rest of the upload as well. The caller holds the lock.

        Until the blob has the bytes (and they are durable, of a finished upload) they stay in memory, and ``pieces``
        says so: a record must never name a blob that may not come to its end.
        """
        assert self._writer is None, "nothing is in memory beside a blob"
        writer = await self._uploads.create_blob()
        size = self.size
        try:
            await writer.write(b"".join(self._chunks))
            if self._finished:
                await writer.finish()
        except BaseException:
            await writer.abandon()
            raise
        if size and not self.held:  # a record took the bytes meanwhile
            self._uploads.discard(writer.blob)
            return
        self._writer = writer
        self._let_go()
