"""Files that grow: what was received of an upload is in the file, durably, within about a second.

The file enters the tree empty, before its first byte. Its bytes are appended by records: when there are enough of them,
and a second after the first one that waits. So it is listed with its length, can be read, and outlives its writer and
this gateway. An upload that is cut leaves what has come.

Bytes in records are in memory, too, and in each snapshot. When a file has many of them, they move to a blob, while the
upload goes on. How many there may be grows with the file: then a long file has few blobs.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Final

from bookkeeper.errors import BookKeeperError
from journal_manager import JournalError
from spark_wal.webhdfs.errors import NoSuchFileError, PathThroughFileError, PlainIOError, WebHdfsError
from spark_wal.webhdfs.files.inodes import BlobRef, DirectoryNode, FileNode
from spark_wal.webhdfs.files.namespace import TrackedFile
from spark_wal.webhdfs.files.paths import child_of
from spark_wal.webhdfs.files.records import AppendToFile, MoveToBlob
from spark_wal.webhdfs.ownership.namespace_owner import NamespaceOwner, NotOwnerError

logger = logging.getLogger(__name__)

SHARE: Final = 8
"""A tail may have this part of its file, within the two limits below, before it moves to a blob."""

TAIL_MAX: Final = 16
"""The longest tail, in sizes at which an upload is spilled; the shortest is one."""

FAILURES: Final = (BookKeeperError, JournalError, NotOwnerError, OSError, WebHdfsError)
"""What may go wrong when bytes are stored."""


class GrowingFile:
    """One upload to a file that grows."""

    def __init__(self, owner: NamespaceOwner, file: TrackedFile) -> None:
        """``file`` is followed, and is let go at the upload's end."""
        self._owner = owner
        self._file = file
        self._pending = bytearray()
        """Bytes that wait, as one piece: a client may send a byte at a time."""
        self._lock = asyncio.Lock()
        self._timer: asyncio.Task[None] | None = None
        self._settling: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None
        """Why nothing more is appended. Bytes that come after a failure would be in the place of those that it took."""
        self.tail = length_of_tail(file.node)
        owner.growing.add(self)

    async def write(self, data: bytes) -> None:
        """Take the next bytes. They are durable within about a second. Waits for the journal if there are many.

        Raises:
            WebHdfsError: the file was removed or replaced, is too large, or breaks a quota.
            NotOwnerError: this gateway is not the owner any more.
        """
        limits = self._owner.config.limits
        if self._failure is None and self._file.node.length + len(self._pending) + len(data) > limits.file_bytes_max:
            raise PlainIOError(f"A file may have at most {limits.file_bytes_max} bytes at this gateway")
        self._pending += data
        if len(self._pending) >= limits.inline_size or self._failure is not None:
            await self.flush()
        elif self._timer is None:
            self._timer = self._owner.spawn(self._flush_later())

    async def finish(self) -> None:
        """End the upload. Everything is durable on return. Raises as :meth:`write`."""
        try:
            await self.flush()
            self._require_there()
        finally:
            self._end()

    async def cut(self) -> None:
        """End an upload whose last byte never came. What has come stays, if it can be stored. Never raises."""
        try:
            await self.flush()
        except FAILURES as error:
            logger.warning("the last bytes of %s, whose writer is gone, are not kept: %s", self._file.path, error)
        finally:
            self._end()

    async def flush(self) -> None:
        """Append what waits. Raises as :meth:`write`."""
        async with self._lock:
            if self._failure is not None:
                self._pending.clear()
                raise self._failure
            try:
                while self._pending:
                    await self._append()
            except FAILURES as error:
                self._failure = error
                raise

    async def _append(self) -> None:
        await self._owner.room()
        self._require_there()
        data = self._take(self._owner.config.limits.inline_size)  # no pause from here until the tree has it
        await self._owner.change_now(AppendToFile(self._file.path, (data,), self._owner.clock.wall_ms()))
        self.tail += len(data)
        await self._settle_in_time()

    def begin_settling(self) -> None:
        """Begin to move the tail to a blob, unless that is under way."""
        if self._settling is None or self._settling.done():
            own = self._owner.namespace.follow_node(self._file)  # the upload may end before this does
            self._settling = self._owner.spawn(self._settle(own))

    async def _settle(self, own: TrackedFile) -> None:
        await settle(self._owner, own)
        self.tail = length_of_tail(own.node)

    def _take(self, most: int) -> bytes:
        data = bytes(self._pending[:most])
        del self._pending[:most]
        return data

    async def _flush_later(self) -> None:
        await asyncio.sleep(self._owner.config.growing_sync_s)
        self._timer = None
        with suppress(*FAILURES):  # the next write, or the end, tells the client
            await self.flush()

    async def _settle_in_time(self) -> None:
        """Have tails moved that are long enough; wait only if this one becomes far too long meanwhile."""
        limits = self._owner.config.limits
        tail, length = self.tail, self._file.node.length
        enough = min(max(limits.spill_size, length // SHARE), limits.spill_size * TAIL_MAX)
        if tail >= enough:
            self.begin_settling()
        if tail >= 2 * enough and self._settling is not None:
            await asyncio.wait([self._settling])
        if sum(growing.tail for growing in self._owner.growing) > limits.budget:
            max(self._owner.growing, key=lambda growing: growing.tail).begin_settling()

    def _require_there(self) -> None:
        if not self._owner.namespace.still_there(self._file):
            raise NoSuchFileError(f"File {self._file.path} was removed or replaced while it was written.")

    def _end(self) -> None:
        self._owner.growing.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        if self._owner.is_sure and length_of_tail(self._file.node) > self._owner.config.limits.inline_size:
            self.begin_settling()
        self._owner.namespace.unfollow(self._file)


def length_of_tail(node: FileNode) -> int:
    """How many bytes at a file's end are in records."""
    return sum(map(len, node.tail()[1]))


async def settle(owner: NamespaceOwner, file: TrackedFile) -> None:
    """Move the tail of a file to a blob, whatever comes behind it meanwhile, and let the file go. A failure leaves the
    tail as it is."""
    start, pieces = file.node.tail()
    moved = False
    blob = ""
    try:
        writer = await owner.uploads.create_blob()
        blob = writer.blob
        data = b"".join(pieces)
        try:
            await writer.write(data)
            await writer.finish()
        except BaseException:
            await writer.abandon()
            blob = ""
            raise
        await owner.room()
        if owner.namespace.still_there(file):
            moved = True
            await owner.change_now(MoveToBlob(file.path, start, BlobRef(blob, 0, len(data))))
    except FAILURES as error:
        logger.warning("the newest bytes of %s stay in memory for now: %s", file.path, error)
    finally:
        owner.namespace.unfollow(file)
        if blob and not moved:
            owner.uploads.discard(blob)


async def settle_left_behind(owner: NamespaceOwner) -> None:
    """Move the long tails of files that grew under an earlier owner, whose end nobody has seen."""
    stack: list[tuple[str, DirectoryNode]] = [("/", owner.namespace.root)]
    while stack:
        path, directory = stack.pop()
        found: list[tuple[str, FileNode]] = []
        for name, child in directory.children.items():
            if isinstance(child, DirectoryNode):
                stack.append((child_of(path, name), child))
            elif owner.growing_paths.holds(child_of(path, name)):
                found.append((child_of(path, name), child))
        for place, node in found:
            if length_of_tail(node) > owner.config.limits.inline_size and _is_at(owner, place, node):
                await settle(owner, owner.namespace.follow(place))
        await asyncio.sleep(0)


def _is_at(owner: NamespaceOwner, path: str, node: FileNode) -> bool:
    try:
        return owner.namespace.find(path).node is node
    except PathThroughFileError:
        return False
