"""Ledgers for threads: the same client, on its own event loop in the background.

    from bookkeeper import sync

    with sync.BookKeeper.connect("embedded:///data/bk") as bk:
        with bk.create_ledger(password=b"secret") as ledger:
            entry_id = ledger.append(b"hello")
        with bk.open_ledger(ledger.id, b"secret") as reader:
            for entry in reader.read(0, reader.last_add_confirmed):
                print(entry.payload)

One loop in one daemon thread serves all clients of the process, and any thread may use any object here. There is no
second implementation: every call runs a method of :mod:`bookkeeper.client` on that loop and waits for it. Ctrl-C
cancels a call on the loop, which does not withdraw an append.
"""

from __future__ import annotations

import concurrent.futures
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, Unpack, overload

from bookkeeper.background_loop import BlockingCloser
from bookkeeper.background_loop import each as _each
from bookkeeper.background_loop import run as _run
from bookkeeper.background_loop import submit as _submit
from bookkeeper.client.bookkeeper import BookKeeper as AsyncBookKeeper
from bookkeeper.client.config import ClientConfig
from bookkeeper.client.entry import LedgerEntry
from bookkeeper.client.ledgers.ledger_creation import LedgerOptions, takes_ledger_options
from bookkeeper.client.operators import BookieInfo
from bookkeeper.client.operators import Operator as AsyncOperator
from bookkeeper.client.read.read_handle import ReadHandle as AsyncReadHandle
from bookkeeper.client.write.advanced_handle import AdvancedHandle as AsyncAdvancedHandle
from bookkeeper.client.write.write_handle import WriteHandle as AsyncWriteHandle
from bookkeeper.errors import BookKeeperError
from bookkeeper.ids import BookieId, EntryId, LedgerId
from bookkeeper.ledger import Entry, Fragment, LedgerMetadata
from bookkeeper.meta.records.deleted_ledgers import DeletedLedger
from bookkeeper.seams import Buffer, Seams
from bookkeeper.wire.availability import HeldEntries

__all__ = ["AdvancedHandle", "BookKeeper", "Operator", "ReadHandle", "WriteHandle"]

T = TypeVar("T")


def _iterate(start: Callable[[], AsyncIterator[tuple[EntryId, Sequence[bytes]]]]) -> Iterator[LedgerEntry]:
    """Yield the entries of an asynchronous iterator of runs, with one hop between the threads per run."""
    for first, payloads in _each(start):
        for index, payload in enumerate(payloads):
            yield LedgerEntry(EntryId(first + index), payload)


class BookKeeper(BlockingCloser):
    """A client of one cluster, for threads. See :class:`bookkeeper.client.bookkeeper.BookKeeper`."""

    def __init__(self, client: AsyncBookKeeper) -> None:
        self._client = client

    @classmethod
    def connect(cls, uri: str, *, config: ClientConfig | None = None, seams: Seams | None = None) -> BookKeeper:
        """Connect to the cluster at a metadata URI. Close it, or use it in a ``with``. Raises: as the async one."""

        async def connect() -> AsyncBookKeeper:
            return await AsyncBookKeeper.connect(uri, config=config, seams=seams)

        return cls(_run(connect()))

    @property
    def client(self) -> AsyncBookKeeper:
        """The client underneath; its methods run on the background loop only."""
        return self._client

    def run(self, work: Callable[[AsyncBookKeeper], Coroutine[Any, Any, T]], timeout_s: float | None = None) -> T:
        """Run an operation that only the async client has, for instance ``bk.run(lambda bk: drain(bk, ["b1"]))``.

        Raises: what ``work`` raises; TimeoutError: it took longer than ``timeout_s`` and was cancelled.
        """

        async def call_on_loop() -> T:
            return await work(self._client)

        return _run(call_on_loop(), timeout_s)

    @overload
    def create_ledger(self, *, advanced: Literal[False] = False, **options: Unpack[LedgerOptions]) -> WriteHandle: ...

    @overload
    def create_ledger(self, *, advanced: Literal[True], **options: Unpack[LedgerOptions]) -> AdvancedHandle: ...

    @takes_ledger_options
    def create_ledger(self, *, advanced: bool = False, **options: Unpack[LedgerOptions]) -> WriteHandle:
        """Create a ledger and return its writer: an AdvancedHandle with ``advanced``. Raises: as the async one."""

        async def create() -> WriteHandle:
            if advanced:
                return AdvancedHandle(await self._client.create_ledger(advanced=True, **options))
            return WriteHandle(await self._client.create_ledger(**options))

        return _run(create())

    def open_ledger(self, ledger_id: int, password: bytes = b"", *, recovery: bool = True) -> ReadHandle:
        """Open a ledger for reading; with ``recovery`` close it first if it is open. Raises: as the async one."""
        return ReadHandle(_run(self._client.open_ledger(ledger_id, password, recovery=recovery)))

    def delete_ledger(self, ledger_id: int, *, force: bool = False, grace_s: int | None = None) -> None:
        """Delete a ledger, closing it first. Arguments and errors are those of the async one."""
        _run(self._client.delete_ledger(ledger_id, force=force, grace_s=grace_s))

    def list_ledgers(self) -> list[LedgerId]:
        """Return the ids of all ledgers, ascending."""

        async def collect() -> list[LedgerId]:
            return [ledger_id async for ledger_id in self._client.list_ledgers()]

        return _run(collect())

    def metadata(self, ledger_id: int) -> LedgerMetadata:
        """Read a ledger's metadata now. Raises NoSuchLedgerError."""
        return _run(self._client.metadata(ledger_id))

    def exists(self, ledger_id: int) -> bool:
        """Whether such a ledger exists now."""
        return _run(self._client.exists(ledger_id))

    def close(self) -> None:
        """Abandon open handles, close connections, stop what ``embedded:`` started. Idempotent."""
        _run(self._client.close())


class WriteHandle:
    """The only writer of a ledger, for threads. See :class:`bookkeeper.client.write.write_handle.WriteHandle`."""

    def __init__(self, handle: AsyncWriteHandle) -> None:
        self._handle = handle

    @property
    def id(self) -> LedgerId:
        return self._handle.id

    @property
    def metadata(self) -> LedgerMetadata:
        return self._handle.metadata

    @property
    def last_add_confirmed(self) -> EntryId:
        return self._handle.last_add_confirmed

    @property
    def length(self) -> int:
        return self._handle.length

    @property
    def closed(self) -> bool:
        return self._handle.closed

    @property
    def pending_bytes(self) -> int:
        return self._handle.pending_bytes

    @property
    def failed_bookies(self) -> tuple[str, ...]:
        return self._handle.failed_bookies

    def append(self, payload: Buffer, timeout_s: float | None = None) -> EntryId:
        """Append one entry; return its id once it is durable.

        Raises:
            TimeoutError: the entry was not durable within ``timeout_s``; the outcome is unknown.
            Others: as the async one.
        """
        return _run(self._handle.append(payload), timeout_s)

    def append_many(self, payloads: Sequence[Buffer], timeout_s: float | None = None) -> range:
        """Append a run; return its ids once all are durable. Raises: as the async one, and TimeoutError."""
        return _run(self._handle.append_many(payloads), timeout_s)

    def append_nowait(self, payload: Buffer) -> concurrent.futures.Future[EntryId]:
        """Append without waiting. The client waits for room on its own loop, and not here: a fast thread should limit
        what it has in flight, for instance by waiting for the oldest future."""
        return _submit(self._handle.append(payload))

    def flush(self) -> EntryId:
        """Wait until everything appended so far is acknowledged; return the last add confirmed."""
        return _run(self._handle.flush())

    def force(self, timeout_s: float | None = None) -> EntryId:
        """Make everything durable, on every bookie, that was acknowledged so far; return the last add confirmed.

        Raises: as the async one, and TimeoutError.
        """
        return _run(self._handle.force(), timeout_s)

    def close(self, *, force: bool = True) -> None:
        """Close the ledger at the last add confirmed; pending appends fail first. Raises: as the async one.

        With ``deferred_sync`` it first forces what was acknowledged; with ``force=False`` it does not.
        """
        _run(self._handle.close(force=force))

    def abandon(self) -> None:
        """End this handle without closing the ledger, which stays open until a recovery closes it."""
        _run(self._handle.abandon())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _run(self._handle.__aexit__(kind, error, trace))


class AdvancedHandle(WriteHandle):
    """The only writer of a ledger whose ids its caller chooses, for threads.

    See :class:`bookkeeper.client.write.advanced_handle.AdvancedHandle`; append() and its sisters are refused here, too.
    """

    def __init__(self, handle: AsyncAdvancedHandle) -> None:
        super().__init__(handle)
        self._advanced = handle

    @property
    def lowest_missing(self) -> EntryId:
        return self._advanced.lowest_missing

    def append_at(self, entry_id: int, payload: Buffer, timeout_s: float | None = None) -> EntryId:
        """Append as entry ``entry_id``; return the id once the entry and all lower ones are durable.

        A thread that appends above a gap waits until another thread fills it. With append_at_nowait() one thread can do
        both.

        Raises:
            TimeoutError: the entry was not durable within ``timeout_s``; the outcome is unknown.
            Others: as the async one.
        """
        return _run(self._advanced.append_at(entry_id, payload), timeout_s)

    def append_at_nowait(self, entry_id: int, payload: Buffer) -> concurrent.futures.Future[EntryId]:
        """Append as entry ``entry_id`` without waiting. What append_at() raises comes through the future, too."""
        return _submit(self._advanced.append_at(entry_id, payload))


class ReadHandle:
    """A ledger opened for reading, for threads. See :class:`bookkeeper.client.read.read_handle.ReadHandle`."""

    def __init__(self, handle: AsyncReadHandle) -> None:
        self._handle = handle

    @property
    def id(self) -> LedgerId:
        return self._handle.id

    @property
    def metadata(self) -> LedgerMetadata:
        return self._handle.metadata

    @property
    def last_add_confirmed(self) -> EntryId:
        return self._handle.last_add_confirmed

    @property
    def length(self) -> int:
        return self._handle.length

    @property
    def closed(self) -> bool:
        return self._handle.closed

    def read(self, first: int, last: int) -> Iterator[LedgerEntry]:
        """Read the entries first..last (both inclusive) in order. Raises: as the async one."""
        return _iterate(lambda: self._handle.read_batches(first, last))

    def read_entry(self, entry_id: int) -> bytes:
        """Read the payload of one entry."""
        return _run(self._handle.read_entry(entry_id))

    def read_unconfirmed(self, entry_id: int) -> bytes:
        """Read one entry that may lie past the last add confirmed."""
        return _run(self._handle.read_unconfirmed(entry_id))

    def read_batch(self, first: int, *, count_max: int = 0, bytes_max: int = 0) -> list[LedgerEntry]:
        """Read entries from ``first`` on, as many as the limits allow, and at least one. Raises: as the async one."""
        return _run(self._handle.read_batch(first, count_max=count_max, bytes_max=bytes_max))

    def wait_last_add_confirmed(self, past: int, *, timeout_ms: int) -> EntryId:
        """Wait until more than ``past`` is confirmed, the ledger is closed, or the time is up."""
        return _run(self._handle.wait_last_add_confirmed(past, timeout_ms=timeout_ms))

    def read_last_add_confirmed_and_entry(
        self, entry_id: int, *, timeout_ms: int
    ) -> tuple[EntryId, LedgerEntry | None]:
        """Wait until ``entry_id`` is confirmed, and read it; None if it is not in time. Raises: as the async one."""
        return _run(self._handle.read_last_add_confirmed_and_entry(entry_id, timeout_ms=timeout_ms))

    def read_last_add_confirmed(self) -> EntryId:
        """Ask the bookies for the last add confirmed: how far may be read now."""
        return _run(self._handle.read_last_add_confirmed())

    def tail(self, first: int = 0) -> Iterator[LedgerEntry]:
        """Read entries from ``first`` on, as they are confirmed. Ends when the ledger is closed and read to its end."""
        return _iterate(lambda: self._handle.tail_batches(first))

    def close(self) -> None:
        """Stop watching the ledger. The ledger itself does not change."""
        _run(self._handle.close())

    def __enter__(self) -> ReadHandle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Operator:
    """The operations that operators need, for threads. See :class:`bookkeeper.client.operators.Operator`."""

    def __init__(self, client: BookKeeper) -> None:
        self._client = client
        self._operator = AsyncOperator(client.client)

    @property
    def client(self) -> BookKeeper:
        """The client that this operator uses."""
        return self._client

    def writable_bookies(self) -> list[BookieId]:
        """Return the bookies that take new ledgers, sorted."""
        return _run(self._operator.writable_bookies())

    def read_only_bookies(self) -> list[BookieId]:
        """Return the bookies that serve what they have and take nothing new, sorted."""
        return _run(self._operator.read_only_bookies())

    def all_bookies(self) -> list[BookieId]:
        """Return every bookie that the cluster knows of, absent ones too, sorted."""
        return _run(self._operator.all_bookies())

    def bookie_info(self, bookie: str) -> BookieInfo:
        """Ask a bookie how full its disk is. Raises: as the async one."""
        return _run(self._operator.bookie_info(bookie))

    def entries_on(self, bookie: str, ledger_id: int) -> HeldEntries:
        """Ask a bookie which entries of a ledger it holds. Raises: as the async one."""
        return _run(self._operator.entries_on(bookie, ledger_id))

    def copy_on(self, bookie: str, ledger_id: int, entry_id: int) -> Entry:
        """Read one bookie's copy of an entry, and check its digest. Raises: as the async one."""
        return _run(self._operator.copy_on(bookie, ledger_id, entry_id))

    def metadata(self, ledger_id: int) -> LedgerMetadata:
        """Read a ledger's metadata now. Raises NoSuchLedgerError."""
        return _run(self._operator.metadata(ledger_id))

    def open_ledger(self, ledger_id: int, *, recovery: bool = False) -> ReadHandle:
        """Open a ledger without its password. Raises: as the async one."""
        return ReadHandle(_run(self._operator.open_ledger(ledger_id, recovery=recovery)))

    def recover_ledger(self, ledger_id: int) -> LedgerMetadata:
        """Fence and close a ledger, without its password; return its metadata. Raises: as the async one."""
        return _run(self._operator.recover_ledger(ledger_id))

    def deleted_ledgers(self) -> Iterator[DeletedLedger]:
        """Find the deleted ledgers that can be brought back."""
        return _each(self._operator.deleted_ledgers)

    def undelete_ledger(self, ledger_id: int) -> LedgerMetadata:
        """Bring a deleted ledger back; return its metadata. Raises: as the async one."""
        return _run(self._operator.undelete_ledger(ledger_id))

    def ledgers_on(self, bookie: str) -> Iterator[tuple[LedgerId, Sequence[Fragment]]]:
        """Find the ledgers that have fragments on a bookie, by their metadata."""
        return _each(lambda: self._operator.ledgers_on(bookie))

    def all_metadata(self) -> Iterator[tuple[LedgerId, LedgerMetadata | BookKeeperError]]:
        """Read the metadata of every ledger, or learn why they cannot be read."""
        return _each(self._operator.all_metadata)
