"""A ledger that this client writes, as applications hold it.

There is no task, lock, clock reading or log line per entry. The appends of one turn of the loop become one run of the
machine (or several, RUN_BYTES each). One encoding serves all bookies, replies come back as runs, and futures are
resolved in entry order from one place. :mod:`bookkeeper.ledger.write` decides what follows from a run, and
:mod:`bookkeeper.client.write.writer_shell` performs it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self

from bookkeeper.client.ledger_view import LedgerView
from bookkeeper.client.loop_affinity import require_loop
from bookkeeper.client.services import ClientServices
from bookkeeper.client.write.append_futures import AppendFutures, copy_error
from bookkeeper.client.write.writer_shell import WriterShell
from bookkeeper.encryption import EntrySealer
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
from bookkeeper.ledger.write import RUN_BYTES, RUN_ENTRIES, LoneAppends, cut_runs
from bookkeeper.seams import Buffer

_log = logging.getLogger(__name__)


class _WaitingAppend(NamedTuple):
    """An append that waits for room; without payloads a caller who waits for nothing else."""

    payloads: Sequence[bytes]
    future: asyncio.Future[Any]
    single: bool


class WriteHandle:
    """The only writer of a ledger that :meth:`BookKeeper.create_ledger` made.

    It belongs to the loop that made it: from another one, or in a forked process, every method raises
    IllegalOperationError. ``async with`` waits for pending appends, then closes the ledger; with ``deferred_sync`` it
    forces them in between.
    """

    def __init__(
        self,
        services: ClientServices,
        record: LedgerView,
        digest: DigestScheme,
        on_closed: Callable[[WriteHandle], None] = lambda handle: None,
        *,
        sealer: EntrySealer | None = None,
        deferred_sync: bool = False,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._id = record.ledger_id
        self._what = f"the writer of ledger {self._id}"
        self._entry_size_max = services.config.entry_size_max
        self._append_futures = AppendFutures()
        self._shell = WriterShell(
            services, record, digest, self._append_futures, sealer=sealer, deferred_sync=deferred_sync
        )
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
        """Whether new appends have to wait, because enough is pending or others wait already."""
        self._abandoned: BookKeeperError | None = None
        self._shell.open_channels()

    def __repr__(self) -> str:
        return f"<WriteHandle of ledger {self._id}: {self._writer!r}>"

    # -- state --------------------------------------------------------------------------------------------

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
        """The highest id such that it and all lower ids are confirmed; -1 at first.

        With ``deferred_sync`` only force() moves it.
        """
        return self._writer.progress.last_add_confirmed

    @property
    def length(self) -> int:
        """Payload bytes confirmed so far, as they are stored: of an encrypted ledger those of sealed entries."""
        return self._writer.confirmed_length

    @property
    def pending_bytes(self) -> int:
        """Payload bytes appended and not yet confirmed."""
        return self._writer.progress.pending_bytes + self._queued_bytes

    @property
    def closed(self) -> bool:
        """True once nothing can be appended any more, whatever the reason."""
        return self._error() is not None

    @property
    def failed_bookies(self) -> tuple[str, ...]:
        """The members of the ensemble to which nothing is sent now: they failed, and no stand-in was found yet."""
        return self._writer.failed_bookies

    # -- appending ----------------------------------------------------------------------------------------

    async def append(self, payload: Buffer) -> EntryId:
        """Append one entry; return its id once it is durable on the ack quorum.

        With ``deferred_sync`` the entry is **written there, not yet durable**. force() makes it durable; until then
        machines that lose power may lose it.

        Waits while ``pending_bytes_max`` is reached. Cancelling the caller does not withdraw the entry.

        Raises:
            LedgerFencedError: another client recovers this ledger. The outcome is unknown.
            AddTimeoutError: no ack quorum confirmed it within ``add_timeout_ms``, which ends the handle. The cause is
                the last failure. The outcome is unknown.
            LedgerClosedError: the ledger was closed, by this handle or by a recovery.
            NoSuchLedgerError: the ledger was deleted.
            UnauthorizedError: a bookie holds another password for this ledger.
            EntryTooLargeError: the payload exceeds ``entry_size_max``; nothing was sent.
        """
        self._require_loop()
        if self._full:
            entry: EntryId = await self._hold([self._checked(payload)], single=True)
            return entry
        return await self._submit(payload)

    def append_nowait(self, payload: Buffer) -> asyncio.Future[EntryId]:
        """Append without waiting: the future resolves like append(). Futures resolve in id order.

        Raises:
            TooManyRequestsError: ``pending_bytes_max`` is reached; nothing was sent. Await room() first.
            EntryTooLargeError: the payload exceeds ``entry_size_max``; nothing was sent.
            LedgerClosedError, LedgerFencedError, ...: the error that ended this handle; nothing was sent.
        """
        if not self._queue:  # the first of a turn speaks for all of it
            self._require_loop()
        if self._full:
            raise TooManyRequestsError(
                f"ledger {self._id} has {self.pending_bytes} bytes of appends pending, which is all that "
                "pending_bytes_max or pending_entries_max allow; await room() before the next append_nowait"
            )
        return self._submit(payload)

    async def append_many(self, payloads: Sequence[Buffer]) -> range:
        """Append a run; return its ids, which are consecutive, once all of it is durable.

        Waits for room like append(). The whole run counts as one append, so that it alone may exceed the bound.

        Raises:
            PartialAppendError: a part is confirmed, and the outcome of the rest is unknown: see its ``confirmed`` and
                ``first_unknown``.
            LedgerFencedError, ...: as append, if no entry of the run is confirmed.
        """
        self._require_loop()
        checked = [self._checked(payload) for payload in payloads]
        if not checked:
            self._raise_if_ended()
            return range(self._writer.progress.next_entry, self._writer.progress.next_entry)
        if self._full:
            ids: range = await self._hold(checked, single=False)
            return ids
        future: asyncio.Future[range] = self._loop.create_future()
        self._submit_many(checked, future)
        return await future

    async def room(self) -> None:
        """Wait until another append would not have to wait."""
        self._require_loop()
        while self._full:
            await self._hold((), single=True)

    async def flush(self) -> EntryId:
        """Wait until everything appended so far is acknowledged; return the last add confirmed.

        Everything is durable then. With ``deferred_sync`` it is only written, and force() makes it durable.

        Raises: as append, if one of the entries fails.
        """
        self._require_loop()
        if self._held:
            await self._hold((), single=True)
        self._flush_queue()
        last = self._writer.progress.next_entry - 1
        if last > self._writer.progress.last_acknowledged:
            self._raise_if_ended()  # then nobody will ever confirm or fail them
            future: asyncio.Future[int] = self._loop.create_future()
            self._append_futures.expect_all(last, future)
            await future
        return self._writer.progress.last_add_confirmed

    async def force(self) -> EntryId:
        """Make durable what was acknowledged so far; return the last add confirmed, which then covers all of it.

        With ``deferred_sync`` only this moves the last add confirmed. It completes when *every* bookie of the ensemble
        has synced everything up to the highest id that was acknowledged when this was called. On other ledgers
        everything acknowledged is durable on an ack quorum already; there this waits for all bookies of the ensemble.

        Raises:
            BookieError: a bookie could not sync, or did not within ``force_timeout_ms``. The last add confirmed does
                not move; what was acknowledged is written, but may not be durable. force() may be called again.
            BookieFailedError, LedgerFencedError, LedgerClosedError, ...: the error that ended this handle.
            IllegalOperationError: the client speaks ``protocol="v2"``, which has no such request.
        """
        self._require_loop()
        if self._shell.services.config.protocol == "v2":
            raise IllegalOperationError(
                f"ledger {self._id} cannot be forced: protocol v2 has no force; connect with protocol v3"
            )
        self._raise_if_ended()
        await self._shell.force()
        return self._writer.progress.last_add_confirmed

    # -- the end ------------------------------------------------------------------------------------------

    async def close(self, *, force: bool = True) -> None:
        """Close the ledger at the last add confirmed. Pending appends fail: call flush() before.

        Calls at the same time share one close: each waits for it, and none succeeds before it.

        Args:
            force: with ``deferred_sync``: force what was acknowledged first, so that it is part of the closed ledger.
                If that fails the ledger is not closed; a recovery will keep what the bookies have. With False, as with
                Apache's client, the ledger ends at the last add confirmed, and what was acknowledged above it is **not
                in it**.

        Raises:
            BookieError: with ``force``: a bookie did not make the entries durable.
            LedgerFencedError, LedgerClosedError: a recovery has decided or will decide where the ledger ends.
            MetadataUnavailableError: the store does not answer. Call close() again, or let a recovery close the ledger.
        """
        self._require_loop()
        self._flush_queue()
        self._refuse_held(LedgerClosedError(f"ledger {self._id} was closed by its writer"))
        if self._abandoned is not None:
            raise copy_error(self._abandoned)
        try:
            await self._shell.close(force=force)
        except BookKeeperError:
            if self._shell.closing is None:  # what ended the writer forbids it
                await self._shell.end(self._error() or LedgerClosedError(f"ledger {self._id} is closed"))
                self._on_closed(self)
            raise
        self._on_closed(self)

    async def abandon(self) -> None:
        """End this handle without closing the ledger; a recovery will close it. The outcome of pending appends is
        unknown."""
        self._require_loop()
        if self._abandoned is None and self._writer.error is None:
            self._abandoned = ClientClosedError(
                f"the writer of ledger {self._id} abandoned it; a recovery will decide where it ends"
            )
            self._flush_queue()
            self._refuse_held(self._abandoned)
            self._shell.stop(self._abandoned)
            self._writer.on_fenced(self._loop.time())  # nobody is left to hear what follows; it takes no more adds
        await self._shell.end(self._error() or ClientClosedError(f"the writer of ledger {self._id} abandoned it"))
        self._on_closed(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._abandoned is not None:
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

    def fail(self, error: BookKeeperError) -> None:
        """For the client, when it no longer trusts its metadata: acknowledge nothing from now on, and leave the ledger
        as it is."""
        self._flush_queue()
        self._refuse_held(error)
        self._shell.fail(error)

    def refresh_metadata(self) -> None:
        """For the client, when its session with the metadata store was in doubt: check whether the ledger is still
        this writer's."""
        self._shell.refresh_metadata()

    # -- inside -------------------------------------------------------------------------------------------

    def _checked(self, payload: Buffer) -> bytes:
        """The payload as bytes that nobody can change any more."""
        if type(payload) is not bytes:
            if not isinstance(payload, bytes | bytearray | memoryview):
                raise TypeError(f"a payload must be bytes, not {type(payload).__name__}")
            payload = bytes(payload)
        if len(payload) > self._entry_size_max:
            raise EntryTooLargeError(
                f"an entry has {len(payload)} bytes, but entry_size_max allows {self._entry_size_max}: cut it into "
                "several entries"
            )
        return payload

    def _require_loop(self) -> None:
        require_loop(self._loop, self._what, "append where it was made")

    def _error(self) -> BookKeeperError | None:
        return self._abandoned or self._writer.error

    def _raise_if_ended(self) -> None:
        if (error := self._error()) is not None:
            raise copy_error(error)

    def _submit(self, payload: Buffer) -> asyncio.Future[EntryId]:
        """Check one entry, queue it and make its future. Everything else is done once per run."""
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
            if self._lone.at_once and not self._writer.progress.pending_entries:
                self._flush_queue()
            else:
                self._scheduled = True
                self._loop.call_soon(self._on_turn)
        return future

    def _enqueue(self, payload: bytes, future: asyncio.Future[EntryId]) -> None:
        """Queue an entry that was checked and has its future."""
        self._queue.append(payload)
        self._futures.append(future)
        self._queued_bytes += len(payload)
        if self._queued_bytes >= RUN_BYTES or len(self._queue) >= RUN_ENTRIES:
            self._flush_queue()
        elif not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._on_turn)

    def _submit_many(self, payloads: Sequence[bytes], future: asyncio.Future[Any]) -> None:
        """Append a run that has one future. The run is cut for the codec; no other append comes in between."""
        self._flush_queue()
        self._raise_if_ended()
        first = self._writer.progress.next_entry
        self._append_futures.expect_run(first, len(payloads), future)
        for start, end in cut_runs(map(len, payloads)):
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
        self._lone.on_run(len(queue), self._writer.progress.pending_entries)
        if (error := self._error()) is not None:
            for future in futures:
                if not future.done():
                    future.set_exception(copy_error(error))
            return
        self._shell.add(queue, futures)
        self._full = self._full or self._writer.must_wait

    async def _hold(self, payloads: Sequence[bytes], *, single: bool) -> Any:
        """Wait for room, behind the callers who wait already."""
        self._raise_if_ended()
        future: asyncio.Future[Any] = self._loop.create_future()
        self._held.append(_WaitingAppend(payloads, future, single))
        return await future

    def _on_progress(self) -> None:
        """Admit waiting appends after entries were confirmed or failed; those that waited longest come first."""
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
                each.future.set_exception(copy_error(error))
