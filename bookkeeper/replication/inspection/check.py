"""Checks whether a ledger is whole: asks every bookie that its metadata name which entries it holds, and compares.

* If a bookie does not answer, or does not say, its copies count as unknown, never as missing.
* A bookie that cannot list what it holds (Java's with some storages) is probed instead: the first entry of each copy,
  the last, and a sample of the others are read from it.
* The last fragment of a ledger that is not closed is checked up to the last add confirmed that a reader sees. What lies
  beyond is its writer's business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Container, Sequence
from dataclasses import dataclass, field, replace

from bookkeeper.client.bookie_request import entry_of, request_reply
from bookkeeper.client.ledger_view import LedgerView
from bookkeeper.client.read.read_handle import ReadHandle
from bookkeeper.client.tasks import Tasks
from bookkeeper.errors import (
    BadRequestError,
    BookieFailedError,
    BookKeeperError,
    CorruptionError,
    ProtocolVersionError,
    RequestTimedOutError,
    in_words,
)
from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger import Answer, QuorumSpec, classify
from bookkeeper.replication.copying.copies import Copy, copies_of
from bookkeeper.replication.copying.repair import RepairContext, digest_of, held_by
from bookkeeper.wire import ReadEntry
from bookkeeper.wire.availability import HeldEntries

NO_LISTS = (RequestTimedOutError, ProtocolVersionError, BadRequestError)
"""How a bookie answers that cannot list what it holds. Java's bookies on DbLedgerStorage do not answer at all."""

RUN_ENTRIES = 4096
"""Entries that are compared before others on the same loop get their turn."""

DAMAGED = (CorruptionError, BookieFailedError)
"""How a read of an entry ends that a bookie holds and cannot give out. Neither passes by itself, as a time-out may."""


@dataclass(frozen=True, slots=True)
class IncompleteCopy:
    """One copy that is not proved to be whole."""

    copy: Copy
    missing: int
    """How many of its entries the bookie lacks, as it says itself or as probes of some entries show."""
    unknown: BookKeeperError | None = None
    """Why it is not known which entries the bookie holds; then ``missing`` is 0."""
    entries: tuple[range, ...] = ()
    """Where the missing entries are, ascending; a range may contain entries of other bookies. If only probes have shown
    that some are missing, this is the whole fragment."""

    def __str__(self) -> str:
        if self.unknown is not None:
            return f"{self.copy}: it is not known whether they are there: {in_words(self.unknown)}"
        if not self.copy.is_decided:
            return f"{self.copy}: {self.missing} are missing, and are copied when the ledger is closed"
        return f"{self.copy}: {self.missing} are missing"


@dataclass(frozen=True, slots=True)
class CheckedLedger:
    """What a check has found."""

    copies: tuple[Copy, ...]
    """The copies that were looked at; those without an end say what is confirmed of them, if that is known."""
    incomplete: tuple[IncompleteCopy, ...]
    """Those that are not proved to be whole."""


async def incomplete_copies(
    context: RepairContext, record: LedgerView, *, sample_percent: float = 0.0
) -> list[IncompleteCopy]:
    """Every copy of the ledger that is not proved to be whole. An empty list means that the ledger is whole.

    Args: as :func:`check_ledger`.
    """
    return list((await check_ledger(context, record, sample_percent=sample_percent)).incomplete)


async def check_ledger(
    context: RepairContext,
    record: LedgerView,
    *,
    sample_percent: float = 0.0,
    bookies: Collection[BookieId] | None = None,
) -> CheckedLedger:
    """Ask the bookies of a ledger what they hold, and compare.

    Args:
        bookies: only these are asked, and only their copies are looked at; None: all of the ledger's bookies.
        sample_percent: above 0, the first and the last entry of each copy and so many in a hundred of the others are
            read, and their digests verified, also where a bookie has listed them. An entry that is damaged counts as
            missing.
    """
    check = _LedgerCheck(context, record, sample_percent, bookies)
    try:
        return await check.run()
    finally:
        await check.tasks.close()


class _LedgerCheck:
    """The check of one ledger."""

    def __init__(
        self,
        context: RepairContext,
        record: LedgerView,
        sample_percent: float,
        bookies: Collection[BookieId] | None,
    ) -> None:
        self.tasks = Tasks(f"check of ledger {record.ledger_id}")
        self._context = context
        self._record = record
        self._sample_percent = sample_percent
        self._bookies = record.metadata.bookies if bookies is None else set(bookies)
        self._digest = digest_of(record.metadata)

    async def run(self) -> CheckedLedger:
        copies = [copy for copy in copies_of(self._record.metadata) if copy.bookie in self._bookies]
        no_lac: BookKeeperError | None = None
        if not all(copy.is_decided for copy in copies):
            try:
                copies = _bounded(copies, await self._last_add_confirmed())
            except BookKeeperError as error:
                no_lac = error
        bookies = sorted({copy.bookie for copy in copies})
        held = dict(zip(bookies, await asyncio.gather(*map(self._held, bookies)), strict=True))
        found = await asyncio.gather(*(self._judge(copy, held[copy.bookie], no_lac) for copy in copies))
        return CheckedLedger(tuple(copies), tuple(each for each in found if each is not None))

    async def _last_add_confirmed(self) -> EntryId:
        """How far an ordinary reader may read; the writer goes on."""
        handle = ReadHandle(self._context.services, self._record, self._digest, lambda handle: None)
        try:
            await handle.start()
            return handle.last_add_confirmed
        finally:
            await handle.close()

    async def _held(self, bookie: BookieId) -> HeldEntries | BookKeeperError:
        if bookie in self._context.tells_nothing:
            return RequestTimedOutError(f"{bookie} does not list the entries that it holds")
        try:
            return await held_by(self._context.services, self.tasks, bookie, self._record)
        except BookKeeperError as error:
            return error

    async def _judge(
        self, copy: Copy, held: HeldEntries | BookKeeperError, no_lac: BookKeeperError | None
    ) -> IncompleteCopy | None:
        bounded = copy.bounded
        if bounded.end is None:
            return IncompleteCopy(copy, 0, held if isinstance(held, BookKeeperError) else no_lac)
        spec = self._record.metadata.spec
        if bounded.held(spec) == 0:
            if not copy.is_decided and isinstance(held, BookKeeperError) and not isinstance(held, NO_LISTS):
                return IncompleteCopy(copy, 0, held)
            return None
        if isinstance(held, NO_LISTS):
            return await self._probe(copy, self._sample(bounded), says=held)
        if isinstance(held, BookKeeperError):
            return IncompleteCopy(copy, 0, held)
        found = CopyGaps()
        for run in bounded.runs(spec, RUN_ENTRIES):
            found.compare(run, held)
            await asyncio.sleep(0)  # a ledger of millions of entries does not hold up whoever shares this loop
        if missing := found.ranges:
            return IncompleteCopy(copy, sum(count for _, count in missing), entries=tuple(some for some, _ in missing))
        return await self._probe(copy, self._sample(bounded)) if self._sample_percent else None

    def _sample(self, copy: Copy) -> list[int]:
        """The first entry of the copy, the last, and some of the others by chance."""
        rng, share = self._context.services.seams.rng, self._sample_percent / 100
        chosen: set[int] = set()
        last = -1
        for run in copy.runs(self._record.metadata.spec, RUN_ENTRIES):
            if last < 0:
                chosen.add(run[0])
            last = run[-1]
            if share:
                chosen.update(entry for entry in run if rng.random() < share)
        return sorted({*chosen, last})

    async def _probe(
        self, copy: Copy, entries: Sequence[int], says: BookKeeperError | None = None
    ) -> IncompleteCopy | None:
        """Read ``entries`` from the copy's bookie. ``says``: its answer when it was asked for a list."""
        missing = 0
        for entry in entries:
            error = await self._read(copy.bookie, EntryId(entry))
            if error is None:
                continue
            if classify(error) is not Answer.NEGATIVE and not isinstance(error, DAMAGED):
                return IncompleteCopy(copy, 0, error)
            missing += 1
        if says is not None:
            self._context.tells_nothing.add(copy.bookie)  # it answers reads: it only cannot list
        bounded = copy.bounded
        assert bounded.end is not None, "only what has an end is probed"
        everywhere = (range(bounded.first_entry, bounded.end + 1),)
        return IncompleteCopy(copy, missing, entries=everywhere) if missing else None

    async def _read(self, bookie: BookieId, entry: EntryId) -> BookKeeperError | None:
        """Read one entry from one bookie. Returns why it is not there, or None."""
        ledger_id = self._record.ledger_id
        reply = await request_reply(self._context.services, self.tasks, bookie, ReadEntry(ledger_id, entry))
        try:
            entry_of(reply, self._digest, ledger_id, entry, f"entry {entry} of ledger {ledger_id} on {bookie}")
        except BookKeeperError as error:
            return error
        return None


@dataclass(slots=True)
class CopyGaps:
    """Where a bookie lacks entries of its share, found run by run in ascending order."""

    ranges: list[tuple[range, int]] = field(default_factory=list)
    """Each range from one of its entries to another, between which it has none, and how many of its own they are."""
    _goes_on: bool = False

    def compare(self, run: Sequence[int], held: Container[int]) -> None:
        """Take in the next run of its share."""
        if isinstance(run, range) and isinstance(held, HeldEntries) and held.holds_all(run[0], run[-1]):
            self._goes_on = False
            return
        for entry in run:
            if entry in held:
                self._goes_on = False
            elif self._goes_on:
                some, count = self.ranges[-1]
                self.ranges[-1] = range(some.start, entry + 1), count + 1
            else:
                self.ranges.append((range(entry, entry + 1), 1))
                self._goes_on = True


def missing_entries(copy: Copy, spec: QuorumSpec, held: Container[int]) -> list[tuple[range, int]]:
    """The gaps of a whole copy, at once: for a process that does nothing else meanwhile."""
    gaps = CopyGaps()
    for run in copy.runs(spec, RUN_ENTRIES):
        gaps.compare(run, held)
    return gaps.ranges


def _bounded(copies: Sequence[Copy], last_add_confirmed: int) -> list[Copy]:
    """The copies, those without an end with the last add confirmed as what they must hold at least."""
    return [
        copy if copy.is_decided else replace(copy, at_least=EntryId(max(last_add_confirmed, copy.first_entry - 1)))
        for copy in copies
    ]
