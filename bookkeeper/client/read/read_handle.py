"""A ledger that this client reads, as applications hold it.

:mod:`bookkeeper.client.read.entry_source` reads one run of entries; :mod:`bookkeeper.client.read.lac_follower` knows
how far the ledger may be read. This module keeps several runs in flight and hands them out in order.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, suppress
from types import TracebackType

from bookkeeper.client.arguments import require_whole
from bookkeeper.client.entry import LedgerEntry
from bookkeeper.client.known import KnownLedger
from bookkeeper.client.ledger_view import LedgerView
from bookkeeper.client.loop_affinity import require_loop
from bookkeeper.client.read.entry_source import EntrySource
from bookkeeper.client.read.lac_follower import LacFollower, UnfoundedLacError, has_passed
from bookkeeper.client.read.opened_entries import OpenedEntries
from bookkeeper.client.read.single_reads import SingleReads
from bookkeeper.client.services import ClientServices
from bookkeeper.client.tasks import Tasks
from bookkeeper.client.write.append_futures import copy_error
from bookkeeper.encryption import EntryOpener
from bookkeeper.errors import BookKeeperError, ClientClosedError, IllegalOperationError
from bookkeeper.ids import NO_ENTRY, EntryId, LedgerId
from bookkeeper.ledger import DigestScheme, Entry, LedgerMetadata


class ReadHandle:
    """A ledger opened for reading. ``async with`` closes the handle. It belongs to the loop that made it: from another
    one, or in a forked process, every method raises IllegalOperationError."""

    def __init__(
        self,
        services: ClientServices,
        record: LedgerView,
        digest: DigestScheme,
        on_closed: Callable[[ReadHandle], None] = lambda handle: None,
        *,
        opener: EntryOpener | None = None,
        last: EntryId = NO_ENTRY,
    ) -> None:
        self._services = services
        self._record = record
        self._on_closed = on_closed
        self._what = f"the reader of ledger {record.ledger_id}"
        self._tasks = Tasks(f"reader of ledger {record.ledger_id}")
        self._follower = LacFollower(services, record, digest, self._tasks)
        self._follower.known.on_hearsay(last)  # by whoever made this handle for us
        self._source = EntrySource(services, record, digest, self._tasks, self._follower)
        self._opened = OpenedEntries(self._source, opener)
        """Everything below this handle has entries as they are stored."""
        self._singles = SingleReads(self._source)
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self._ended: BookKeeperError | None = None

    async def start(self) -> None:
        """Ask how far the ledger may be read, and follow it if it is open. Raises: UnauthorizedError, BookieError."""
        self._follower.start()
        if not self.closed:
            await self._follower.query_bookies()

    # -- state --------------------------------------------------------------------------------------------

    @property
    def id(self) -> LedgerId:
        """The ledger's id."""
        return self._record.ledger_id

    @property
    def metadata(self) -> LedgerMetadata:
        """The ledger's metadata as last seen."""
        return self._record.metadata

    @property
    def last_add_confirmed(self) -> EntryId:
        """The last entry that may be read, as this handle knows without asking. It falls only if one bookie's word for
        it proves wrong: then a read has failed with BookieFailedError, or ``tail`` goes on without that word."""
        return self._follower.known.value

    @property
    def known(self) -> KnownLedger:
        """What a reader elsewhere must know to read what this handle may read now. It can be pickled."""
        return KnownLedger.of(self.id, self._record.versioned, self.last_add_confirmed)

    @property
    def length(self) -> int:
        """The payload bytes, as stored, of a closed ledger by its metadata; 0 while it is open, when only its writer
        knows them.

        A recovery by Apache's client may have stored another entry's length. A warning says so, once, when the last
        entry is read.
        """
        return self._record.metadata.length

    @property
    def closed(self) -> bool:
        """True when the *ledger* is closed: ``last_add_confirmed`` is its end."""
        return self._follower.known.closed_at is not None

    # -- reading ------------------------------------------------------------------------------------------

    async def read(self, first: int, last: int) -> AsyncIterator[LedgerEntry]:
        """Entries first..last (both inclusive) in order. ``read(0, -1)`` is empty.

        Raises:
            IllegalOperationError: ``last`` is past ``last_add_confirmed``.
            DataMissingError: a confirmed entry is on none of its bookies.
            BookieError, DigestMismatchError: no good copy could be read now.
            DecryptionError: the ledger is encrypted, and no copy of an entry is what its writer has sealed.
        """
        async for start, payloads in self.read_batches(first, last):
            for entry in map(LedgerEntry, range(start, start + len(payloads)), payloads):  # type: ignore[arg-type]
                yield entry

    async def read_entry(self, entry_id: int) -> bytes:
        """The payload of one entry. Consecutive entries that are asked for in one turn are read together.

        Raises: as read.
        """
        singles = self._singles
        if singles.is_first:  # it speaks for all of its turn
            self._require_loop()
        if (
            self._closed
            or self._ended is not None
            or type(entry_id) is not int
            or not 0 <= entry_id <= self._follower.known.value
        ):
            self._require_confirmed(entry_id, entry_id)
        payload = await singles.read(entry_id)
        return payload if self._opened.as_stored else (await self._opened.open(entry_id, [payload]))[0]

    async def read_batches(
        self, first: int, last: int, *, ahead_bytes: int | None = None
    ) -> AsyncGenerator[tuple[EntryId, Sequence[bytes]], None]:
        """The entries first..last as runs: (id of the first, payloads). This is the fastest way to read a ledger.

        ``ahead_bytes`` bounds what is asked for and not yet returned, by the size of the entries that came last; one
        run, or one entry if it is larger, is always asked for. None: as the client's configuration says.

        Raises: as read.
        """
        self._require_confirmed(first, last)
        config = self._services.config
        most = 2 * config.batch_read_bytes
        running: deque[tuple[int, int, asyncio.Future[list[bytes]]]] = deque()
        asked = 0  # entries of all that is running
        try:
            while running or first <= last:
                while first <= last:
                    count = self._source.run_length(first, last)
                    if len(running) >= (config.batch_reads_ahead if count > 1 else config.read_window):
                        break
                    if ahead_bytes is not None:
                        fit = self._source.lengths.fitting(ahead_bytes) - asked
                        if running and fit < count:
                            break
                        count = min(count, max(1, fit))
                    running.append((first, count, self._source.read(first, count, bytes_max=most)))
                    first += count
                    asked += count
                start, count, future = running.popleft()
                payloads = await future
                asked -= len(payloads)
                if (left := count - len(payloads)) > 0:  # entries are larger than was assumed: read the rest next
                    rest = start + len(payloads)
                    running.appendleft((rest, left, self._source.read(rest, left, bytes_max=most)))
                self._source.lengths.on_payloads(payloads)
                yield EntryId(start), await self._opened.open(start, payloads)
        finally:
            for *_, future in running:
                future.cancel()  # also one that has failed: asyncio then does not log that nobody asked for its error

    async def read_unconfirmed(self, entry_id: int) -> bytes:
        """One entry that may lie past the last add confirmed. It may not be part of the ledger in the end, or another
        entry may take its id.

        Raises:
            NoSuchEntryError: its bookies do not have it.
            BookieError: some of its bookies did not answer.
        """
        self._require_open()
        return (await self._opened.open(entry_id, await self._source.read(entry_id, unconfirmed=True)))[0]

    async def read_batch(self, first: int, *, count_max: int = 0, bytes_max: int = 0) -> list[LedgerEntry]:
        """Entries from ``first`` on: at least one, at most ``count_max``, with ``bytes_max`` payload bytes together.

        A limit of 0 means none; without ``bytes_max`` it is about ``batch_read_bytes``. The first entry comes whatever
        its size. Fewer entries than were asked for are normal: continue after the last one. This works on every ledger;
        where batch reads do not (E > Qw, old bookies), single reads are sent together.

        Raises: as read; IllegalOperationError also for negative limits.
        """
        if count_max < 0 or bytes_max < 0:
            raise IllegalOperationError(
                f"count_max and bytes_max must be 0 (no limit) or more, not {count_max} and {bytes_max}"
            )
        self._require_confirmed(first, first)
        limit = bytes_max or self._services.config.batch_read_bytes
        count = self._source.lengths.fitting(limit)
        last = min(self.last_add_confirmed, first + min(count, count_max or count) - 1)
        found: list[LedgerEntry] = []
        async with aclosing(self.read_batches(first, last)) as batches:
            async for start, payloads in batches:
                for entry_id, payload in enumerate(payloads, start):
                    limit -= len(payload)
                    if limit < 0 and found:
                        return found
                    found.append(LedgerEntry(EntryId(entry_id), payload))
        return found

    def _require_confirmed(self, first: int, last: int) -> None:
        self._require_open()
        require_whole("the first entry", first)
        require_whole("the last entry", last)
        if first > last + 1:
            raise IllegalOperationError(
                f"entries {first}..{last} of ledger {self.id} cannot be read: the range ends before it begins"
            )
        if first < 0 or last > self.last_add_confirmed:
            raise IllegalOperationError(
                f"entries {first}..{last} of ledger {self.id} cannot be read: entries from 0 to "
                f"{self.last_add_confirmed}, the last add confirmed, can; read_last_add_confirmed() asks for a newer "
                "one, and read_unconfirmed() reads past it"
            )

    def fail(self, error: BookKeeperError) -> None:
        """For the client, when it no longer trusts its metadata: read nothing more."""
        self._ended = error
        self._follower.fail(error)

    def _require_loop(self) -> None:
        require_loop(self._loop, self._what, "open the ledger again where it is read")

    def _require_open(self) -> None:
        self._require_loop()
        if self._ended is not None:
            raise copy_error(self._ended)
        if self._closed:
            raise ClientClosedError(f"this reader of ledger {self.id} is closed: open the ledger again")

    # -- following ----------------------------------------------------------------------------------------

    async def read_last_add_confirmed(self) -> EntryId:
        """Read whether the ledger is closed; if not, ask its bookies for the last add confirmed, and return that.

        Raises:
            NoSuchLedgerError: the ledger was deleted.
            MetadataUnavailableError: the metadata store does not answer.
            BookieError: too few bookies answer.
        """
        self._require_open()
        if not self.closed:
            await self._follower.refresh()
        if not self.closed:
            await self._follower.query_bookies()
        return self.last_add_confirmed

    async def wait_last_add_confirmed(self, past: int, *, timeout_ms: int) -> EntryId:
        """Wait until the last add confirmed exceeds ``past``, the ledger is closed, or the time is up; then return the
        last add confirmed.

        Raises: NoSuchLedgerError: the ledger was deleted. Bookies that do not answer cost time, and raise nothing.
        """
        await self._wait_past(past, timeout_ms)
        return self.last_add_confirmed

    async def read_last_add_confirmed_and_entry(
        self, entry_id: int, *, timeout_ms: int
    ) -> tuple[EntryId, LedgerEntry | None]:
        """Long poll: wait until ``entry_id`` is confirmed; return the last add confirmed and the entry.

        The entry is None if it was not confirmed in time, or if the ledger is closed and ends before it. Bookies that
        hold the entry send it with the news; otherwise this reads it in the ordinary way.

        Raises: as read, and as wait_last_add_confirmed.
        """
        if entry_id < 0:
            raise IllegalOperationError(f"ledger {self.id} has no entry {entry_id}: entries are numbered from 0")
        came = await self._wait_past(entry_id - 1, timeout_ms)
        if self.last_add_confirmed < entry_id:
            return self.last_add_confirmed, None
        if came is not None and came.entry_id == entry_id:
            at_hand = self._opened.open_if_valid(entry_id, [came.payload])
        else:
            at_hand = self.take_ready(entry_id, 1)
        payload = at_hand[0] if at_hand else await self.read_entry(entry_id)
        return self.last_add_confirmed, LedgerEntry(EntryId(entry_id), payload)

    def take_ready(self, first: int, count_max: int | None = None) -> Sequence[bytes]:
        """The payloads of confirmed entries from ``first`` on that are in memory already: because this client has just
        written them, or because they came with a long poll while others were handed out. The latter are given once.
        Empty: read it."""
        if first > self.last_add_confirmed:
            return ()
        return self._opened.open_if_valid(first, self._follower.take_ready(first, count_max))

    async def _wait_past(self, past: int, timeout_ms: int) -> Entry | None:
        """Wait round after round until there is news or the time is up; return the entry that came last."""
        self._require_open()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        came: Entry | None = None
        while self.last_add_confirmed <= past and not self.closed and not self._closed:
            if has_passed(loop, deadline):
                break
            came = await self._follower.wait_past(past, deadline)
        return came

    async def tail(self, first: int = 0) -> AsyncIterator[LedgerEntry]:
        """Entries from ``first`` on, as they are confirmed. It ends when the ledger is closed and read to its end.

        It continues by itself after bookies were replaced, or after the metadata store did not answer.

        Raises: as read; NoSuchLedgerError: the ledger was deleted.
        """
        async for start, payloads in self.tail_batches(first):
            for entry in map(LedgerEntry, range(start, start + len(payloads)), payloads):  # type: ignore[arg-type]
                yield entry

    async def tail_batches(self, first: int = 0) -> AsyncIterator[tuple[EntryId, Sequence[bytes]]]:
        """Entries as :meth:`tail`, in runs of whatever is confirmed and not yet returned."""
        self._require_loop()
        entry = EntryId(first)
        while True:
            if self._ended is not None:
                raise copy_error(self._ended)
            if self.last_add_confirmed >= entry and not self._closed:
                if at_hand := self.take_ready(entry):
                    yield entry, at_hand
                    entry = EntryId(entry + len(at_hand))
                    continue
                with suppress(UnfoundedLacError):
                    async for start, payloads in self.read_batches(entry, self.last_add_confirmed):
                        yield start, payloads
                        entry = EntryId(start + len(payloads))
                continue
            if self.closed or self._closed:
                return
            came = await self._follower.wait_past(entry - 1)
            if (
                came is not None
                and came.entry_id == entry <= self.last_add_confirmed
                and (at_hand := self._opened.open_if_valid(entry, [came.payload]))  # else it is read
            ):
                yield entry, at_hand
                entry = EntryId(entry + 1)

    async def close(self) -> None:
        """Close this handle. The ledger stays as it is. Idempotent."""
        self._require_loop()
        self._closed = True
        self._follower.stop()
        await self._tasks.close()
        self._on_closed(self)

    async def __aenter__(self) -> ReadHandle:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
