"""Reads runs of entries: the shell around ``FragmentReader``.

It reads runs in batches over a bookie's v2 connection, and single entries over its main connection. It checks the
digest and the ids of every entry before it reports the entry to the machine. A run is a future, not a task.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from math import inf
from typing import Protocol, assert_never

from bookkeeper import codec
from bookkeeper.client.bookie_request import entry_of, failure_of, send_request
from bookkeeper.client.bookies.bookie_pool import ConnectionPurpose
from bookkeeper.client.ledger_view import LedgerView
from bookkeeper.client.services import ClientServices
from bookkeeper.client.tasks import Tasks
from bookkeeper.errors import (
    BookKeeperError,
    ClientClosedError,
    DigestMismatchError,
    MalformedFrameError,
    MetadataUnavailableError,
)
from bookkeeper.ids import NO_ENTRY, BookieId, EntryId
from bookkeeper.ledger import HEADER, DigestScheme, LedgerMetadata
from bookkeeper.ledger import read as reader_machine
from bookkeeper.ledger.read import BatchSupport, FragmentReader, ReplicaOrder, RunLength
from bookkeeper.seams import Buffer
from bookkeeper.wire import BatchRead, BatchReply, ReadEntry, ReadReply, Reply

_log = logging.getLogger(__name__)


class LacListener(Protocol):
    """Whoever wants to know how far the ledger may be read."""

    def on_lac(self, lac: int) -> None:
        """A checked entry carries this last add confirmed."""

    def on_hearsay(self, bookie: BookieId, lac: int | None) -> None:
        """``bookie`` says that so much is confirmed; no digest covers that."""

    def on_absent(self, entry_id: int) -> BookKeeperError | None:
        """This entry is provably not there. Returns the error for its readers if only a bookie's word said that it is
        confirmed."""


class NoListener:
    """Nobody wants to know it."""

    def on_lac(self, lac: int) -> None: ...
    def on_hearsay(self, bookie: BookieId, lac: int | None) -> None: ...
    def on_absent(self, entry_id: int) -> None: ...


class EntrySource:
    """Reads entries of one ledger. One per read handle."""

    def __init__(
        self,
        services: ClientServices,
        record: LedgerView,
        digest: DigestScheme,
        tasks: Tasks,
        listener: LacListener,
    ) -> None:
        self.services = services
        self.record = record
        self.digest = digest
        self.tasks = tasks
        self.on_lac = listener.on_lac
        self.on_hearsay = listener.on_hearsay
        self.on_absent = listener.on_absent
        self.last_resort: frozenset[BookieId] = frozenset()
        """Bookies that are asked only when no other bookie has an entry."""
        self.read_config = services.config.reader()
        self.batches = BatchSupport()
        self.lengths = RunLength(record.metadata, services.config.batch_read_bytes)
        """How many entries are asked for at once, by their sizes."""
        self._order = ReplicaOrder()
        self._length_reported = False
        self._refreshing: asyncio.Task[LedgerMetadata | BookKeeperError] | None = None
        """The latest reading of the metadata that has begun."""
        self._next_refresh: asyncio.Task[LedgerMetadata | BookKeeperError] | None = None
        """The reading that begins after it."""
        self.corrupt = services.metrics.counter("corrupt_copies", "Copies whose digest or ids were wrong")

    def read(
        self,
        first: int,
        count: int = 1,
        *,
        unconfirmed: bool = False,
        whole: bool = False,
        bytes_max: float = inf,
        order: Sequence[BookieId] = (),
    ) -> asyncio.Future[list[bytes]]:
        """The payloads of ``first .. first + count - 1``, which lie in one fragment (one entry where E > Qw).

        With ``whole`` the result is the entries as bookies keep them, with header and digest. With ``bytes_max`` the
        run may end early, after one entry or more, once it has so many bytes: the size of entries is only assumed
        before they come. ``order`` is the ensemble in the order of asking; otherwise bookies take turns.

        Fails with: DataMissingError, NoSuchEntryError (``unconfirmed`` only), DigestMismatchError or another
        BookieError when no good copy can be read now.
        """
        run = RunRead(self, first, count, unconfirmed, whole, order, bytes_max)
        run.start()
        return run.done

    @property
    def last_entry(self) -> EntryId:
        """The last entry of a ledger that is known to be closed; otherwise no entry."""
        metadata = self.record.metadata
        return metadata.last_entry if metadata.is_closed else NO_ENTRY

    def run_length(self, first: int, last: int) -> int:
        """How many entries from ``first`` on to ask for at once, if those up to ``last`` are wanted."""
        metadata = self.record.metadata
        batches = self.batches.asks_any(metadata.fragment_of(first).ensemble)
        return self.lengths.of(metadata, first, last, batches=batches)

    def check_length(self, length: int) -> None:
        """Compare the ledger's length in its last entry with that in its metadata; warn once if they differ."""
        stored = self.record.metadata.length
        if length != stored and not self._length_reported:
            self._length_reported = True
            _log.warning(
                "ledger %d has %d bytes by its metadata, but %d by its last entry. The entries are intact, and the sum "
                "of their sizes is right. Apache's client may have stored another entry's length when it recovered the "
                "ledger, or may have counted advanced appends in the order in which they came",
                self.record.ledger_id,
                stored,
                length,
            )

    def refresh_metadata(self) -> asyncio.Task[LedgerMetadata | BookKeeperError]:
        """Start to read the metadata; the result may be an error. Callers that come while a reading is under way share
        the next one, so that a thousand reads of missing entries cost two requests to the store."""
        if self._next_refresh is None:
            self._next_refresh = self.tasks.start(self._refresh(), "metadata of a missing entry")
        return self._next_refresh

    async def _refresh(self) -> LedgerMetadata | BookKeeperError:
        if self._refreshing is not None and not self._refreshing.done():
            await asyncio.wait([self._refreshing])
        self._refreshing, self._next_refresh = self._next_refresh, None
        limit_ms = self.services.config.metadata_timeout_ms
        try:
            async with asyncio.timeout(limit_ms / 1000):
                return await self.record.refresh()
        except TimeoutError:
            return MetadataUnavailableError(
                f"the metadata of ledger {self.record.ledger_id} could not be read: the metadata store did not answer "
                f"within {limit_ms} ms"
            )
        except BookKeeperError as error:
            return error

    def order(self, ensemble: Sequence[BookieId]) -> Sequence[BookieId]:
        """The ensemble in the order of asking: bookies take turns, the nearer ones first if this client knows how near
        they are, and those in quarantine or in a pause last."""
        watcher, pool, last = self.services.watcher, self.services.pool, self.last_resort
        distance = self.services.locations.distance
        if not watcher.has_quarantined and not pool.has_pauses and not last:
            return self._order.next(ensemble, distance)
        away = distance or _no_distance
        return self._order.next(
            ensemble, lambda b: (b in last, watcher.is_quarantined(b), pool.pause_left(b) > 0, away(b))
        )


class RunRead:
    """One read of a run, from its first request to its end."""

    __slots__ = ("_found", "_loop", "_machine", "_received", "_source", "_timer", "_whole", "done")

    def __init__(
        self,
        source: EntrySource,
        first: int,
        count: int = 1,
        unconfirmed: bool = False,
        whole: bool = False,
        order: Sequence[BookieId] = (),
        bytes_max: float = inf,
    ) -> None:
        metadata = source.record.metadata
        self._source = source
        self._whole = whole
        self._machine = FragmentReader(
            metadata,
            first,
            count,
            order=order or source.order(metadata.fragment_of(first).ensemble),
            unconfirmed=unconfirmed,
            config=source.read_config,
            bytes_max=bytes_max,
        )
        self._loop = asyncio.get_running_loop()
        self._received: dict[tuple[BookieId, int], list[bytes]] = {}
        self._found: list[bytes] = []
        self._timer: asyncio.TimerHandle | None = None
        self.done: asyncio.Future[list[bytes]] = self._loop.create_future()

    def start(self) -> None:
        self._perform(self._machine.start(self._loop.time()))

    def start_sent(self, bookie: BookieId, at: float) -> None:
        """Start with a request for the one entry that was sent to ``bookie`` at the time ``at``."""
        first, *effects = self._machine.start(at)
        if not isinstance(first, reader_machine.SendRead) or first.bookie != bookie:  # the metadata changed: ask anew
            self._perform([first])
        self._perform(effects)

    def on_reply(self, bookie: BookieId, reply: Reply | BookKeeperError) -> None:
        """Take the reply of ``bookie``, for a run of one entry that began with :meth:`start_sent`."""
        self._on_single(reader_machine.SendRead(bookie, self._machine.first, 1), reply)

    def _perform(self, effects: Iterable[reader_machine.Effect]) -> None:
        for effect in effects:
            if self.done.done():
                self._end()
                return
            match effect:
                case reader_machine.SendRead():
                    self._send(effect)
                case reader_machine.DeliverEntries():
                    self._on_found(effect)
                case reader_machine.WakeAt():
                    if self._timer is not None:
                        self._timer.cancel()
                    self._timer = self._loop.call_at(effect.time, self._on_tick)
                case reader_machine.ReportCorrupt():
                    self._source.corrupt.add()
                    ledger = self._source.record.ledger_id
                    text = "ledger %d: the copy of entry %d on %s is damaged; other copies are tried"
                    _log.error(text, ledger, effect.entry_id, effect.bookie)
                case reader_machine.RefreshMetadata():
                    self._source.refresh_metadata().add_done_callback(self._on_refreshed)
                case reader_machine.FailRead():
                    self._end()
                    if not self.done.done():
                        self.done.set_exception(self._error_of(effect))
                case _:
                    assert_never(effect)

    def _on_found(self, found: reader_machine.DeliverEntries) -> None:
        self._found += self._received.pop((found.bookie, found.first))[: found.count]
        if not self._machine.done:
            return
        self._end()
        if not self.done.done():
            self.done.set_result(self._found)

    def _error_of(self, failed: reader_machine.FailRead) -> BookKeeperError:
        unfounded = self._source.on_absent(failed.first) if failed.is_absent else None
        return unfounded or failed.error

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_tick(self) -> None:
        self._timer = None
        if not self.done.done():
            self._perform(self._machine.on_tick(self._loop.time()))

    def _send(self, wanted: reader_machine.SendRead, *, batch: bool = True) -> None:
        source = self._source
        if batch and wanted.count > 1 and source.batches.asks_batches(wanted.bookie):
            request = BatchRead(
                source.record.ledger_id, wanted.first, 0, wanted.count, source.services.config.batch_read_bytes
            )
            send_request(
                source.services,
                source.tasks,
                wanted.bookie,
                request,
                lambda reply: self._on_batch(wanted, reply),
                use=ConnectionPurpose.BATCH,
            )
        else:
            single = ReadEntry(source.record.ledger_id, wanted.first)
            send_request(
                source.services, source.tasks, wanted.bookie, single, lambda reply: self._on_single(wanted, reply)
            )

    def _on_single(self, wanted: reader_machine.SendRead, reply: Reply | BookKeeperError) -> None:
        if self.done.done():
            self._end()
            return
        source = self._source
        what = f"entry {wanted.first} of ledger {source.record.ledger_id} on {wanted.bookie}"
        try:
            entry = entry_of(reply, source.digest, source.record.ledger_id, wanted.first, what)
        except BookKeeperError as error:
            self._on_failed(wanted, error)
            return
        source.on_lac(entry.last_add_confirmed)
        if wanted.first == source.last_entry:
            source.check_length(entry.length)
        if isinstance(reply, ReadReply):
            source.on_hearsay(wanted.bookie, reply.max_lac)
            if self._whole and reply.entry is not None:
                self._on_payloads(wanted, [reply.entry])
                return
        self._on_payloads(wanted, [entry.payload])

    def _on_batch(self, wanted: reader_machine.SendRead, reply: Reply | BookKeeperError) -> None:
        if self.done.done():
            self._end()
            return
        source = self._source
        what = f"entries from {wanted.first} of ledger {source.record.ledger_id} on {wanted.bookie}"
        error = failure_of(reply, what)
        if error is not None:
            if source.batches.on_failed(wanted.bookie, error):
                self._send(wanted, batch=False)
            else:
                self._on_failed(wanted, error)
            return
        source.batches.on_answered(wanted.bookie)
        if not isinstance(reply, BatchReply):
            self._on_failed(
                wanted, MalformedFrameError(f"{what}: the bookie sent a reply of another kind ({type(reply).__name__})")
            )
            return
        digest = source.digest
        found = codec.split_entries(
            reply.body,
            0,
            len(reply.body),
            source.record.ledger_id,
            wanted.first,
            digest.digest_type,
            digest.mac_key,
        )
        if not found.payloads:
            self._on_failed(wanted, DigestMismatchError(f"{what}: the first entry has a wrong digest or wrong ids"))
            return
        source.on_lac(found.lacs[-1])
        count = len(found.payloads)
        if wanted.first + count - 1 == source.last_entry:
            before = sum(map(len, found.payloads)) - len(found.payloads[-1]) + (count - 1) * (4 + digest.overhead)
            source.check_length(HEADER.unpack_from(reply.body, before + 4)[3])
        self._on_payloads(wanted, _entries_in(reply.body, len(found.payloads)) if self._whole else found.payloads)

    def _on_payloads(self, wanted: reader_machine.SendRead, payloads: list[bytes]) -> None:
        self._received[wanted.bookie, wanted.first] = payloads
        size = sum(map(len, payloads)) if len(payloads) < wanted.count else 0  # a complete run needs no size
        self._perform(self._machine.on_entries(wanted.bookie, wanted.first, len(payloads), self._loop.time(), size))
        self._received.pop((wanted.bookie, wanted.first), None)

    def _on_failed(self, wanted: reader_machine.SendRead, error: BookKeeperError) -> None:
        self._perform(self._machine.on_failed(wanted.bookie, wanted.first, error, self._loop.time()))

    def _on_refreshed(self, task: asyncio.Task[LedgerMetadata | BookKeeperError]) -> None:
        """Report the metadata to the machine. If the reader was closed meanwhile, its caller gets an error."""
        found: LedgerMetadata | BookKeeperError
        if task.cancelled():
            found = ClientClosedError(f"the reader of ledger {self._source.record.ledger_id} was closed")
        else:
            found = task.result()
        if isinstance(found, BookKeeperError):
            self._perform(self._machine.on_metadata_failed(found, self._loop.time()))
        else:
            self._perform(self._machine.on_metadata(found, self._loop.time()))


def _entries_in(body: Buffer, count: int) -> list[bytes]:
    """The first ``count`` entries of a batch, which were checked: [length u32][entry] each."""
    found, view, at = [], memoryview(body), 0
    for _ in range(count):
        start = at + 4
        at = start + int.from_bytes(view[at:start], "big")
        found.append(bytes(view[start:at]))
    return found


def _no_distance(bookie: BookieId) -> int:
    """The distance of a bookie from a client of which nobody knows where it stands."""
    return 0
