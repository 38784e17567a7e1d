"""The owner's session: from the replay of the journal until the lease or the journal is lost.

    change(record)      applied to the tree, given to the journal, answered when durable
    settled(seen)       wait until what a reply shows is durable

A change goes first to the tree, which decides, and then to the journal in the same turn of the loop, so both have the
same order. Then it waits; many requests wait for the same group commit. No reply shows a change before it is durable: a
reply waits for the newest record that it shows. If the journal fails, the memory may have more than the disk: the
session ends, and a new one replays.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Final, Protocol

from bookkeeper.leases.lease import Lease
from bookkeeper.rate_limited_log import RateLimitedLogger
from bookkeeper.seams import Clock
from journal_manager import (
    FIRST_TXID,
    NOTHING,
    Chunks,
    FencingToken,
    JournalError,
    JournalFencedError,
    Op,
    OpTooLargeError,
    RecoveryReport,
    SegmentInfo,
    SnapshotInfo,
    SnapshotStore,
    TxId,
)
from spark_wal.webhdfs.config import OwnerConfig
from spark_wal.webhdfs.contents.blob_store import BlobStore
from spark_wal.webhdfs.contents.uploads import Uploads
from spark_wal.webhdfs.errors import PathThroughFileError, WebHdfsError
from spark_wal.webhdfs.files import snapshot
from spark_wal.webhdfs.files.incoming_files import IncomingFiles
from spark_wal.webhdfs.files.namespace import Namespace
from spark_wal.webhdfs.files.records import DeletePath, Record, RecordFormatError, encode_record
from spark_wal.webhdfs.files.temp_files import AbandonedFiles, TempFile, temporary_files
from spark_wal.webhdfs.files.tree_answers import ApplyResult
from spark_wal.webhdfs.growing_paths import GrowingPaths
from spark_wal.webhdfs.ownership.events import TreeEventFeed, events_of
from spark_wal.webhdfs.ownership.replay import replay_edit
from spark_wal.webhdfs.ownership.tail_moves import TailMoves

logger = logging.getLogger(__name__)

TAIL_MAX: Final = 16
"""The longest tail of a file that grows, in sizes at which an upload is spilled; so much is moved at a time, too."""

LEASE_WAIT_S: Final = 20.0
"""Seconds that a change waits for a late renewal of the lease; well below the 60 s after which clients give up."""

LEASE_LOOK_S: Final = 0.02
"""Seconds between two checks whether the renewal came."""

TELL_S: Final = 10.0
"""Seconds between two log lines about what fails again and again."""

PENDING_BYTES_MAX: Final = 16 << 20
"""Bytes of records that wait to become durable; above this, new records wait. Well below the edit log's own limit."""


class NotOwnerError(Exception):
    """This gateway is not, or not certainly, the owner. The outcome of the request may be unknown."""


class NamespaceLog(Protocol):
    """The part of :class:`journal_manager.EditLog` that the owner uses."""

    @property
    def token(self) -> FencingToken: ...
    @property
    def recovery(self) -> RecoveryReport: ...
    @property
    def next_txid(self) -> TxId: ...
    @property
    def durable_txid(self) -> TxId: ...
    @property
    def failure(self) -> BaseException | None: ...
    def log(self, body: bytes, opcode: int = 0) -> asyncio.Future[TxId]: ...
    async def sync(self, upto: TxId | None = None) -> TxId: ...
    async def roll(self) -> SegmentInfo | None: ...
    def read(self, start: TxId, end: TxId | None = None) -> AsyncIterator[Op]: ...
    async def purge(self, below: TxId) -> tuple[SegmentInfo, ...]: ...
    async def save_snapshot(self, at: TxId, chunks: Chunks) -> SnapshotInfo: ...
    async def delete_snapshot(self, at: TxId) -> None: ...
    async def close(self) -> None: ...
    async def abort(self) -> None: ...


class GrowingUpload(Protocol):
    """An upload whose bytes go to its file while they come."""

    @property
    def tail(self) -> int:
        """Bytes at the file's end that are in records, and so in memory."""

    async def flush(self) -> None:
        """Make durable what was received."""

    async def settle(self) -> None:
        """Try to move the tail to a blob."""


class NamespaceOwner:
    """The tree, its journal, and the running uploads."""

    def __init__(
        self,
        log: NamespaceLog,
        snapshots: SnapshotStore,
        blobs: BlobStore,
        lease: Lease,
        clock: Clock,
        events: TreeEventFeed,
        config: OwnerConfig | None = None,
    ) -> None:
        self._log = log
        self._snapshots = snapshots
        self.blobs = blobs
        self._lease = lease
        self.clock = clock
        self._events = events
        self.config = config or OwnerConfig()
        self.namespace = Namespace()
        self.left_behind = AbandonedFiles(self.config.temporary_keep_s)
        self.uploads = Uploads(blobs, log.token.epoch, self.config.limits, self._holds)
        self.incoming = IncomingFiles()
        self.growing_paths = GrowingPaths(self.config.growing)
        self.growing: set[GrowingUpload] = set()
        """Also those that have ended, until their tails are moved."""
        self.tail_moves = TailMoves(self.config.limits.spill_size * TAIL_MAX)
        self.rarely = RateLimitedLogger(logger, clock.monotonic, TELL_S)
        """For what is tried again and again."""
        self.failed = asyncio.Event()
        """Set when the journal has failed. Then the session is over."""
        self._pending_bytes = 0
        self._since_snapshot = (0, 0)
        self._snapshot_bytes = 0
        """Of the last snapshot."""
        self._snapshotting: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = self._closed = False

    @property
    def epoch(self) -> int:
        return self._log.token.epoch

    @property
    def durable_txid(self) -> int:
        return self._log.durable_txid

    @property
    def fenced(self) -> bool:
        """Whether another gateway has taken the journal, so that it did not merely fail."""
        return isinstance(self._log.failure, JournalFencedError)

    @property
    def holds_lease(self) -> bool:
        """Whether it may answer now."""
        return not self._closed and self._lease.is_held and self._log.failure is None

    # -- replay ----------------------------------------------------------------------------------------

    async def replay(self) -> None:
        """Replay the journal into the tree.

        Raises:
            RecordFormatError: journal and program do not fit, or a record is damaged.
            JournalError: edits are missing or damaged, or the journal cannot be reached.
        """
        loaded = await self._snapshots.load()
        if loaded is not None:
            info, data = loaded
            self._snapshot_bytes = len(data)
            self.namespace = snapshot.load(data)
            if self.namespace.sequence != info.at:
                raise RecordFormatError(
                    f"the snapshot at edit {info.at} holds the tree at edit {self.namespace.sequence}: it is damaged"
                )
        start = TxId(self.namespace.sequence + 1) if loaded is not None else FIRST_TXID
        count = size = 0
        if self._log.recovery.last_txid >= start:
            async for op in self._log.read(start):
                replay_edit(self.namespace, op)
                count += 1
                size += len(op.body)
        self._since_snapshot = (count, size)
        if self.namespace.sequence != self._log.recovery.last_txid:
            raise RecordFormatError(
                f"the replay ended at edit {self.namespace.sequence}, but the journal ends at edit "
                f"{self._log.recovery.last_txid}"
            )
        self.namespace.memory.limit = self.config.memory_max

    async def collect_orphans(self) -> int:
        """Remove blobs of earlier owners that no file uses. Returns their number. A file that is removed meanwhile has
        its blob until its removal is durable: the next owner may find it there.

        Raises:
            NotOwnerError: this gateway will never know what is durable; nothing was removed.
        """
        count = 0
        infos = await self.blobs.list()
        referenced, seen = self.namespace.blobs(), self.namespace.sequence
        await self.settled(seen)
        for info in infos:
            if info.epoch < self.epoch and info.blob not in referenced:
                await self.blobs.delete(info.blob)
                count += 1
        return count

    def begin_collection(self) -> None:
        """Begin to remove orphaned blobs in the background."""

        async def collect() -> None:
            try:
                count = await self.collect_orphans()
            except Exception as error:  # the next owner tries again
                logger.warning("orphaned blobs could not be removed; the next owner tries again: %s", error)
            else:
                if count:
                    logger.info("removed orphaned blobs: %s", count)

        self.spawn(collect())

    def _holds(self, size: int) -> bool:
        return self.namespace.memory.holds(size)

    # -- changing and reading --------------------------------------------------------------------------

    def require_lease(self) -> None:
        """Check that this gateway is certainly the owner, because only the owner answers from memory.

        Raises:
            NotOwnerError: it may not be the owner any more.
        """
        if not self.holds_lease:
            raise NotOwnerError("this gateway does not certainly own the namespace any more")

    async def wait_for_lease(self) -> None:
        """Wait for a late renewal of the lease: a request then waits a moment and does not fail. Does not pause
        while the lease is held.

        Raises:
            NotOwnerError: the session is over, or the renewal takes too long.
        """
        until: float | None = None
        while not self.holds_lease:
            now = self.clock.monotonic()
            until = now + LEASE_WAIT_S if until is None else until
            if self.is_over or now >= until:
                self.require_lease()
            await asyncio.sleep(LEASE_LOOK_S)

    @property
    def is_over(self) -> bool:
        """Whether this session has ended, or is about to: nothing new begins."""
        return self._closing or self.failed.is_set() or self._log.failure is not None

    async def change(self, record: Record, on_applied: Callable[[], None] | None = None) -> ApplyResult:
        """Apply a record and wait until it is durable. It waits for a late renewal of the lease. ``on_applied`` is
        called when the tree has it: from then on the record may become durable, whatever is raised here; before that
        nothing was done.

        Raises:
            WebHdfsError: the record was refused, by the state of durable records only.
            NotOwnerError: this gateway is not the owner any more; the outcome is unknown.
        """
        await self.room()
        return await self.change_now(record, on_applied)

    async def change_now(self, record: Record, on_applied: Callable[[], None] | None = None) -> ApplyResult:
        """Like :meth:`change`, after :meth:`room`. There is no pause before the tree takes or refuses the record."""
        self.require_lease()
        opcode, body = encode_record(record)
        if len(body) > self.config.record_bytes_max:
            raise OpTooLargeError(
                f"the record has {len(body)} bytes; a record may have at most {self.config.record_bytes_max}"
            )
        txid = self._log.next_txid
        try:
            applied = self.namespace.apply(record, txid)
        except WebHdfsError:
            await self.settled(self.namespace.sequence)
            raise
        if not applied.changed:
            await self.settled(self.namespace.sequence)
            return applied
        if on_applied is not None:
            on_applied()
        future = self._write(opcode, body)
        future.add_done_callback(lambda done: self._on_durable(done, record, applied, txid, len(body)))
        await self._durable(future)
        return applied

    async def room(self) -> None:
        """Wait until the journal has caught up enough to take another record, and the lease is certain; does not pause
        if both are so.

        Raises:
            NotOwnerError: this gateway is not the owner any more.
        """
        await self.wait_for_lease()
        while self._pending_bytes > PENDING_BYTES_MAX:
            await self.settled(self.namespace.sequence)
            await self.wait_for_lease()

    async def settled(self, seen: int) -> None:
        """Wait until everything up to ``seen`` is durable, so that a reply may show it.

        Raises:
            NotOwnerError: this gateway will never know whether it is durable.
        """
        if seen <= self._log.durable_txid:
            return
        try:
            await self._log.sync(TxId(seen))
        except JournalError as error:
            self._fail(error)
            raise NotOwnerError(str(error)) from error

    def _write(self, opcode: int, body: bytes) -> asyncio.Future[TxId]:
        try:
            future = self._log.log(body, opcode)
        except JournalError as error:
            self._fail(error)  # the tree has a change that the journal lacks, so this session is over
            raise NotOwnerError(str(error)) from error
        self._pending_bytes += len(body)
        return future

    async def _durable(self, future: asyncio.Future[TxId]) -> None:
        try:
            await asyncio.shield(future)
        except JournalError as error:
            raise NotOwnerError(str(error)) from error

    def _on_durable(
        self, done: asyncio.Future[TxId], record: Record, applied: ApplyResult, txid: int, size: int
    ) -> None:
        self._pending_bytes -= size
        if done.cancelled() or done.exception() is not None:
            self._fail(None if done.cancelled() else done.exception())
            return
        if self._events.subscribers:
            for event in events_of(record, applied, txid):
                self._events.publish(event)
        for blob in applied.freed:
            self._later_delete(blob)
        records, total = self._since_snapshot
        self._since_snapshot = (records + 1, total + size)
        config = self.config
        is_repaid = records >= config.snapshot_records_least and total >= self._snapshot_bytes
        if is_repaid or records >= config.snapshot_records or total >= config.snapshot_bytes:
            self.begin_snapshot()

    def _fail(self, error: BaseException | None) -> None:
        if not self.failed.is_set() and not self._closed:
            if isinstance(error, JournalFencedError):
                logger.info("this gateway stops answering, because another one has its journal: %s", error)
            else:
                logger.warning("this gateway stops answering, because its journal cannot be written: %s", error)
        self.failed.set()

    # -- housekeeping ----------------------------------------------------------------------------------

    def _later_delete(self, blob: str) -> None:
        async def delete() -> None:
            await asyncio.sleep(self.config.delete_delay_s)
            try:
                await self.blobs.delete(blob)
            except Exception as error:  # then it is an orphan, which the next owner collects
                logger.info("blob %s could not be deleted now; the next owner deletes it: %s", blob, error)

        self.spawn(delete())

    def begin_looking(self) -> None:
        """Check regularly for abandoned temporary files, as long as this session lasts."""
        pause_s = self.left_behind.check_interval_s
        if pause_s is not None:
            self.spawn(self._keep_looking(pause_s))

    async def _keep_looking(self, pause_s: float) -> None:
        while True:
            await asyncio.sleep(pause_s)
            try:
                count = await self.remove_left_behind()
            except (JournalError, NotOwnerError) as error:  # the next check tries again, unless the session is over
                logger.info("old temporary files could not be removed now; the next check tries again: %s", error)
            else:
                if count:
                    logger.info("removed temporary files that nobody had touched: %s", count)

    async def remove_left_behind(self) -> int:
        """Remove the temporary files that are due, each by a record of the journal. Returns their number."""
        found: list[TempFile] = []
        if self.namespace.temporary_files:
            for temps in temporary_files(self.namespace.root):
                found += temps
                await asyncio.sleep(0)
        count = 0
        for temp in self.left_behind.abandoned(found, self.clock.wall_ms()):
            await self.room()
            # No pause from here until the tree has changed: the file could be renamed or read meanwhile.
            now = self.clock.wall_ms()
            if self._is_there(temp) and self.left_behind.is_due(temp, now):
                await self.change_now(DeletePath(temp.path, recursive=False, at_ms=now))
                count += 1
        return count

    def _is_there(self, temp: TempFile) -> bool:
        try:
            return self.namespace.find(temp.path).node is temp.node
        except PathThroughFileError:
            return False

    def spawn(self, work: object) -> asyncio.Task[None]:
        """Run this beside the session, and no longer than it."""
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)  # type: ignore[arg-type]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def begin_snapshot(self) -> asyncio.Task[None]:
        """Take a snapshot of the tree, unless one is in progress. Returns the task that stores it."""
        if self._snapshotting is None or self._snapshotting.done():
            at = self.namespace.sequence
            self._since_snapshot = (0, 0)
            chunks = snapshot.dump(self.namespace)
            self._snapshot_bytes = sum(map(len, chunks))
            self._snapshotting = self.spawn(self._snapshot(TxId(at), chunks))
        return self._snapshotting

    async def _snapshot(self, at: TxId, chunks: list[bytes]) -> None:
        try:
            if at < FIRST_TXID:
                return
            await self.settled(at)
            await self._log.save_snapshot(at, chunks)
            kept = await self._retire(await self._snapshots.list())
            await self._log.roll()
            await self._log.purge(TxId(kept + 1))
            logger.info("kept a snapshot of the namespace at edit %s", at)
        except (JournalError, NotOwnerError) as error:
            logger.warning(
                (
                    "could not keep a snapshot at edit %s; a later one replaces it, and until then a start takes "
                    "longer: %s"
                ),
                at,
                error,
            )

    async def _retire(self, infos: tuple[SnapshotInfo, ...]) -> TxId:
        """Keep the newest two snapshots, in case one is damaged. Returns the txid below which edits may be purged."""
        for info in infos[:-2]:
            await self._log.delete_snapshot(info.at)
        return infos[-2].at if len(infos) > 1 else NOTHING

    async def close(self, *, abort: bool = False) -> None:
        """End the session; with ``abort``, as a crash would end it."""
        self._closing = True
        if not abort and self.holds_lease:
            for growing in list(self.growing):
                with suppress(WebHdfsError, NotOwnerError, JournalError):  # then its writer was told, or will be
                    await growing.flush()
        self._closed = True
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        try:
            if abort or self._log.failure is not None:
                await self._log.abort()
            else:
                await self._log.close()
        finally:
            await self._snapshots.close()
