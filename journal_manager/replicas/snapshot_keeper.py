"""The snapshots of a replica's state: a standby offers them; the active replica adopts them, or takes its own.

When one is due is said by :mod:`~journal_manager.snapshots.checkpoints`, what may be removed then by
:mod:`~journal_manager.snapshots.retention`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from journal_manager.errors import JournalError
from journal_manager.replicas.program_state import ProgramState
from journal_manager.replicas.replica import Replica
from journal_manager.snapshots.checkpoints import CheckpointPolicy, CheckpointSchedule
from journal_manager.snapshots.retention import RetentionPolicy, plan_retention
from journal_manager.snapshots.snapshots import SnapshotInfo, SnapshotStore
from journal_manager.txid import NOTHING, TxId
from journal_manager.write.edit_log import EditLog

logger = logging.getLogger(__name__)


class SnapshotKeeper:
    """Sees to it that there are snapshots, and not too many. Belongs to one event loop."""

    def __init__(
        self,
        state: ProgramState,
        replica: Replica,
        opens_store: Callable[[], Awaitable[SnapshotStore]],
        checkpoints: CheckpointPolicy,
        retention: RetentionPolicy,
    ) -> None:
        self._state, self._replica = state, replica
        self._opens_store = opens_store
        self._checkpoints, self._retention = checkpoints, retention
        self._schedule = CheckpointSchedule(checkpoints, asyncio.get_running_loop().time())

    @property
    def newest(self) -> TxId:
        """The edit of the newest snapshot that is known; NOTHING if none is."""
        return self._schedule.newest

    def is_due(self, *, active: bool = False) -> bool:
        """Whether this replica, standby or active, takes a snapshot now."""
        return self._schedule.is_due(self._replica.applied, asyncio.get_running_loop().time(), active=active)

    async def load(self) -> None:
        """Restore the newest intact snapshot, or the empty state. Raises as ``ProgramState.load``."""
        newest = await self._state.load(self._opens_store)
        # What was known before may have been discarded, and its ids are used again.
        self._schedule.begin_at(NOTHING if newest is None else newest.at, asyncio.get_running_loop().time())

    async def refresh(self) -> None:
        """Ask the store which snapshot is the newest, if the one that is known is ahead of the state: it may have been
        discarded. Raises JournalError."""
        if self.newest <= self._replica.applied:
            return
        async with await self._opens_store() as store:
            newest = max((info.at for info in await store.list()), default=NOTHING)
        if newest != self.newest:
            self._schedule.begin_at(newest, asyncio.get_running_loop().time())

    async def offer(self) -> None:
        """Hand the state in as a snapshot, unless there is a newer one. Nothing is applied meanwhile."""
        at, epoch = self._replica.applied, self._replica.applied_epoch
        try:
            async with await self._opens_store() as store:
                for info in await store.list():
                    self._on_snapshot(info.at)
                if self.is_due():
                    await store.offer(at, self._state.content(), epoch=epoch)
                    self._on_snapshot(at)
        except JournalError as error:
            self._postpone(error)

    async def checkpoint(self, log: EditLog) -> SnapshotInfo | None:
        """Take a snapshot of the active replica's state. None if there is no edit since the newest.

        Raises: JournalError: it was not kept.
        """
        at = self._replica.applied
        if at == self._schedule.newest:
            return None
        content = list(self._state.content())  # in one turn of the loop
        await log.sync(at)
        info = await log.save_snapshot(at, content)
        self._on_snapshot(at)
        await self._retain(log)
        return info

    async def _retain(self, log: EditLog) -> None:
        """Remove the snapshots and edits that the policy does not keep. The open segment ends, so that it can go.

        If that fails the snapshot is kept all the same, and the next one tries again.
        """
        await log.roll()
        try:
            async with await self._opens_store() as store:
                snapshots = [info.at for info in await store.list()]
            plan = plan_retention(self._retention, snapshots, await log.segments())
            for at in plan.snapshots:
                await log.delete_snapshot(at)
            await log.purge(plan.purge_below)
        except JournalError as error:
            if log.failure is not None:
                raise
            logger.warning("snapshots and edits that are not needed any more could not be removed: %s", error)

    async def keep_up(self, log: EditLog) -> None:
        """Adopt the snapshots of standbys, or take one if they take none; remove what is not needed any more.

        Goes on until the log fails.
        """
        while log.failure is None:
            await asyncio.sleep(self._checkpoints.check_s)
            try:
                adopted = await log.adopt_snapshots()
                for info in adopted:
                    self._on_snapshot(info.at)
                if adopted:
                    await self._retain(log)
                elif self.is_due(active=True):
                    await self.checkpoint(log)
            except Exception as error:
                self._postpone(error)  # if the log itself has failed, that is noticed elsewhere

    def _on_snapshot(self, at: TxId) -> None:
        self._schedule.on_snapshot(at, asyncio.get_running_loop().time())

    def _postpone(self, error: Exception) -> None:
        self._schedule.postpone(asyncio.get_running_loop().time())
        logger.warning("a snapshot could not be taken now; until a later one is, a start takes longer: %s", error)
