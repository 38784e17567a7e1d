"""Uploads: bytes that arrive, kept in memory as long as they are few.

An upload is kept in memory. Above ``spill_size`` it is streamed to a blob while it runs. When all uploads together hold
more than ``budget`` bytes, the largest are streamed out until the rest fits. No upload ever waits for another one to
*end*: Spark's state stores keep an upload open for a whole task, so that would be a deadlock. An upload only waits for
the blob store to take bytes.

At its end an upload is either bytes for one journal record (up to ``inline_size``, while the tree has room for them) or
a finished, durable blob.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from spark_wal.webhdfs.config import UploadLimits
from spark_wal.webhdfs.contents.blob_store import BlobStore, BlobWriter
from spark_wal.webhdfs.errors import PlainIOError
from spark_wal.webhdfs.files.inodes import BlobRef, Piece


class Uploads:
    """All uploads of one gateway, and the memory that they hold."""

    def __init__(
        self, blobs: BlobStore, epoch: int, limits: UploadLimits, holds: Callable[[int], bool] = lambda size: True
    ) -> None:
        """``holds``: whether the tree has room for a small file of so many bytes; else it becomes a blob, too."""
        self._blobs = blobs
        self._epoch = epoch
        self.limits = limits
        self._holds = holds
        self.in_memory = 0
        """Bytes that uploads hold in memory."""
        self._holders: set[Upload] = set()

    def begin(self) -> Upload:
        return Upload(self)

    async def create_blob(self) -> BlobWriter:
        return await self._blobs.create(self._epoch)

    def goes_into_the_tree(self, size: int) -> bool:
        """Whether a file of so many bytes goes into its record, and so into the tree."""
        return not size or (size <= self.limits.inline_size and self._holds(size))

    def hold(self, upload: Upload, delta: int) -> None:
        """Note that ``upload`` holds ``delta`` more bytes in memory (negative: fewer)."""
        self.in_memory += delta
        if upload.held:
            self._holders.add(upload)
        else:
            self._holders.discard(upload)

    async def make_room(self) -> None:
        """Stream out the largest uploads until the rest fits into the budget."""
        while self.in_memory > self.limits.budget and self._holders:
            largest = max(self._holders, key=lambda u: u.held)
            await largest.spill()

    def discard(self, blob: str) -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(self._blobs.delete(blob))


class Upload:
    """The bytes of one file, from the first one until a record has them."""

    def __init__(self, uploads: Uploads) -> None:
        self._uploads = uploads
        self._bytes = bytearray()
        """What is in memory, as one piece: a client may send a byte at a time, and objects are not counted."""
        self._writer: BlobWriter | None = None
        self._lock = asyncio.Lock()
        self._finished = False
        self._taken = False
        self.size = 0
        self.held = 0
        """Bytes of the upload in memory."""

    async def write(self, data: bytes) -> None:
        """Take the next bytes. Waits only for the blob store, if at all.

        Raises:
            PlainIOError: the file is too large.
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
        """End the upload. Bytes that are too many for a record are durable when this returns."""
        async with self._lock:
            self._finished = True
            if self._writer is None and not self._uploads.goes_into_the_tree(self.size):
                await self._stream_out()
            elif self._writer is not None:
                await self._writer.finish()

    async def spill(self) -> None:
        """Move the bytes in memory, if there are any, to a blob."""
        async with self._lock:
            if self.held:
                await self._stream_out()

    def pieces(self) -> tuple[Piece, ...]:
        """The pieces for the record of a finished upload. They are valid until the caller pauses, or until ``take``."""
        assert self._finished
        if self._writer is not None:
            return (BlobRef(self._writer.blob, 0, self.size),)
        return (bytes(self._bytes),) if self.size else ()

    def take(self) -> None:
        """Note that the tree has the ``pieces``. They are not removed any more, whatever happens to the record."""
        self._taken = True
        self._let_go()

    def _let_go(self) -> None:
        """Stop counting the bytes in memory."""
        self._bytes = bytearray()
        held, self.held = self.held, 0
        self._uploads.hold(self, -held)

    async def abandon(self) -> None:
        """Remove everything of the upload. After ``take`` this does nothing."""
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
        self._bytes += data
        self.held += len(data)
        self._uploads.hold(self, len(data))

    async def _stream_out(self) -> None:
        """Move the bytes in memory to a blob, which also takes the rest of the upload. The caller holds the lock.

        The bytes stay in memory, and in ``pieces``, until the blob has them (durably, if the upload is finished). A
        record must never name a blob that may remain incomplete.
        """
        assert self._writer is None, "an upload with a blob holds nothing in memory"
        writer = await self._uploads.create_blob()
        size = self.size
        try:
            await writer.write(bytes(self._bytes))
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
