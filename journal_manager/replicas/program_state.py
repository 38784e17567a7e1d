"""The state of a replica's program: edits are applied to it, and a snapshot replaces it.

It is one state: the program's own, and the answers to requests. How far both have come is told to
:class:`~journal_manager.replicas.replica.Replica`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from typing import Final, Protocol

from journal_manager.edits.ops import EditRun, Op
from journal_manager.edits.requests import RequestAnswer, RequestTable
from journal_manager.errors import JournalError, ReplicaFailedError
from journal_manager.replicas.replica import Replica
from journal_manager.replicas.replica_snapshot import divided, joined
from journal_manager.snapshots.snapshots import SnapshotInfo, SnapshotStore, restore_newest
from journal_manager.txid import NOTHING

TURN_EDITS: Final = 1024
"""So many edits are replayed before other tasks get a turn."""


class StateMachine(Protocol):
    """The program's state, and how an edit changes it. All methods are called on the event loop's thread."""

    def apply(self, op: Op) -> bytes | None:
        """Change the state by one edit. Returns what the one who submitted it is answered.

        The same edits must give the same state and the same answers on every replica: no clock, no chance, no I/O.

        On the active replica it may refuse an edit that is being submitted: it raises before it has changed anything,
        the edit is not logged, and whoever submitted it gets the exception. It never raises for an edit that is
        replayed: that edit was not refused, in the same state.
        """

    def snapshot(self) -> Iterable[bytes]:
        """The whole state, in chunks. No edit is applied between two chunks."""

    async def restore(self, chunks: AsyncIterator[bytes]) -> None:
        """Replace the whole state by that of a snapshot; the chunks may be divided otherwise. No chunk: no edit yet."""


class ProgramState:
    """What a replica has applied."""

    def __init__(self, machine: StateMachine, replica: Replica, requests: RequestTable) -> None:
        self._machine, self._replica = machine, replica
        self.requests = requests
        """The answers to requests that were carried out."""
        self.is_loaded = False
        """Whether the state is that of ``replica.applied``, and may be continued."""

    def carry_out(self, op: Op) -> RequestAnswer:
        """Apply an edit that is being submitted, before it is logged. Raises what the program raises to refuse it."""
        answer = RequestAnswer(op.txid, self._machine.apply(op) or b"")
        self._replica.logged(op.txid)
        return answer

    async def replay(self, runs: AsyncGenerator[EditRun, None], enough: Callable[[], bool] | None = None) -> bool:
        """Apply the edits of the journal, with turns for other tasks. ``enough`` is asked after each turn.

        Returns:
            Whether it was enough: there may be more now.

        Raises:
            ReplicaFailedError: the program raised.
            JournalError: what ``runs`` raises; what came before is applied.
        """
        async with aclosing(runs):
            async for run in runs:
                for ops in turns(run):
                    self._apply(ops, run.epoch)
                    if ops[-1].txid % TURN_EDITS == 0:
                        await asyncio.sleep(0)
                        if enough is not None and enough():
                            return True
        return False

    def _apply(self, ops: Sequence[Op], epoch: int) -> None:
        """Apply edits of one epoch that follow each other, at least one."""
        apply, applied = self._machine.apply, NOTHING
        try:
            for op in ops:
                try:
                    result = apply(op)
                except Exception as error:
                    raise ReplicaFailedError(
                        f"the state machine raised when edit {op.txid} was replayed: {error}"
                    ) from error
                applied = op.txid
                if op.request is not None:
                    self.requests.record(op.request, RequestAnswer(applied, result or b""))
        finally:
            if applied != NOTHING:
                self._replica.replayed(ops[0].txid, applied, epoch)

    def forget(self) -> None:
        """The state is none of the journal's any more: it is restored before it is continued."""
        self.is_loaded = False
        self._replica.forgotten()

    def content(self) -> Iterator[bytes]:
        """The content of a snapshot of it, in chunks. No edit is applied between two chunks."""
        return joined(self.requests.encode(), self._machine.snapshot())

    async def load(self, opens_store: Callable[[], Awaitable[SnapshotStore]]) -> SnapshotInfo | None:
        """Restore the newest intact snapshot, or the empty state. Returns the snapshot.

        Raises:
            JournalError: there is none that can be read. ReplicaFailedError: the program raised.
        """
        self.is_loaded = False
        async with await opens_store() as store:
            try:
                newest = await restore_newest(store, self._restore)
                if newest is None:
                    self.requests.clear()
                    await self._machine.restore(_nothing())
            except JournalError:
                raise
            except Exception as error:
                raise ReplicaFailedError(f"the state machine could not restore a snapshot: {error}") from error
        if newest is None:
            self._replica.restored(NOTHING)
        else:
            self._replica.restored(newest.at, newest.epoch)
        self.is_loaded = True
        return newest

    async def _restore(self, info: SnapshotInfo, chunks: AsyncGenerator[bytes, None]) -> None:
        table, rest = await divided(chunks)
        self.requests.restore(table)
        await self._machine.restore(rest)


def turns(run: list[Op]) -> Iterator[list[Op]]:
    """The edits of a run in portions, which end where an id is a multiple of TURN_EDITS."""
    at, end = 0, len(run)
    while at < end:
        following = at + (-run[at].txid) % TURN_EDITS + 1
        yield run[at:following]
        at = following


async def _nothing() -> AsyncIterator[bytes]:
    """No chunk at all."""
    for chunk in list[bytes]():
        yield chunk
