"""Edit logs for threads: the same interface, on an event loop in the background.

    from journal_manager import sync

    with sync.EditLog.open("file:///data/edits") as log:
        for op in log.read(1):
            print(op.txid, op.body)
        txid = log.log(b"an edit")                 # durable when it returns
        log.save_snapshot(txid, [b"the state"])

    with sync.open_reader("file:///data/edits") as reader:
        for op in reader.read(1): ...

    with sync.replicated("file:///data/edits", machine, name="a") as replica:
        replica.until_active()
        answer = replica.submit(b"deposit 5")

There is no second implementation: every call runs a method of the async interface on that loop and waits for it, and
raises what that raises. Any thread may use any object here; edits of many threads become durable in groups. Ctrl-C
cancels a call on the loop, which does not withdraw an edit. The blocking client of ledgers, ``bookkeeper.sync``, uses
the same loop.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator
from contextlib import aclosing
from typing import Final, Protocol, TypeVar

import journal_manager
from bookkeeper.background_loop import BlockingCloser, each, run, submit
from journal_manager import (
    UNKNOWN_EPOCH,
    Chunks,
    EditLogConfig,
    EditRun,
    FencingToken,
    JournalWriter,
    NamespaceInfo,
    Op,
    RecoveryReport,
    ReplicaConfig,
    ReplicaRole,
    ReplicaStatus,
    SegmentInfo,
    SnapshotInfo,
    TakenBack,
    TxId,
)
from journal_manager import EditLog as AsyncEditLog
from journal_manager import JournalReader as AsyncJournalReader
from journal_manager import Replicated as AsyncReplicated
from journal_manager import SnapshotStore as AsyncSnapshotStore
from journal_manager.edits import RequestAnswer, RequestId, RequestTable
from journal_manager.journals import Election

__all__ = [
    "EditLog",
    "JournalReader",
    "Replicated",
    "SnapshotStore",
    "StateMachine",
    "format_journal",
    "has_data",
    "open_reader",
    "open_snapshots",
    "replicated",
]

T = TypeVar("T")

_OPS_AT_ONCE: Final = 512
"""Edits that one hop between the threads brings."""
_IN_MEMORY: Final = 16 << 20
"""Bytes of a snapshot that are kept in memory until the program restores it; more go to a temporary file."""
_CHUNK: Final = 1 << 20


def format_journal(uri: str, *, namespace: NamespaceInfo | None = None, force: bool = False, **options: object) -> None:
    """Make an empty journal. Raises as the async one."""
    run(journal_manager.format_journal(uri, namespace=namespace, force=force, **options))


def has_data(uri: str, **options: object) -> bool:
    """Whether ``format_journal`` would destroy something."""
    return run(journal_manager.has_data(uri, **options))


def open_reader(uri: str, *, namespace: NamespaceInfo | None = None, **options: object) -> JournalReader:
    """Open for reading, without disturbing a writer. Raises as the async one."""
    return JournalReader(run(journal_manager.open_reader(uri, namespace=namespace, **options)))


def open_snapshots(uri: str, **options: object) -> SnapshotStore:
    """Open the snapshots that are kept beside the journal. Raises as the async one."""
    return SnapshotStore(run(journal_manager.open_snapshots(uri, **options)))


class EditLog(BlockingCloser):
    """One writer's log, for threads. See :class:`journal_manager.EditLog`."""

    def __init__(self, log: AsyncEditLog) -> None:
        self._log = log

    @classmethod
    def open(
        cls,
        uri: str,
        *,
        namespace: NamespaceInfo | None = None,
        owner: str = "",
        create: bool = True,
        config: EditLogConfig | None = None,
        requests: RequestTable | None = None,
        wrap: Callable[[JournalWriter], JournalWriter] | None = None,
        **options: object,
    ) -> EditLog:
        """Become the writer of the journal at ``uri``. Raises as the async one."""
        opening = AsyncEditLog.open(
            uri, namespace=namespace, owner=owner, create=create, config=config, requests=requests, wrap=wrap, **options
        )
        return cls(run(opening))

    @property
    def token(self) -> FencingToken:
        return self._log.token

    @property
    def recovery(self) -> RecoveryReport:
        return self._log.recovery

    @property
    def next_txid(self) -> TxId:
        return self._log.next_txid

    @property
    def durable_txid(self) -> TxId:
        return self._log.durable_txid

    @property
    def failure(self) -> BaseException | None:
        return self._log.failure

    def log(self, body: bytes, opcode: int = 0, *, request: RequestId | None = None) -> TxId:
        """Give ``body`` the next id and make it durable; returns the id. Raises as the async one."""
        return self.log_nowait(body, opcode, request=request).result()

    def log_nowait(
        self, body: bytes, opcode: int = 0, *, request: RequestId | None = None
    ) -> concurrent.futures.Future[TxId]:
        """As ``log``, without waiting: the future has the id, or the error. One thread's edits keep their order."""

        async def log() -> TxId:
            return await self._log.log(body, opcode, request=request)

        return submit(log())

    def log_group(self, ops: Iterable[tuple[int, bytes]], *, request: RequestId | None = None) -> TxId:
        """Log ``(opcode, body)`` edits that become durable together or not at all; returns the last id."""
        edits = list(ops)

        async def log() -> TxId:
            return await self._log.log_group(edits, request=request)

        return run(log())

    def sync(self, upto: TxId | None = None) -> TxId:
        """Wait until ``upto`` (default: everything logged so far) is durable; returns ``durable_txid``."""
        return run(self._log.sync(upto))

    def roll(self) -> SegmentInfo | None:
        """Make everything logged so far durable and final; returns the finalized segment, None if none was open."""
        return run(self._log.roll())

    def read(self, start: TxId, end: TxId | None = None) -> Iterator[Op]:
        """The durable edits from ``start`` up to ``end`` (default: ``durable_txid``), in order."""
        return _ops(lambda: self._log.read(start, end))

    def read_runs(self, start: TxId, end: TxId | None = None) -> Iterator[EditRun]:
        """The same edits as ``read`` gives, in lists of edits that follow each other."""
        return each(lambda: self._log.read_runs(start, end))

    def taken_back(self) -> TakenBack:
        """Which edits were taken back before this log was opened."""
        return run(self._log.taken_back())

    def segments(self) -> tuple[SegmentInfo, ...]:
        """All segments, in order."""
        return run(self._log.segments())

    def purge(self, below: TxId) -> tuple[SegmentInfo, ...]:
        """Remove whole final segments that end below ``below`` (never the newest); return them."""
        return run(self._log.purge(below))

    def save_snapshot(self, at: TxId, chunks: Chunks) -> SnapshotInfo:
        """Keep the state after edit ``at``. The chunks are taken on the background loop's thread."""
        return run(self._log.save_snapshot(at, chunks))

    def delete_snapshot(self, at: TxId) -> None:
        """Remove a snapshot. It is no error if there is none."""
        run(self._log.delete_snapshot(at))

    def adopt_snapshots(self) -> tuple[SnapshotInfo, ...]:
        """Keep the newest snapshot that a standby has offered. Returns what is new."""
        return run(self._log.adopt_snapshots())

    def ensure_owner(self) -> None:
        """Ask the journal whether this writer still has it. Raises JournalFencedError."""
        run(self._log.ensure_owner())

    def close(self) -> None:
        """Make everything durable, finalize the segment, and release everything. Idempotent."""
        run(self._log.close())

    def abort(self) -> None:
        """Release without waiting, as a crash would. Never raises."""
        run(self._log.abort())


class JournalReader(BlockingCloser):
    """Reads a journal, for threads. See :class:`journal_manager.JournalReader`."""

    def __init__(self, reader: AsyncJournalReader) -> None:
        self._reader = reader

    def segments(self) -> tuple[SegmentInfo, ...]:
        """All segments, in order."""
        return run(self._reader.segments())

    def read(
        self, start: TxId, end: TxId | None = None, *, in_progress: bool = True, epoch: int | None = None
    ) -> Iterator[Op]:
        """The edits from ``start`` up to ``end`` (default: all that are durable now), in order. ``epoch`` is that of
        the edit before ``start`` if the caller goes on from there."""
        return _ops(lambda: journal_manager.read_ops(self._reader, start, end, in_progress=in_progress, epoch=epoch))

    def read_runs(
        self, start: TxId, end: TxId | None = None, *, in_progress: bool = True, epoch: int | None = None
    ) -> Iterator[EditRun]:
        """The same edits, in lists of edits that follow each other, with their epoch."""
        return each(lambda: journal_manager.read_runs(self._reader, start, end, in_progress=in_progress, epoch=epoch))

    def tail(self, start: TxId, *, in_progress: bool = True, epoch: int | None = None) -> Iterator[Op]:
        """The durable edits from ``start`` on, for ever: it waits for the next one. Close the iterator to end it."""
        return each(lambda: journal_manager.tail(self._reader, start, in_progress=in_progress, epoch=epoch))

    def taken_back(self) -> TakenBack:
        """Which edits were taken back until now."""
        return run(self._reader.taken_back())

    def changed(self, timeout_s: float) -> None:
        """Wait until there may be more to read than at the last call, at most ``timeout_s`` seconds."""
        run(self._reader.changed(timeout_s))

    def close(self) -> None:
        """Release everything. Idempotent."""
        run(self._reader.close())


class SnapshotStore(BlockingCloser):
    """Reads snapshots, for threads. See :class:`journal_manager.SnapshotStore`."""

    def __init__(self, store: AsyncSnapshotStore) -> None:
        self._store = store

    def list(self) -> tuple[SnapshotInfo, ...]:
        """List all snapshots, oldest first."""
        return run(self._store.list())

    def read(self, at: TxId) -> Iterator[bytes]:
        """The content of the snapshot at ``at``, in parts; verified when the end was reached."""
        return each(lambda: self._store.read(at))

    def load(self, at: TxId | None = None) -> tuple[SnapshotInfo, bytes] | None:
        """Load the snapshot at ``at``, or the newest that is intact, as a whole; None if there is none."""
        return run(self._store.load(at))

    def offer(self, at: TxId, chunks: Chunks, *, epoch: int = UNKNOWN_EPOCH) -> SnapshotInfo:
        """Hand the state after edit ``at``, whose epoch is ``epoch``, to the journal's owner."""
        return run(self._store.offer(at, chunks, epoch=epoch))

    def close(self) -> None:
        """Release everything. Idempotent."""
        run(self._store.close())


class StateMachine(Protocol):
    """The program's state, and how an edit changes it: :class:`journal_manager.StateMachine` without ``async``.

    All methods are called on the loop's thread, one at a time. They must not wait for a call of this module.
    """

    def apply(self, op: Op) -> bytes | None:
        """Change the state by one edit. Returns what the one who submitted it is answered. As the async one."""

    def snapshot(self) -> Iterable[bytes]:
        """The whole state, in chunks."""

    def restore(self, chunks: Iterator[bytes]) -> None:
        """Replace the whole state by that of a snapshot; the chunks may be divided otherwise. No chunk: no edit yet."""


class _MachineOnLoop:
    """The same program for the async interface."""

    def __init__(self, machine: StateMachine) -> None:
        self._machine = machine
        self.apply = machine.apply
        self.snapshot = machine.snapshot

    async def restore(self, chunks: AsyncIterator[bytes]) -> None:
        with tempfile.SpooledTemporaryFile(_IN_MEMORY) as content:
            async for chunk in chunks:
                content.write(chunk)
            content.seek(0)
            self._machine.restore(iter(lambda: content.read(_CHUNK), b""))


class Replicated(BlockingCloser):
    """One replica of a program, for threads. See :class:`journal_manager.Replicated`. Made by :func:`replicated`."""

    def __init__(self, replica: AsyncReplicated) -> None:
        self._replica = replica

    @property
    def role(self) -> ReplicaRole:
        return self._replica.role

    @property
    def applied(self) -> TxId:
        return self._replica.applied

    def status(self) -> ReplicaStatus:
        """What this replica knows of itself and the others."""
        return self._replica.status()

    def submit(self, body: bytes, opcode: int = 0, *, request: RequestId | None = None) -> RequestAnswer:
        """Apply an edit on every replica. Returns its id and what ``apply`` answered, once the edit is durable.

        Raises as the async one. Ctrl-C does not withdraw the edit.
        """
        return run(self._replica.submit(body, opcode, request=request))

    def read(self, query: Callable[[], T]) -> T:
        """Call ``query`` on the loop's thread, and return its result. It shows every edit that any replica answered
        before this call. Raises as the async one."""
        return run(self._replica.read(query))

    def until_active(self, timeout_s: float | None = None) -> None:
        """Wait until this replica is the active one. Raises as the async one; TimeoutError: not within the time."""

        async def wait() -> None:
            async with asyncio.timeout(timeout_s):
                await self._replica.until_active()

        run(wait())

    def checkpoint(self) -> SnapshotInfo | None:
        """Take a snapshot now, and apply the retention policy. Raises as the async one."""
        return run(self._replica.checkpoint())

    def close(self) -> None:
        """Give everything up in order, so that a successor need not wait. Idempotent."""
        run(self._replica.close())


def replicated(
    uri: str,
    machine: StateMachine,
    *,
    name: str = "",
    config: ReplicaConfig | None = None,
    election: Election | None = None,
    wrap: Callable[[JournalWriter], JournalWriter] | None = None,
    **options: object,
) -> Replicated:
    """Make ``machine`` one replica of the program whose journal is at ``uri``, and begin to follow it at once.

    Arguments and errors are those of :func:`journal_manager.replicated`.
    """

    async def start() -> AsyncReplicated:
        replica = journal_manager.replicated(
            uri, _MachineOnLoop(machine), name=name, config=config, election=election, wrap=wrap, **options
        )
        await replica.start()
        return replica

    return Replicated(run(start()))


def _ops(start: Callable[[], AsyncGenerator[Op, None]]) -> Iterator[Op]:
    """Yield edits, with one hop between the threads for many of them."""
    for ops in each(lambda: _in_lists(start)):
        yield from ops


async def _in_lists(start: Callable[[], AsyncGenerator[Op, None]]) -> AsyncIterator[list[Op]]:
    found: list[Op] = []
    async with aclosing(start()) as ops:
        async for op in ops:
            found.append(op)
            if len(found) == _OPS_AT_ONCE:
                yield found
                found = []
    if found:
        yield found
