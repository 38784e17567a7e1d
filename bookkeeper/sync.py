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

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, Unpack, overload

from bookkeeper.background_loop import (
    Blocking,
    BlockingCloser,
    SharedAttribute,
    blocking,
    each,
    iterating,
    opening,
    run,
    submitting,
)
from bookkeeper.client.bookkeeper import BookKeeper as AsyncBookKeeper
from bookkeeper.client.config import ClientConfig
from bookkeeper.client.entry import LedgerEntry
from bookkeeper.client.known import KnownCluster, KnownLedger
from bookkeeper.client.ledgers.ledger_creation import LedgerOptions, takes_ledger_options
from bookkeeper.client.operators import Operator as AsyncOperator
from bookkeeper.client.read.read_handle import ReadHandle as AsyncReadHandle
from bookkeeper.client.write.advanced_handle import AdvancedHandle as AsyncAdvancedHandle
from bookkeeper.client.write.write_handle import WriteHandle as AsyncWriteHandle
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.ledger import LedgerMetadata
from bookkeeper.seams import Buffer, Seams

__all__ = ["AdvancedHandle", "BookKeeper", "Operator", "ReadHandle", "WriteHandle"]

T = TypeVar("T")


def _iterate(start: Callable[[], AsyncIterator[tuple[EntryId, Sequence[bytes]]]]) -> Iterator[LedgerEntry]:
    """Yield the entries of an asynchronous iterator of runs, with one hop between the threads per run."""
    for first, payloads in each(start):
        for index, payload in enumerate(payloads):
            yield LedgerEntry(EntryId(first + index), payload)


class WriteHandle(Blocking[AsyncWriteHandle]):
    """The only writer of a ledger, for threads. See :class:`bookkeeper.client.write.write_handle.WriteHandle`."""

    id = SharedAttribute[LedgerId]()
    metadata = SharedAttribute[LedgerMetadata]()
    last_add_confirmed = SharedAttribute[EntryId]()
    length = SharedAttribute[int]()
    closed = SharedAttribute[bool]()
    pending_bytes = SharedAttribute[int]()
    failed_bookies = SharedAttribute[tuple[str, ...]]()

    append_nowait = submitting(AsyncWriteHandle.append)
    flush = blocking(AsyncWriteHandle.flush)
    close = blocking(AsyncWriteHandle.close)
    abandon = blocking(AsyncWriteHandle.abandon)

    def append(self, payload: Buffer, timeout_s: float | None = None) -> EntryId:
        """Append one entry; return its id once it is durable.

        Raises:
            TimeoutError: the entry was not durable within ``timeout_s``; the outcome is unknown.
            Others: as the async one.
        """
        return run(self._original.append(payload), timeout_s)

    def append_many(self, payloads: Sequence[Buffer], timeout_s: float | None = None) -> range:
        """Append a run; return its ids once all are durable. Raises: as the async one, and TimeoutError."""
        return run(self._original.append_many(payloads), timeout_s)

    def force(self, timeout_s: float | None = None) -> EntryId:
        """Make everything durable, on every bookie, that was acknowledged so far; return the last add confirmed.

        Raises: as the async one, and TimeoutError.
        """
        return run(self._original.force(), timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        run(self._original.__aexit__(kind, error, trace))


class AdvancedHandle(WriteHandle):
    """The only writer of a ledger whose ids its caller chooses, for threads.

    See :class:`bookkeeper.client.write.advanced_handle.AdvancedHandle`; append() and its sisters are refused here, too.
    """

    _original: AsyncAdvancedHandle

    lowest_missing = SharedAttribute[EntryId]()

    append_at_nowait = submitting(AsyncAdvancedHandle.append_at)

    def append_at(self, entry_id: int, payload: Buffer, timeout_s: float | None = None) -> EntryId:
        """Append as entry ``entry_id``; return the id once the entry and all lower ones are durable.

        A thread that appends above a gap waits until another thread fills it. With append_at_nowait() one thread can do
        both.

        Raises:
            TimeoutError: the entry was not durable within ``timeout_s``; the outcome is unknown.
            Others: as the async one.
        """
        return run(self._original.append_at(entry_id, payload), timeout_s)


class ReadHandle(BlockingCloser[AsyncReadHandle]):
    """A ledger opened for reading, for threads. See :class:`bookkeeper.client.read.read_handle.ReadHandle`."""

    id = SharedAttribute[LedgerId]()
    metadata = SharedAttribute[LedgerMetadata]()
    last_add_confirmed = SharedAttribute[EntryId]()
    length = SharedAttribute[int]()
    closed = SharedAttribute[bool]()
    known = SharedAttribute[KnownLedger]()

    read_entry = blocking(AsyncReadHandle.read_entry)
    read_unconfirmed = blocking(AsyncReadHandle.read_unconfirmed)
    read_batch = blocking(AsyncReadHandle.read_batch)
    wait_last_add_confirmed = blocking(AsyncReadHandle.wait_last_add_confirmed)
    read_last_add_confirmed_and_entry = blocking(AsyncReadHandle.read_last_add_confirmed_and_entry)
    read_last_add_confirmed = blocking(AsyncReadHandle.read_last_add_confirmed)
    close = blocking(AsyncReadHandle.close)

    def read(self, first: int, last: int) -> Iterator[LedgerEntry]:
        """Read the entries first..last (both inclusive) in order. Raises: as the async one."""
        return _iterate(lambda: self._original.read_batches(first, last))

    def tail(self, first: int = 0) -> Iterator[LedgerEntry]:
        """Read entries from ``first`` on, as they are confirmed. Ends when the ledger is closed and read to its end."""
        return _iterate(lambda: self._original.tail_batches(first))


class BookKeeper(BlockingCloser[AsyncBookKeeper]):
    """A client of one cluster, for threads. See :class:`bookkeeper.client.bookkeeper.BookKeeper`."""

    open_ledger = opening(AsyncBookKeeper.open_ledger, ReadHandle)
    open_known = opening(AsyncBookKeeper.open_known, ReadHandle)
    known_cluster = blocking(AsyncBookKeeper.known_cluster)
    delete_ledger = blocking(AsyncBookKeeper.delete_ledger)
    recover_ledger = blocking(AsyncBookKeeper.recover_ledger)
    require_key = blocking(AsyncBookKeeper.require_key)
    metadata = blocking(AsyncBookKeeper.metadata)
    exists = blocking(AsyncBookKeeper.exists)
    close = blocking(AsyncBookKeeper.close)

    @classmethod
    def connect(
        cls,
        uri: str,
        *,
        config: ClientConfig | None = None,
        seams: Seams | None = None,
        known: KnownCluster | None = None,
    ) -> BookKeeper:
        """Connect to the cluster at a metadata URI. Close it, or use it in a ``with``. Raises: as the async one."""

        async def connect() -> AsyncBookKeeper:
            return await AsyncBookKeeper.connect(uri, config=config, seams=seams, known=known)

        return cls(run(connect()))

    def learn(self, known: KnownCluster) -> None:
        """Take newer addresses of bookies."""

        async def learn() -> None:
            self._original.learn(known)

        run(learn())

    @property
    def client(self) -> AsyncBookKeeper:
        """The client underneath; its methods run on the background loop only."""
        return self._original

    def run(self, work: Callable[[AsyncBookKeeper], Coroutine[Any, Any, T]], timeout_s: float | None = None) -> T:
        """Run an operation that only the async client has, for instance ``bk.run(lambda bk: drain(bk, ["b1"]))``.

        Raises: what ``work`` raises; TimeoutError: it took longer than ``timeout_s`` and was cancelled.
        """

        async def call_on_loop() -> T:
            return await work(self._original)

        return run(call_on_loop(), timeout_s)

    @overload
    def create_ledger(self, *, advanced: Literal[False] = False, **options: Unpack[LedgerOptions]) -> WriteHandle: ...

    @overload
    def create_ledger(self, *, advanced: Literal[True], **options: Unpack[LedgerOptions]) -> AdvancedHandle: ...

    @takes_ledger_options
    def create_ledger(self, *, advanced: bool = False, **options: Unpack[LedgerOptions]) -> WriteHandle:
        """Create a ledger and return its writer: an AdvancedHandle with ``advanced``. Raises: as the async one."""

        async def create() -> WriteHandle:
            if advanced:
                return AdvancedHandle(await self._original.create_ledger(advanced=True, **options))
            return WriteHandle(await self._original.create_ledger(**options))

        return run(create())

    def list_ledgers(self) -> list[LedgerId]:
        """Return the ids of all ledgers, ascending."""

        async def collect() -> list[LedgerId]:
            return [ledger_id async for ledger_id in self._original.list_ledgers()]

        return run(collect())


class Operator(Blocking[AsyncOperator]):
    """The operations that operators need, for threads. See :class:`bookkeeper.client.operators.Operator`."""

    def __init__(self, client: BookKeeper) -> None:
        super().__init__(AsyncOperator(client.client))
        self._client = client

    @property
    def client(self) -> BookKeeper:
        """The client that this operator uses."""
        return self._client

    writable_bookies = blocking(AsyncOperator.writable_bookies)
    read_only_bookies = blocking(AsyncOperator.read_only_bookies)
    all_bookies = blocking(AsyncOperator.all_bookies)
    bookie_info = blocking(AsyncOperator.bookie_info)
    entries_on = blocking(AsyncOperator.entries_on)
    copy_on = blocking(AsyncOperator.copy_on)
    metadata = blocking(AsyncOperator.metadata)
    open_ledger = opening(AsyncOperator.open_ledger, ReadHandle)
    recover_ledger = blocking(AsyncOperator.recover_ledger)
    deleted_ledgers = iterating(AsyncOperator.deleted_ledgers)
    undelete_ledger = blocking(AsyncOperator.undelete_ledger)
    ledgers_on = iterating(AsyncOperator.ledgers_on)
    all_metadata = iterating(AsyncOperator.all_metadata)
