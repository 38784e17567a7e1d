"""One replica of the name node: it follows the journal, or it writes it.

    standby   reads the journal and applies every edit; offers a checkpoint now and then
    active    has claimed the journal; decides requests, and answers when their edits are durable
    fenced    another replica has claimed the journal, or it has failed: nothing is answered, until it stands by again
    failed    an edit did not fit, so edits were lost or repeated: a person must look

A request is decided, applied to the memory and given to the journal in one turn of the loop, so memory and journal have
the same order. The answer waits until the edits are durable, and so does an answer that only rests on them: a refusal,
a repeated request, a look. If the journal fails, the memory may have more than the journal: it is thrown away, and read
anew from the newest checkpoint.

Only the journal fences. An answer without an edit of its own (a look, a refusal, nothing to do) is given after the
journal has confirmed that nobody else has claimed it since.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from examples.namenode_sim.decisions import ClientRequest, decide
from examples.namenode_sim.errors import NamespaceError, ReplayError, ReplicaNotActiveError
from examples.namenode_sim.image import describe, read_image, write_image
from examples.namenode_sim.namespace import HdfsNamespace
from journal_manager import (
    UNKNOWN_EPOCH,
    EditLog,
    EditLogConfig,
    EditsDiscardedError,
    JournalError,
    JournalFencedError,
    JournalGapError,
    JournalNotFormattedError,
    JournalReader,
    Op,
    RetentionPolicy,
    SnapshotInfo,
    SnapshotStore,
    TxId,
    open_reader,
    open_snapshots,
    plan_retention,
    restore_newest,
    tail_runs,
)
from journal_manager.hdfs import NEWEST_LAYOUT, HdfsOp, decode_hdfs_op, encode_hdfs_op

logger = logging.getLogger(__name__)

_RETRY_S: Final = 0.3
"""The pause after the journal could not be read."""


class NameNodeRole(Enum):
    """What a replica is."""

    STANDBY = "standby"
    STARTING = "becoming active"
    ACTIVE = "active"
    FENCED = "fenced"
    FAILED = "failed"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class NameNodeConfig:
    """The settings of a replica."""

    checkpoint_edits: int = 1000
    """A standby offers a checkpoint when it has applied so many edits since the last one."""
    housekeeping_s: float = 1.0
    """How often the active adopts checkpoints, rolls the journal, and removes what is not needed any more."""
    segment_edits: int = 2000
    """The active rolls the journal when a segment has so many edits."""
    retention: RetentionPolicy = field(default_factory=RetentionPolicy)


@dataclass(slots=True)
class ReplicaStats:
    """What a replica has done, for the picture."""

    applied: int = 0
    answered: int = 0
    repeated: int = 0
    """Requests that were recognised as done already."""
    offered: int = 0
    adopted: int = 0
    purged: int = 0
    restored_at: int = 0
    """The checkpoint from which the memory was read last."""
    fenced: int = 0
    last_error: str = ""


class NameNode:
    """One replica. Everything runs on one event loop."""

    def __init__(
        self,
        uri: str,
        name: str,
        *,
        now_ms: Callable[[], int],
        config: NameNodeConfig | None = None,
        **options: Any,
    ) -> None:
        """
        Args:
            uri: the journal that both replicas share.
            now_ms: milliseconds since 1970, for the times in edits.
            options: options of the journal.
        """
        self.name = name
        self._uri = uri
        self._now_ms = now_ms
        self._config = config or NameNodeConfig()
        self._options = options
        self.role = NameNodeRole.STANDBY
        self.namespace = HdfsNamespace()
        self.stats = ReplicaStats()
        self._log: EditLog | None = None
        self._reader: JournalReader | None = None
        self._work: asyncio.Task[None] | None = None
        """Follows the journal while standing by; keeps house while active."""
        self._changing = asyncio.Lock()
        self._epoch = UNKNOWN_EPOCH
        """The epoch of the last edit in the memory: its id alone may come again, if edits are discarded."""
        self._checkpoint_at = 0
        self._segment_first = 1

    # -- roles --------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Read the newest checkpoint, and follow the journal as a standby."""
        async with self._changing:
            await self._stand_by()

    async def become_active(self) -> None:
        """Claim the journal, read what is left in it, and answer requests from then on. Idempotent.

        Raises:
            JournalError: the journal cannot be claimed or read. ReplayError: what is read does not fit. This replica
            stands by again.
        """
        async with self._changing:
            if self.role is NameNodeRole.ACTIVE:
                return
            self.role = NameNodeRole.STARTING
            await self._end_work()
            try:
                log = await EditLog.open(
                    self._uri, owner=self.name, config=EditLogConfig(layout_version=NEWEST_LAYOUT), **self._options
                )
                self._log = log
                await self._catch_up(log)
            except BaseException:
                await self._stand_by()
                raise
            self.role = NameNodeRole.ACTIVE
            self._segment_first = self.namespace.txid + 1
            self._work = asyncio.create_task(self._keep_house(log), name=f"{self.name} keeps house")
            logger.info("%s is active from edit %d on, epoch %d", self.name, log.next_txid, log.token.epoch)

    async def become_standby(self) -> None:
        """Give the journal back, and follow it. Idempotent."""
        async with self._changing:
            if self.role is NameNodeRole.STANDBY:
                return
            if self.role is NameNodeRole.ACTIVE and self._log is not None:
                self.role = NameNodeRole.STARTING
                with suppress(JournalError):
                    await self._log.close()
            await self._stand_by()

    async def close(self) -> None:
        """Release everything. An active replica leaves the journal as a crash would."""
        async with self._changing:
            self.role = NameNodeRole.CLOSED
            await self._release()

    async def _stand_by(self) -> None:
        """Read everything anew: the memory of a replica that was active may have more than the journal."""
        await self._release()
        self.namespace, self._epoch = HdfsNamespace(), UNKNOWN_EPOCH
        self.role = NameNodeRole.STANDBY
        self._work = asyncio.create_task(self._follow(), name=f"{self.name} follows the journal")

    async def _release(self) -> None:
        await self._end_work()
        if self._log is not None:
            await self._log.abort()
            self._log = None

    async def _end_work(self) -> None:
        work, self._work = self._work, None
        if work is not None and work is not asyncio.current_task():
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
        if self._reader is not None:
            await self._reader.close()
            self._reader = None

    # -- standing by --------------------------------------------------------------------------------------

    async def _follow(self) -> None:
        """Apply every edit as it becomes durable. What the journal cannot give now is asked for again."""
        restored = False
        while True:
            try:
                if not restored:
                    await self._restore()
                    restored = True
                self._reader = await open_reader(self._uri, **self._options)
                start = TxId(self.namespace.txid + 1)
                async with aclosing(tail_runs(self._reader, start, poll_s=_RETRY_S, epoch=self._epoch)) as runs:
                    async for run in runs:
                        for edit in run:
                            self._apply_edit(edit)
                            self._epoch = run.epoch
                            if edit.txid >= self._checkpoint_at + self._config.checkpoint_edits:
                                await self._checkpoint()
            except JournalNotFormattedError:
                pass  # nobody has ever been active
            except (JournalGapError, EditsDiscardedError) as error:
                self.stats.last_error = str(error)
                restored = False  # purged before it was read: a newer checkpoint has it; or discarded after it was read
            except JournalError as error:
                self.stats.last_error = str(error)
                logger.warning("%s cannot follow the journal, and tries again: %s", self.name, error)
            except ReplayError as error:
                self.role = NameNodeRole.FAILED
                self.stats.last_error = str(error)
                logger.error("%s stops, because what it reads does not fit what it has: %s", self.name, error)
                return
            if self._reader is not None:
                await self._reader.close()
                self._reader = None
            await asyncio.sleep(_RETRY_S)

    async def _restore(self) -> None:
        """Read the newest checkpoint that is intact. A damaged one falls back to the one before."""
        async with await open_snapshots(self._uri, **self._options) as store:
            found = await restore_newest(store, self._restore_from)
        if found is None:
            self.namespace, self._epoch = HdfsNamespace(), UNKNOWN_EPOCH
        self._checkpoint_at = self.stats.restored_at = self.namespace.txid

    async def _restore_from(self, info: SnapshotInfo, chunks: AsyncGenerator[bytes, None]) -> None:
        self.namespace, self._epoch = read_image([chunk async for chunk in chunks]), info.epoch

    def _apply_edit(self, edit: Op) -> None:
        self.namespace.apply(edit.txid, decode_hdfs_op(edit.opcode, edit.body))
        self.stats.applied += 1

    async def _checkpoint(self) -> None:
        """Offer the state to the active one. No edit is applied meanwhile; becoming active cancels it."""
        async with await open_snapshots(self._uri, **self._options) as store:
            await self._offer(store)

    async def _offer(self, store: SnapshotStore) -> None:
        at = TxId(self.namespace.txid)
        try:
            await store.offer(at, write_image(self.namespace), epoch=self._epoch)
        except JournalError as error:
            self.stats.last_error = str(error)
            logger.warning("%s cannot offer a checkpoint at edit %d: %s", self.name, at, error)
        else:
            self.stats.offered += 1
        self._checkpoint_at = at  # also after a failure: the next edits matter more

    # -- being active -------------------------------------------------------------------------------------

    async def _catch_up(self, log: EditLog) -> None:
        if self.namespace.txid == 0 or (await log.discarded()).covers(TxId(self.namespace.txid), self._epoch):
            await self._restore()
        start = TxId(self.namespace.txid + 1)
        async with aclosing(log.read_runs(start, log.recovery.last_txid)) as runs:
            async for run in runs:
                for edit in run:
                    self._apply_edit(edit)
                    self._epoch = run.epoch
        if self.namespace.txid != log.recovery.last_txid:
            raise ReplayError(
                f"{self.name} has read up to edit {self.namespace.txid}, and the journal ends at edit "
                f"{log.recovery.last_txid}: it cannot become active"
            )

    async def _keep_house(self, log: EditLog) -> None:
        """Adopt checkpoints, roll, and remove what no checkpoint needs any more. A failure waits for the next time."""
        while True:
            await asyncio.sleep(self._config.housekeeping_s)
            try:
                self.stats.adopted += len(await log.adopt_snapshots())
                if log.next_txid - self._segment_first >= self._config.segment_edits:
                    self._segment_first = log.next_txid
                    await log.roll()
                await self._retain(log)
            except JournalError as error:
                self.stats.last_error = str(error)
                if log.failure is not None:
                    self._lost(error)
                    return
                logger.warning("%s could not keep house: %s", self.name, error)

    async def _retain(self, log: EditLog) -> None:
        async with await open_snapshots(self._uri, **self._options) as store:
            kept = [info.at for info in await store.list()]
        plan = plan_retention(self._config.retention, kept, await log.segments())
        for at in plan.snapshots:
            await log.delete_snapshot(at)
        self.stats.purged += len(await log.purge(plan.purge_below))

    def _lost(self, error: BaseException) -> None:
        """The journal has failed or belongs to another replica: nothing in this memory is to be believed."""
        if self.role is NameNodeRole.ACTIVE:
            self.role = NameNodeRole.FENCED
            self.stats.fenced += isinstance(error, JournalFencedError)
            self.stats.last_error = str(error)
            logger.warning("%s is active no more: %s", self.name, error)

    def _active_log(self) -> EditLog:
        if self.role is not NameNodeRole.ACTIVE or self._log is None:
            raise ReplicaNotActiveError(f"{self.name} is {self.role.value}")
        return self._log

    # -- requests -----------------------------------------------------------------------------------------

    async def submit(self, request: ClientRequest) -> int:
        """Do what is asked for, once, however often it is asked. Returns the id of the last edit it rests on.

        Raises:
            NamespaceError: it cannot be done, and the client need not ask again.
            ReplicaNotActiveError: this replica is not the active one. The outcome is unknown if it was when it was
                asked.
        """
        log = self._active_log()
        done = self.namespace.requests.done(request.client_id, request.call_id)
        if done is not None:
            self.stats.repeated += 1
            await self._settled(log, done)
            return done
        ops: list[HdfsOp] = []
        refusal: NamespaceError | None = None
        try:
            ops = decide(self.namespace, request, self._now_ms())
        except NamespaceError as error:
            refusal = error
        done = self._do(log, ops)
        await self._settled(log, done)
        if not ops:
            await self._confirmed(log)  # no edit proves that the memory it rests on is not old
        if refusal is not None:
            raise refusal
        self.stats.answered += 1
        return done

    def _do(self, log: EditLog, ops: list[HdfsOp]) -> int:
        """Give the edits to the journal and apply them, in one turn of the loop. Raises ReplicaNotActiveError."""
        if ops:
            try:
                waiter = log.log_group([encode(op) for op in ops])
            except JournalError as error:
                self._lost(error)
                raise ReplicaNotActiveError(f"{self.name} takes no request: {error}") from error
            waiter.add_done_callback(_is_seen)
        for op in ops:
            self.namespace.apply(self.namespace.txid + 1, op)
        return self.namespace.txid

    async def _settled(self, log: EditLog, txid: int) -> None:
        """Wait until the edits up to ``txid`` are durable. Raises ReplicaNotActiveError: they may never be."""
        try:
            await log.sync(TxId(txid))
        except JournalError as error:
            self._lost(error)
            raise ReplicaNotActiveError(f"{self.name} is active no more: {error}") from error

    async def look(self, path: str) -> dict[str, Any] | None:
        """What is at ``path``; None: nothing. It is what every request that was answered before has left there.

        Raises:
            ReplicaNotActiveError: this replica is not the active one.
        """
        log = self._active_log()
        inode = self.namespace.find(path)
        found = None if inode is None else describe(path, inode)
        seen = self.namespace.txid
        await self._settled(log, seen)
        await self._confirmed(log)
        return found

    async def _confirmed(self, log: EditLog) -> None:
        """Ask the journal whether it still belongs to this replica. Raises ReplicaNotActiveError: it may not."""
        try:
            await log.ensure_owner()
        except JournalError as error:
            if log.failure is not None:
                self._lost(error)
            raise ReplicaNotActiveError(f"{self.name} cannot tell whether it is still active: {error}") from error


def encode(op: HdfsOp) -> tuple[int, bytes]:
    """The edit as the journal takes it."""
    return encode_hdfs_op(op, NEWEST_LAYOUT)


def _is_seen(waiter: asyncio.Future[TxId]) -> None:
    """Whoever asked waits with ``sync``; this future's error is the same."""
    if not waiter.cancelled():
        waiter.exception()
