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
        replica.wait_until_active()
        answer = replica.submit(b"deposit 5")

There is no second implementation: every call runs a method of the async interface on that loop and waits for it, and
raises what that raises. Any thread may use any object here; edits of many threads become durable in groups. Ctrl-C
cancels a call on the loop, which does not withdraw an edit. The blocking client of ledgers, ``bookkeeper.sync``, uses
the same loop.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator
from contextlib import aclosing
from typing import Final, Protocol, TypeVar

import journal_manager
from bookkeeper.background_loop import BlockingCloser, SharedAttribute, blocking, each, iterating, run, submitting
from journal_manager import EditLog as AsyncEditLog
from journal_manager import (
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
    TxId,
)
from journal_manager import JournalReader as AsyncJournalReader
from journal_manager import ReplicatedProgram as AsyncReplicated
from journal_manager import SnapshotStore as AsyncSnapshotStore
from journal_manager.edits import RequestId, RequestTable
from journal_manager.journals.election import Election

__all__ = [
    "EditLog",
    "JournalReader",
    "ReplicatedProgram",
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


class EditLog(BlockingCloser[AsyncEditLog]):
    """One writer's log, for threads. See :class:`journal_manager.EditLog`."""

    token = SharedAttribute[FencingToken]()
    recovery = SharedAttribute[RecoveryReport]()
    next_txid = SharedAttribute[TxId]()
    durable_txid = SharedAttribute[TxId]()
    failure = SharedAttribute[BaseException | None]()

    log = blocking(AsyncEditLog.log)
    log_nowait = submitting(AsyncEditLog.log)
    sync = blocking(AsyncEditLog.sync)
    roll = blocking(AsyncEditLog.roll)
    read_runs = iterating(AsyncEditLog.read_runs)
    discarded = blocking(AsyncEditLog.discarded)
    segments = blocking(AsyncEditLog.segments)
    purge = blocking(AsyncEditLog.purge)
    save_snapshot = blocking(AsyncEditLog.save_snapshot)
    delete_snapshot = blocking(AsyncEditLog.delete_snapshot)
    adopt_snapshots = blocking(AsyncEditLog.adopt_snapshots)
    ensure_owner = blocking(AsyncEditLog.ensure_owner)
    close = blocking(AsyncEditLog.close)
    abort = blocking(AsyncEditLog.abort)

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

    def log_group(
        self, ops: Iterable[tuple[int, bytes]], *, request: RequestId | None = None, since: TxId | None = None
    ) -> TxId:
        """Log ``(opcode, body)`` edits that become durable together or not at all; returns the last id."""
        edits = list(ops)

        async def log() -> TxId:
            return await self._original.log_group(edits, request=request, since=since)

        return run(log())

    def read(self, start: TxId, end: TxId | None = None) -> Iterator[Op]:
        """The durable edits from ``start`` up to ``end`` (default: ``durable_txid``), in order."""
        return _ops(lambda: self._original.read(start, end))


class JournalReader(BlockingCloser[AsyncJournalReader]):
    """Reads a journal, for threads. See :class:`journal_manager.JournalReader`."""

    segments = blocking(AsyncJournalReader.segments)
    discarded = blocking(AsyncJournalReader.discarded)
    changed = blocking(AsyncJournalReader.changed)
    close = blocking(AsyncJournalReader.close)

    def read(
        self, start: TxId, end: TxId | None = None, *, in_progress: bool = True, epoch: int | None = None
    ) -> Iterator[Op]:
        """The edits from ``start`` up to ``end`` (default: all that are durable now), in order. ``epoch`` is that of
        the edit before ``start`` if the caller goes on from there."""
        return _ops(lambda: journal_manager.read_ops(self._original, start, end, in_progress=in_progress, epoch=epoch))

    def read_runs(
        self, start: TxId, end: TxId | None = None, *, in_progress: bool = True, epoch: int | None = None
    ) -> Iterator[EditRun]:
        """The same edits, in lists of edits that follow each other, with their epoch."""
        return each(lambda: journal_manager.read_runs(self._original, start, end, in_progress=in_progress, epoch=epoch))

    def tail(self, start: TxId, *, in_progress: bool = True, epoch: int | None = None) -> Iterator[Op]:
        """The durable edits from ``start`` on, for ever: it waits for the next one. Close the iterator to end it."""
        return each(lambda: journal_manager.tail(self._original, start, in_progress=in_progress, epoch=epoch))


class SnapshotStore(BlockingCloser[AsyncSnapshotStore]):
    """Reads snapshots, for threads. See :class:`journal_manager.SnapshotStore`."""

    list = blocking(AsyncSnapshotStore.list)
    read = iterating(AsyncSnapshotStore.read)
    load = blocking(AsyncSnapshotStore.load)
    offer = blocking(AsyncSnapshotStore.offer)
    close = blocking(AsyncSnapshotStore.close)


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


class ReplicatedProgram(BlockingCloser[AsyncReplicated]):
    """One replica of a program, for threads. :func:`replicated` makes it.

    See :class:`journal_manager.ReplicatedProgram`.
    """

    role = SharedAttribute[ReplicaRole]()
    applied = SharedAttribute[TxId]()

    submit = blocking(AsyncReplicated.submit)
    read = blocking(AsyncReplicated.read)
    checkpoint = blocking(AsyncReplicated.checkpoint)
    close = blocking(AsyncReplicated.close)

    def status(self) -> ReplicaStatus:
        """What this replica knows of itself and the others."""
        return self._original.status()

    def wait_until_active(self, timeout_s: float | None = None) -> None:
        """Wait until this replica is the active one. Raises as the async one; TimeoutError: not within the time."""

        async def wait() -> None:
            async with asyncio.timeout(timeout_s):
                await self._original.wait_until_active()

        run(wait())


def replicated(
    uri: str,
    machine: StateMachine,
    *,
    name: str = "",
    config: ReplicaConfig | None = None,
    election: Election | None = None,
    wrap: Callable[[JournalWriter], JournalWriter] | None = None,
    **options: object,
) -> ReplicatedProgram:
    """Make ``machine`` one replica of the program whose journal is at ``uri``, and begin to follow it at once.

    Arguments and errors are those of :func:`journal_manager.replicated`.
    """

    async def start() -> AsyncReplicated:
        replica = journal_manager.replicated(
            uri, _MachineOnLoop(machine), name=name, config=config, election=election, wrap=wrap, **options
        )
        await replica.start()
        return replica

    return ReplicatedProgram(run(start()))


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
