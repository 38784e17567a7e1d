"""The edits that are being collected, and those that are being synced (pure).

    add(...)      filling + 1 group
    take()        filling --> syncing: a prefix that fits into one batch; nothing may be syncing
    synced()      syncing --> removed; its waiters are returned, in order
    drop()        everything --> removed, after a failure

A *group* is edits that become durable together; it is never divided. A *waiter* is an object of the caller, which this
machine returns with the group.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Generic, TypeVar

from journal_manager.errors import check
from journal_manager.ops import Batch, join
from journal_manager.txid import TxId

W = TypeVar("W")


@dataclass(frozen=True, slots=True)
class EditGroup(Generic[W]):
    """Edits that were logged together, and their waiter."""

    batch: Batch
    waiter: W


class DoubleBuffer(Generic[W]):
    """Two halves: one is filled while the other becomes durable."""

    def __init__(self, next_txid: TxId) -> None:
        self.next_txid = next_txid
        """The id that the next edit gets."""
        self.durable_txid = TxId(next_txid - 1)
        """Every edit up to here is durable."""
        self.pending_bytes = 0
        """The bytes of the frames in both halves."""
        self._filling: deque[EditGroup[W]] = deque()
        self._syncing: list[EditGroup[W]] = []

    def add(self, batch: Batch, waiter: W) -> None:
        """Add a group behind the others; it must begin at ``next_txid``."""
        check(batch.first == self.next_txid and batch.count > 0, "C7", (batch.first, self.next_txid))
        self._filling.append(EditGroup(batch, waiter))
        self.next_txid = TxId(batch.last + 1)
        self.pending_bytes += len(batch.frames)

    def take(self, max_bytes: int) -> Batch | None:
        """Move groups of at most ``max_bytes`` (at least one group) to the other half, joined. None: no group waits."""
        check(not self._syncing, "C4", "a batch is being synced")
        size = 0
        while self._filling:
            size += len(self._filling[0].batch.frames)
            if self._syncing and size > max_bytes:
                break
            self._syncing.append(self._filling.popleft())
        return join([group.batch for group in self._syncing]) if self._syncing else None

    def synced(self) -> list[EditGroup[W]]:
        """Note that what was taken is durable now."""
        done, self._syncing = self._syncing, []
        if done:
            self.durable_txid = done[-1].batch.last
            self.pending_bytes -= sum(len(group.batch.frames) for group in done)
        return done

    def drop(self) -> list[EditGroup[W]]:
        """Forget everything that is not durable, and return it in order."""
        dropped = [*self._syncing, *self._filling]
        self._syncing, self.pending_bytes = [], 0
        self._filling.clear()
        return dropped

    @property
    def idle(self) -> bool:
        """Whether nothing waits and nothing is being synced."""
        return not self._syncing and not self._filling
