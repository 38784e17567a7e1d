"""The edits that are being collected, and those that are being synced (pure).

    add(...)      filling + 1 group
    take()        filling --> syncing: a prefix that fits into one batch
    synced()      the oldest batch that is syncing --> removed; its waiters are returned, in order
    drop()        everything --> removed, after a failure

A *group* is edits that become durable together; it is never divided. A *waiter* is an object of the caller, which this
machine returns with the group.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Generic, TypeVar

from journal_manager.edits.ops import Batch, join
from journal_manager.errors import check
from journal_manager.txid import MAX_TXID, TxId

W = TypeVar("W")


@dataclass(frozen=True, slots=True)
class EditGroup(Generic[W]):
    """Edits that were logged together, and their waiter."""

    batch: Batch
    waiter: W


class DoubleBuffer(Generic[W]):
    """Two halves: one is filled while the other becomes durable, in at most ``max_syncing`` batches at once."""

    def __init__(self, next_txid: TxId, max_syncing: int = 1) -> None:
        self.next_txid = next_txid
        """The id that the next edit gets."""
        self.durable_txid = TxId(next_txid - 1)
        """Every edit up to here is durable."""
        self.pending_bytes = 0
        """The bytes of the frames in both halves."""
        self.filling_bytes = 0
        """The bytes of the frames in the half that is being filled."""
        self._max_syncing = max_syncing
        self._filling: deque[EditGroup[W]] = deque()
        self._syncing: deque[list[EditGroup[W]]] = deque()

    def add(self, batch: Batch, waiter: W) -> None:
        """Add a group behind the others; it must begin at ``next_txid``."""
        check(batch.first == self.next_txid and batch.count > 0, "C7", (batch.first, self.next_txid))
        self._filling.append(EditGroup(batch, waiter))
        self.next_txid = TxId(batch.last + 1)
        self.pending_bytes += len(batch.frames)
        self.filling_bytes += len(batch.frames)

    def take(self, max_bytes: int, max_edits: int = MAX_TXID) -> Batch | None:
        """Move groups to the other half, joined: at least one, and as many more as fit into both limits.

        None: no group waits.
        """
        check(len(self._syncing) < self._max_syncing, "C4", "no further batch may be synced at once")
        size, edits, groups = 0, 0, list[EditGroup[W]]()
        while self._filling:
            following = self._filling[0].batch
            if groups and (size + len(following.frames) > max_bytes or edits + following.count > max_edits):
                break
            size, edits = size + len(following.frames), edits + following.count
            groups.append(self._filling.popleft())
        if not groups:
            return None
        self.filling_bytes -= size
        self._syncing.append(groups)
        return join([group.batch for group in groups])

    def synced(self) -> list[EditGroup[W]]:
        """Note that the oldest batch that was taken is durable now. Batches become durable in order."""
        if not self._syncing:
            return []
        done = self._syncing.popleft()
        self.durable_txid = done[-1].batch.last
        self.pending_bytes -= sum(len(group.batch.frames) for group in done)
        return done

    def drop(self) -> list[EditGroup[W]]:
        """Forget everything that is not durable, and return it in order."""
        dropped = [*(group for groups in self._syncing for group in groups), *self._filling]
        self.pending_bytes = self.filling_bytes = 0
        self._syncing.clear()
        self._filling.clear()
        return dropped

    @property
    def may_take(self) -> bool:
        """Whether another batch may be taken now."""
        return len(self._syncing) < self._max_syncing

    @property
    def idle(self) -> bool:
        """Whether nothing waits and nothing is being synced."""
        return not self._syncing and not self._filling
