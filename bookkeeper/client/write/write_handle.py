"""A ledger that this client writes, as applications hold it.

No task, lock, clock reading or log line per entry: appends of one turn of the loop become one run of the machine
(or several, RUN_BYTES each), one encoding serves all bookies, replies come back as runs, and futures are resolved in
entry order from one place. What a run leads to is performed by :mod:`bookkeeper.client.write.writer_shell` and
decided by :mod:`bookkeeper.ledger.writer`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self

from bookkeeper.client.ledger_record import LedgerRecord
from bookkeeper.client.loop_affinity import require_loop
from bookkeeper.client.services import ClientServices
from bookkeeper.client.write.append_futures import AppendFutures, fresh
from bookkeeper.client.write.writer_shell import WriterShell
from bookkeeper.errors import (
    BookKeeperError,
    ClientClosedError,
    EntryTooLargeError,
    IllegalOperationError,
    LedgerClosedError,
    LedgerFencedError,
    TooManyRequestsError,
)
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.ledger import DigestScheme, LedgerMetadata
from bookkeeper.ledger.append_runs import RUN_BYTES, RUN_ENTRIES, LoneAppends, cut
from bookkeeper.seams import Buffer

_log = logging.getLogger(__name__)


class _WaitingAppend(NamedTuple):
    """An append that waits for room; without payloads: someone who only waits for room."""

    payloads: Sequence[bytes]
    future: asyncio.Future[Any]
    single: bool


class WriteHandle:
    """The only writer of a ledger that :meth:`BookKeeper.create_ledger` made.

    Belongs to the loop that made it: from another one, or in a forked process, every method raises
    IllegalOperationError. ``async with`` waits for pending appends, then closes the ledger; with
    ``deferred_sync`` it forces them in between.
    """

    def __init__(
        self,
        services: ClientServices,
        record: LedgerRecord,
        digest: DigestScheme,
        on_closed: Callable[[WriteHandle], None] = lambda handle: None,
        *,
        deferred_sync: bool = False,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._id = record.ledger_id
        self._entry_size_max = services.config.entry_size_max
        self._append_futures = AppendFutures()
        self._shell = WriterShell(services, record, digest, self._append_futures, deferred_sync=deferred_sync)
        self._shell.is_idle = lambda: not self._queue and not self._held
        self._shell.on_progress = self._on_progress
        self._shell.on_close_ended = lambda: self._on_closed(self)
        self._writer = self._shell.writer
        self._on_closed = on_closed
        self._queue: list[bytes] = []
        self._futures: list[asyncio.Future[Any]] = []
        self._queued_bytes = 0
        self._scheduled = False
        self._lone = LoneAppends()
        self._held: deque[_WaitingAppend] = deque()
        self._full = False
        """New appends have to wait: enough is pending, or others wait already."""
        self._let_go: BookKeeperError | None = None
        self._shell.open_channels()

    def __repr__(self) -> str:
        return f"<WriteHandle of ledger {self._id}: {self._writer!r}>"

    # -- what it says -------------------------------------------------------------------------------------

    @property
    def id(self) -> LedgerId:
        """The ledger's id."""
        return self._id

    @property
    def metadata(self) -> LedgerMetadata:
        """The ledger's metadata as last seen or written by this handle."""
        return self._writer.metadata

    @property
    def last_add_confirmed(self) -> EntryId:
        """Highest id that is confirmed, and with it all below; -1 at first.

        With ``deferred_sync`` it moves with force() only.
        """
        return self._writer.last_add_confirmed

    @property
    def length(self) -> int:
        """Payload bytes confirmed so far."""
        return self._writer.confirmed_length

    @property
    def pending_bytes(self) -> int:
        """Payload bytes appended and not yet confirmed."""
        return self._writer.pending_bytes + self._queued_bytes

    @property
    def closed(self) -> bool:
        """True once nothing can be appended any more, whatever the reason."""
        return self._error() is not None

    @property
    def failed_bookies(self) -> tuple[str, ...]:
        """Members of the ensemble that are sent nothing now: they failed, and no stand-in was found yet."""
        return self._writer.failed_bookies

    # -- appending ----------------------------------------------------------------------------------------

    async def append(self, payload: Buffer) -> EntryId:
        """Append one entry; return its id once it is durable on the ack quorum.

        With ``deferred_sync`` the id says that the entry is **written there, not yet durable**: force() makes it so,
        and until then machines that lose power may lose it.

        Waits while ``pending_bytes_max`` is reached. Cancelling the caller does not take the entry back.

        Raises:
            LedgerFencedError: another client recovers this ledger. Outcome unknown, and so with the next ones.
            AddTimeoutError: no ack quorum within ``add_timeout_ms``; the cause tells the last failure. Ends the handle.
            LedgerClosedError: the ledger was closed, here or by a recovery.
            NoSuchLedgerError: it was deleted.
            UnauthorizedError: a bookie holds another password for this ledger.
            EntryTooLargeError: above ``entry_size_max``; nothing was sent.
        """
        self._require_here()
        if self._full:
            entry: EntryId = await self._hold([self._checked(payload)], single=True)
            return entry
        return await self._submit(payload)

    def append_nowait(self, payload: Buffer) -> asyncio.Future[EntryId]:
        """Append without waiting: the future resolves like append(). Futures resolve in id order.

        Raises:
            TooManyRequestsError: ``pending_bytes_max`` is reached; nothing was sent. Await room() first.
            EntryTooLargeError: above ``entry_size_max``; nothing was sent.
            LedgerClosedError, LedgerFencedError, ...: what ended this handle; nothing was sent.
        """
        if not self._queue:  # the first of a turn speaks for all of it
            self._require_here()
        if self._full:
            raise TooManyRequestsError(
                f"ledger {self._id} has {self.pending_bytes} bytes of appends pending, which is all that "
                "pending_bytes_max or pending_entries_max allow; await room() before the next append_nowait"
            )
        return self._submit(payload)

    async def append_many(self, payloads: Sequence[Buffer]) -> range:
        """Append a run; return its ids, which are consecutive, once all are durable. One awaitable for all of them.

        Waits for room like append(); the whole run counts as one append, so it may exceed the bound by itself.

        Raises:
            PartialAppendError: a part is confirmed, the rest unknown: see its ``confirmed``, ``first_unknown``.
            LedgerFencedError, ...: as append, when none of them is confirmed.
        """
        self._require_here()
        checked = [self._checked(payload) for payload in payloads]
        if not checked:
            self._raise_if_ended()
            return range(self._writer.next_entry, self._writer.next_entry)
        if self._full:
            ids: range = await self._hold(checked, single=False)
            return ids
        future: asyncio.Future[range] = self._loop.create_future()
        self._submit_many(checked, future)
        return await future

    async def room(self) -> None:
        """Wait until another append would not have to wait."""
        self._require_here()
        while self._full:
            await self._hold((), single=True)

    async def flush(self) -> EntryId:
        """Wait until everything appended so far is acknowledged; return the last add confirmed.

        That is durable then; with ``deferred_sync`` it is written only, and force() makes it durable.

        Raises: as append, if something of it fails.
        """
        self._require_here()
        if self._held:
            await self._hold((), single=True)
        self._flush_queue()
        last = self._writer.next_entry - 1
        if last > self._writer.last_acknowledged:
            self._raise_if_ended()  # then nobody will ever confirm or fail them
            future: asyncio.Future[int] = self._loop.create_future()
            self._append_futures.expect_all(last, future)
            await future
        return self._writer.last_add_confirmed

    async def force(self) -> EntryId:
        """Make durable what was acknowledged so far; return the last add confirmed, which then covers all of that.

        With ``deferred_sync`` this is what moves the last add confirmed: it completes when *every* bookie of the
        ensemble has synced everything up to the highest id that was acknowledged when this was called. On
        other ledgers everything acknowledged is durable on an ack quorum already; this waits for all its bookies.

        Raises:
            BookieError: one bookie could not, or did not within ``force_timeout_ms``. The last add confirmed stays;
                what was acknowledged stays written and not known to be durable. May be called again.
            BookieFailedError, LedgerFencedError, LedgerClosedError, ...: what ended this handle.
            IllegalOperationError: with ``protocol="v2"``, which has no such request.
        """
        self._require_here()
        if self._shell.services.config.protocol == "v2":
            raise IllegalOperationError(f"ledger {self._id}: protocol v2 has no force(); connect with protocol v3")
        self._raise_if_ended()
        await self._shell.force()
        return self._writer.last_add_confirmed

    # -- the end ------------------------------------------------------------------------------------------

    async def close(self, *, force: bool = True) -> None:
        """Close the ledger at the last add confirmed. Appends that are pending fail first: flush() before.

        One shared future: every call waits for the same close, and none succeeds before it.

        Args:
            force: with ``deferred_sync``: force what was acknowledged, so that it is part of the closed ledger; if
                that fails the ledger is not closed, and a recovery will keep of it what the bookies have. False, and
                what Apache's client does: the ledger ends at the last add confirmed, and what was acknowledged above
                it is **not in it**.

        Raises:
            BookieError: with ``force``: some bookie did not make the entries durable.
            LedgerFencedError, LedgerClosedError: a recovery decided, or will decide, the end.
            MetadataUnavailableError: the store is away; the ledger stays for a recovery to close. May be tried again.
        """
        self._require_here()
        self._flush_queue()
        self._refuse_held(LedgerClosedError(f"ledger {self._id} was closed by its writer"))
        if self._let_go is not None:
            raise fresh(self._let_go)
        try:
            await self._shell.close(force=force)
        except BookKeeperError:
            if self._shell.closing is None:  # what ended the writer forbids it
                await self._shell.end(self._error() or LedgerClosedError(f"ledger {self._id} is closed"))
                self._on_closed(self)
            raise
        self._on_closed(self)

    async def abandon(self) -> None:
        """Let go without closing: the ledger stays open for a recovery to close. Pending appends end as unknown."""
        self._require_here()
        if self._let_go is None and self._writer.error is None:
            self._let_go = ClientClosedError(
                f"the writer of ledger {self._id} let go of it; a recovery decides its end"
            )
            self._flush_queue()
            self._refuse_held(self._let_go)
            self._shell.stop(self._let_go)
            self._writer.on_fenced(self._loop.time())  # nobody is left to hear what follows; it takes no more adds
        await self._shell.end(self._error() or ClientClosedError(f"ledger {self._id} was let go of"))
        self._on_closed(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._let_go is not None:
            return
        pending: BookKeeperError | None = None
        if error is None:
            try:
                await self.flush()
            except BookKeeperError as failure:
                pending = failure
        try:
            await self.close()
        except BookKeeperError as failure:
            if error is None and pending is None:
                raise
            fenced = isinstance(failure, LedgerFencedError)  # a recovery closes it
            _log.log(logging.INFO if fenced else logging.WARNING, "ledger %d was not closed: %s", self._id, failure)
        if pending is not None:
            raise pending

    def give_up(self, error: BookKeeperError) -> None:
        """The client does not trust its metadata any more: nothing is acknowledged from now on, and the ledger is
        left as it is. For the client."""
        self._flush_queue()
        self._refuse_held(error)
        self._shell.give_up(error)

    def look_again(self) -> None:
        """The session with the metadata store was in doubt: is the ledger still this writer's? For the client."""
        self._shell.look_again()

    # -- inside -------------------------------------------------------------------------------------------

    def _checked(self, payload: Buffer) -> bytes:
        """The payload as bytes that nobody can change any more."""
        if type(payload) is not bytes:
            if not isinstance(payload, bytes | bytearray | memoryview):
                raise TypeError(f"a payload is bytes, not {type(payload).__name__}")
            payload = bytes(payload)
        if len(payload) > self._entry_size_max:
            raise EntryTooLargeError(
                f"an entry of {len(payload)} bytes; entry_size_max is {self._entry_size_max}: cut it into several"
            )
        return payload

    def _require_here(self) -> None:
        require_loop(self._loop, f"the writer of ledger {self._id}", "append where it was made")

    def _error(self) -> BookKeeperError | None:
        return self._let_go or self._writer.error

    def _raise_if_ended(self) -> None:
        if (error := self._error()) is not None:
            raise fresh(error)

    def _submit(self, payload: Buffer) -> asyncio.Future[EntryId]:
        """Per entry: check, queue, and a future. The rest is done per run."""
        if type(payload) is not bytes or len(payload) > self._entry_size_max:
            payload = self._checked(payload)
        if self._writer.error is not None:
            self._raise_if_ended()
        future: asyncio.Future[EntryId] = self._loop.create_future()
        self._queue.append(payload)
        self._futures.append(future)
        self._queued_bytes += len(payload)
        if self._queued_bytes >= RUN_BYTES or len(self._queue) >= RUN_ENTRIES:
            self._flush_queue()
        elif not self._scheduled:
            if self._lone.at_once and not self._writer.pending_entries:
                self._flush_queue()
            else:
                self._scheduled = True
                self._loop.call_soon(self._on_turn)
        return future

    def _enqueue(self, payload: bytes, future: asyncio.Future[EntryId]) -> None:
        """The same for an entry that was checked and has its future."""
        self._queue.append(payload)
        self._futures.append(future)
        self._queued_bytes += len(payload)
        if self._queued_bytes >= RUN_BYTES or len(self._queue) >= RUN_ENTRIES:
            self._flush_queue()
        elif not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._on_turn)

    def _submit_many(self, payloads: Sequence[bytes], future: asyncio.Future[Any]) -> None:
        """One future for a run. It is cut for the codec, and nothing comes in between."""
        self._flush_queue()
        self._raise_if_ended()
        first = self._writer.next_entry
        self._append_futures.expect_run(first, len(payloads), future)
        for start, end in cut(map(len, payloads)):
            self._shell.add(payloads[start:end])
        self._full = self._full or self._writer.must_wait

    def _on_turn(self) -> None:
        self._scheduled = False
        self._flush_queue()

    def _flush_queue(self) -> None:
        """Give what this turn collected to the machine, as one run."""
        if not self._queue:
            return
        queue, self._queue = self._queue, []
        futures, self._futures = self._futures, []
        self._queued_bytes = 0
        self._lone.on_run(len(queue), self._writer.pending_entries)
        if (error := self._error()) is not None:
            for future in futures:
                if not future.done():
                    future.set_exception(fresh(error))
            return
        self._shell.add(queue, futures)
        self._full = self._full or self._writer.must_wait

    async def _hold(self, payloads: Sequence[bytes], *, single: bool) -> Any:
        """Queue up behind the others who wait for room."""
        self._raise_if_ended()
        future: asyncio.Future[Any] = self._loop.create_future()
        self._held.append(_WaitingAppend(payloads, future, single))
        return await future

    def _on_progress(self) -> None:
        """Entries were confirmed or failed: those who waited longest go first."""
        if not self._full:
            return
        if not self._held:
            self._full = self._writer.must_wait
        elif (error := self._error()) is not None:
            self._refuse_held(error)
        elif not self._writer.must_wait:
            self._loop.call_soon(self._admit)  # not now: the machine's effects are being performed

    def _admit(self) -> None:
        while self._held and not self._writer.must_wait and self._writer.error is None:
            held = self._held.popleft()
            if held.future.done():
                continue  # cancelled before anything was sent
            if not held.payloads:
                held.future.set_result(None)
            elif held.single:
                self._enqueue(held.payloads[0], held.future)
            else:
                self._submit_many(held.payloads, held.future)
        self._flush_queue()
        if self._held and (error := self._error()) is not None:
            self._refuse_held(error)
        self._full = bool(self._held) or self._writer.must_wait

    def _refuse_held(self, error: BookKeeperError) -> None:
        held, self._held = self._held, deque()
        self._full = False
        for each in held:
            if not each.future.done():
                each.future.set_exception(fresh(error))
