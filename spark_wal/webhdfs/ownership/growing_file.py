"""Files that grow: what was received of an upload is in the file, durably, within about a second.

The file enters the tree empty, before its first byte. Its bytes are appended by records: when there are enough of them,
and a second after the first one that waits. So it is listed with its length, can be read, and outlives its writer and
this gateway. An upload that is cut leaves what has come.

Bytes in records are in memory, too, and in each snapshot. When a file has many of them, they move to a blob, while the
upload goes on. How many there may be grows with the file: then a long file has few blobs. All tails together have a
budget: who appends beyond it waits until some have moved. A move that fails is tried again, also after the upload has
ended.
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
from spark_wal.webhdfs.files.paths import child_of
from spark_wal.webhdfs.files.records import AppendToFile, MoveToBlob
from spark_wal.webhdfs.files.tracked_files import TrackedFile
from spark_wal.webhdfs.ownership.namespace_owner import TAIL_MAX, NamespaceOwner, NotOwnerError

logger = logging.getLogger(__name__)

SHARE: Final = 8
"""A tail may have this part of its file, within the two limits below, before it moves to a blob."""

RETRY_S: Final = 1.0
"""The pause before a move that failed is tried again, where something depends on it."""

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
        self._attempt: asyncio.Future[None] | None = None
        """For those who wait until the move that goes on has succeeded or failed."""
        self._failure: BaseException | None = None
        """Why nothing more is appended. Bytes that come after a failure would be in the place of those that it took."""
        self._ended = False
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

    async def settle(self) -> None:
        """Try to move the tail to a blob; one that is moving already counts. Does nothing when the session is over."""
        self._begin_settling()
        if self._settling is not None and not self._settling.done():
            attempt = self._attempt = self._attempt or asyncio.get_running_loop().create_future()
            await asyncio.wait([attempt, self._settling], return_when=asyncio.FIRST_COMPLETED)

    def _begin_settling(self) -> None:
        if (self._settling is None or self._settling.done()) and not self._owner.is_over:
            own = self._owner.namespace.follow_node(self._file)  # the upload may end before this does
            self._settling = self._owner.spawn(self._settle(own))

    async def _settle(self, own: TrackedFile) -> None:
        """Move the tail; of an upload that has ended until it is moved, because nobody else will."""
        owner = self._owner
        try:
            while not owner.is_over:
                done = await settle(owner, own)
                self.tail = length_of_tail(own.node) if owner.namespace.still_there(own) else 0
                if self._attempt is not None:
                    self._attempt.set_result(None)
                    self._attempt = None
                if not self._ended or (done and self.tail <= owner.config.limits.inline_size):
                    return
                if not done:
                    await asyncio.sleep(RETRY_S)
        finally:
            owner.namespace.unfollow(own)
            if self._ended:
                owner.growing.discard(self)

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
        """Have tails moved that are long enough; wait only if this one becomes far too long meanwhile, or all of
        them together."""
        limits = self._owner.config.limits
        tail, length = self.tail, self._file.node.length
        enough = min(max(limits.spill_size, length // SHARE), limits.spill_size * TAIL_MAX)
        if tail >= enough:
            self._begin_settling()
        if tail >= 2 * enough:
            await self.settle()
        while (before := self._all_tails()) > limits.budget and not self._owner.is_over:
            await max(self._owner.growing, key=lambda growing: growing.tail).settle()
            if self._all_tails() >= before:
                await asyncio.sleep(RETRY_S)

    def _all_tails(self) -> int:
        return sum(growing.tail for growing in self._owner.growing)

    def _require_there(self) -> None:
        if not self._owner.namespace.still_there(self._file):
            raise NoSuchFileError(f"File {self._file.path} was removed or replaced while it was written.")

    def _end(self) -> None:
        self._ended = True
        if self._timer is not None:
            self._timer.cancel()
        self.tail = length_of_tail(self._file.node)
        if not self._owner.uploads.goes_into_the_tree(self.tail):
            self._begin_settling()
        if self._settling is None or self._settling.done():
            self._owner.growing.discard(self)
        self._owner.namespace.unfollow(self._file)


def length_of_tail(node: FileNode) -> int:
    """How many bytes at a file's end are in records."""
    return sum(map(len, node.tail()[1]))


async def settle(owner: NamespaceOwner, file: TrackedFile) -> bool:
    """Move the tail of a file to a blob, whatever comes behind it meanwhile. False: it failed, and the tail is as it
    was."""
    moved = False
    blob = ""
    try:
        async with owner.tail_moves.room(lambda: length_of_tail(file.node)):
            start, pieces = file.node.tail()
            data = b"".join(pieces)
            if not data or not owner.namespace.still_there(file):
                return True
            writer = await owner.uploads.create_blob()
            blob = writer.blob
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
        owner.rarely.warning("the newest bytes of %s stay in memory for now: %s", file.path, error)
        return False
    finally:
        if blob and not moved:
            owner.uploads.discard(blob)
    return True


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
                await _settle_certainly(owner, owner.namespace.follow(place))
        await asyncio.sleep(0)


async def _settle_certainly(owner: NamespaceOwner, file: TrackedFile) -> None:
    try:
        while not owner.is_over:
            if await settle(owner, file):
                break
            await asyncio.sleep(RETRY_S)
    finally:
        owner.namespace.unfollow(file)


def _is_at(owner: NamespaceOwner, path: str, node: FileNode) -> bool:
    try:
        return owner.namespace.find(path).node is node
    except PathThroughFileError:
        return False
