"""Reading runs of entries: the shell around ``FragmentReader``.

Runs are read in batches over a bookie's v2 connection, single entries over its main connection. The digest and the ids
of every entry are checked before the machine hears of it. A run is a future; nothing here is a task.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import assert_never

from bookkeeper import codec
from bookkeeper.client.bookie_request import ask, entry_of, failure_of
from bookkeeper.client.bookies.bookie_pool import Use
from bookkeeper.client.ledger_record import LedgerRecord
from bookkeeper.client.services import ClientServices
from bookkeeper.client.tasks import Tasks
from bookkeeper.errors import (
    BookKeeperError,
    ClientClosedError,
    DigestMismatchError,
    MalformedFrameError,
    MetadataUnavailableError,
)
from bookkeeper.ids import BookieId
from bookkeeper.ledger import HEADER, DigestScheme, LedgerMetadata
from bookkeeper.ledger import reader as reader_machine
from bookkeeper.ledger.batch_support import BatchSupport
from bookkeeper.ledger.reader import FragmentReader
from bookkeeper.ledger.replica_order import ReplicaOrder
from bookkeeper.seams import Buffer
from bookkeeper.wire import BatchRead, BatchReply, ReadEntry, ReadReply, Reply

_log = logging.getLogger(__name__)


class EntrySource:
    """Reads entries of one ledger. One per read handle."""

    def __init__(
        self,
        services: ClientServices,
        record: LedgerRecord,
        digest: DigestScheme,
        tasks: Tasks,
        on_lac: Callable[[int | None], None],
    ) -> None:
        self.services = services
        self.record = record
        self.digest = digest
        self.tasks = tasks
        self.on_lac = on_lac
        """Told every last add confirmed that an entry or a reply carries."""
        self.last_resort: frozenset[BookieId] = frozenset()
        """Bookies that are asked when nobody else has an entry."""
        self.read_config = services.config.reader()
        self.batches = BatchSupport()
        self._order = ReplicaOrder()
        self._length_told = False
        self._looking: asyncio.Task[LedgerMetadata | BookKeeperError] | None = None
        """The latest reading of the metadata that has begun."""
        self._next_look: asyncio.Task[LedgerMetadata | BookKeeperError] | None = None
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
    ) -> asyncio.Future[list[bytes]]:
        """Payloads of ``first .. first + count - 1``, which lie in one fragment (one entry where E > Qw).

        ``whole``: not the payloads but the entries as bookies keep them, header and digest included. ``bytes_max``: the
        run may end early, at one entry or more, once it has so many bytes: before, the entries' size is only assumed.

        Fails with: DataMissingError, NoSuchEntryError (``unconfirmed`` only), DigestMismatchError or another
        BookieError when no good copy was to be had now.
        """
        run = RunRead(self, first, count, unconfirmed, whole, bytes_max=bytes_max)
        run.start()
        return run.done

    def is_end(self, entry_id: int) -> bool:
        """Is this the last entry of a ledger that is known to be closed?"""
        metadata = self.record.metadata
        return entry_id == metadata.last_entry and metadata.is_closed

    def on_end(self, length: int) -> None:
        """The last entry tells the ledger's length. Warn once if the metadata tell another one."""
        stored = self.record.metadata.length
        if length != stored and not self._length_told:
            self._length_told = True
            _log.warning(
                "ledger %d: its metadata give a length of %d bytes, its last entry says %d. The entries are intact; "
                "the sum of their sizes is right. Apache's client may have stored another entry's length when it "
                "recovered the ledger, or may have counted advanced appends in the order in which they came",
                self.record.ledger_id,
                stored,
                length,
            )

    def look_again(self) -> asyncio.Task[LedgerMetadata | BookKeeperError]:
        """Read the metadata as stored from now on; the result may be an error. Callers that come while a reading is
        under way share the next one: a thousand reads of missing entries cost two requests to the store."""
        if self._next_look is None:
            self._next_look = self.tasks.start(self._look(), "metadata of a missing entry")
        return self._next_look

    async def _look(self) -> LedgerMetadata | BookKeeperError:
        if self._looking is not None and not self._looking.done():
            await asyncio.wait([self._looking])
        self._looking, self._next_look = self._next_look, None
        limit_ms = self.services.config.metadata_timeout_ms
        try:
            async with asyncio.timeout(limit_ms / 1000):
                return await self.record.refresh()
        except TimeoutError:
            return MetadataUnavailableError(
                f"ledger {self.record.ledger_id}: the metadata store did not answer within {limit_ms} ms"
            )
        except BookKeeperError as error:
            return error

    def order(self, ensemble: Sequence[BookieId]) -> Sequence[BookieId]:
        """The ensemble, best first: bookies take turns; those in doubt or out of reach now come last."""
        watcher, pool, last = self.services.watcher, self.services.pool, self.last_resort
        if not watcher.has_quarantined and not pool.has_pauses and not last:
            return self._order.next(ensemble)
        return self._order.next(ensemble, lambda b: (b in last, watcher.is_quarantined(b), pool.pause_left(b) > 0))


class RunRead:
    """One run on its way."""

    __slots__ = ("_found", "_got", "_loop", "_machine", "_source", "_timer", "_whole", "done")

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
        self._got: dict[tuple[BookieId, int], list[bytes]] = {}
        self._found: list[bytes] = []
        self._timer: asyncio.TimerHandle | None = None
        self.done: asyncio.Future[list[bytes]] = self._loop.create_future()

    def start(self) -> None:
        self._perform(self._machine.start(self._loop.time()))

    def start_asked(self, bookie: BookieId, at: float) -> None:
        """Start as if it were ``at``: the one entry was asked for at ``bookie`` then, and the rest is to come."""
        first, *effects = self._machine.start(at)
        if not isinstance(first, reader_machine.AskBookie) or first.bookie != bookie:  # metadata changed: begin anew
            self._perform([first])
        self._perform(effects)

    def answered(self, bookie: BookieId, reply: Reply | BookKeeperError) -> None:
        """What ``bookie`` said, for a run of one entry that was :meth:`start_asked`."""
        self._on_single(reader_machine.AskBookie(bookie, self._machine.first, 1), reply)

    def _perform(self, effects: Iterable[reader_machine.Effect]) -> None:
        for effect in effects:
            if self.done.done():
                self._end()
                return
            match effect:
                case reader_machine.AskBookie():
                    self._ask(effect)
                case reader_machine.EntriesFound():
                    self._on_found(effect)
                case reader_machine.WakeAt():
                    if self._timer is not None:
                        self._timer.cancel()
                    self._timer = self._loop.call_at(effect.time, self._on_time)
                case reader_machine.ReportCorrupt():
                    self._source.corrupt.add()
                    ledger = self._source.record.ledger_id
                    text = "ledger %d: the copy of entry %d on %s is damaged; other copies are tried"
                    _log.error(text, ledger, effect.entry_id, effect.bookie)
                case reader_machine.RefreshMetadata():
                    self._source.look_again().add_done_callback(self._on_looked)
                case reader_machine.FailRead():
                    self._end()
                    if not self.done.done():
                        self.done.set_exception(effect.error)
                case _:
                    assert_never(effect)

    def _on_found(self, found: reader_machine.EntriesFound) -> None:
        self._found += self._got.pop((found.bookie, found.first))[: found.count]
        if not self._machine.done:
            return
        self._end()
        if not self.done.done():
            self.done.set_result(self._found)

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_time(self) -> None:
        self._timer = None
        if not self.done.done():
            self._perform(self._machine.on_tick(self._loop.time()))

    def _ask(self, wanted: reader_machine.AskBookie, *, batch: bool = True) -> None:
        source = self._source
        if batch and wanted.count > 1 and source.batches.asks_batches(wanted.bookie):
            request = BatchRead(
                source.record.ledger_id, wanted.first, 0, wanted.count, source.services.config.batch_read_bytes
            )
            ask(
                source.services,
                source.tasks,
                wanted.bookie,
                request,
                lambda reply: self._on_batch(wanted, reply),
                use=Use.BATCH,
            )
        else:
            single = ReadEntry(source.record.ledger_id, wanted.first)
            ask(source.services, source.tasks, wanted.bookie, single, lambda reply: self._on_single(wanted, reply))

    def _on_single(self, wanted: reader_machine.AskBookie, reply: Reply | BookKeeperError) -> None:
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
        if source.is_end(wanted.first):
            source.on_end(entry.length)
        if isinstance(reply, ReadReply):
            source.on_lac(reply.max_lac)
            if self._whole and reply.entry is not None:
                self._on_payloads(wanted, [reply.entry])
                return
        self._on_payloads(wanted, [entry.payload])

    def _on_batch(self, wanted: reader_machine.AskBookie, reply: Reply | BookKeeperError) -> None:
        if self.done.done():
            self._end()
            return
        source = self._source
        what = f"entries from {wanted.first} of ledger {source.record.ledger_id} on {wanted.bookie}"
        error = failure_of(reply, what)
        if error is not None:
            if source.batches.on_failed(wanted.bookie, error):
                self._ask(wanted, batch=False)
            else:
                self._on_failed(wanted, error)
            return
        source.batches.on_answered(wanted.bookie)
        if not isinstance(reply, BatchReply):
            self._on_failed(wanted, MalformedFrameError(f"{what}: a {type(reply).__name__}"))
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
            self._on_failed(wanted, DigestMismatchError(f"{what}: digest or ids differ"))
            return
        source.on_lac(found.lacs[-1])
        count = len(found.payloads)
        if source.is_end(wanted.first + count - 1):
            before = sum(map(len, found.payloads)) - len(found.payloads[-1]) + (count - 1) * (4 + digest.overhead)
            source.on_end(HEADER.unpack_from(reply.body, before + 4)[3])
        self._on_payloads(wanted, _entries_in(reply.body, len(found.payloads)) if self._whole else found.payloads)

    def _on_payloads(self, wanted: reader_machine.AskBookie, payloads: list[bytes]) -> None:
        self._got[wanted.bookie, wanted.first] = payloads
        size = sum(map(len, payloads)) if len(payloads) < wanted.count else 0  # the last ones need no count
        self._perform(self._machine.on_entries(wanted.bookie, wanted.first, len(payloads), self._loop.time(), size))
        self._got.pop((wanted.bookie, wanted.first), None)

    def _on_failed(self, wanted: reader_machine.AskBookie, error: BookKeeperError) -> None:
        self._perform(self._machine.on_failed(wanted.bookie, wanted.first, error, self._loop.time()))

    def _on_looked(self, task: asyncio.Task[LedgerMetadata | BookKeeperError]) -> None:
        """The caller of the read waits, also if the reader was closed meanwhile."""
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
    """The first ``count`` entries of a batch: [length u32][entry] each. They were checked."""
    found, view, at = [], memoryview(body), 0
    for _ in range(count):
        start = at + 4
        at = start + int.from_bytes(view[at:start], "big")
        found.append(bytes(view[start:at]))
    return found
