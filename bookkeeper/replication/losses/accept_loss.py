"""Closes a ledger whose ordinary recovery is inconclusive, at the last entry that can be read, and records the loss.

    1. An ordinary recovery is tried. If it closes the ledger, nothing is given up.
    2. The bookies that answer are fenced, and say what they hold. A bookie that cannot list its entries is read.
    3. Somebody accepts what is given up (:mod:`~bookkeeper.replication.losses.closing_loss`).
    4. The closing compare-and-set, over the very metadata of step 2, also writes the record of it.

A bookie that comes back later may hold entries that were given up. They stay given up: the end of a closed ledger is
final. The entries of a gap can be read again then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from bookkeeper.client.bookie_request import entry_of, request_reply
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.ledger_view import LedgerView
from bookkeeper.client.ledgers.ledger_recovery import recover
from bookkeeper.client.tasks import Tasks
from bookkeeper.errors import (
    BookKeeperError,
    IllegalOperationError,
    MetadataConflictError,
    RecoveryInconclusiveError,
    in_words,
)
from bookkeeper.ids import NO_ENTRY, BookieId, EntryId, IdRanges, LedgerId
from bookkeeper.ledger import Answer, Entry, LedgerMetadata, classify
from bookkeeper.meta import Versioned
from bookkeeper.replication.copying.copies import Copy, copies_of
from bookkeeper.replication.copying.repair import digest_of, held_by
from bookkeeper.replication.inspection.check import NO_LISTS, missing_entries
from bookkeeper.replication.inspection.explain import CopyState, ExplainedCopy, without_copy
from bookkeeper.replication.losses.closing_loss import KEY, ClosingLoss, closing_entry, lost_entries, size_of_gaps
from bookkeeper.wire import ReadEntry
from bookkeeper.wire.availability import HeldEntries

_log = logging.getLogger(__name__)

GAPS_MEASURED: Final = 100
"""The bytes of so many gaps are found out; of more they are not known."""

READS_AT_ONCE: Final = 64
"""Entries that are read at a time from a bookie that cannot list them."""

Held = HeldEntries | IdRanges
"""The entries that one bookie holds."""


@dataclass(frozen=True, slots=True)
class LossPlan:
    """What closing the ledger now would give up."""

    ledger_id: LedgerId
    over: Versioned[LedgerMetadata]
    """The metadata for which it holds."""
    given_up: ClosingLoss


async def plan_loss(client: BookKeeper, ledger_id: LedgerId) -> LossPlan | LedgerMetadata:
    """Recover the ledger if that can be done without a loss, and return its metadata; or else say what has to be given
    up. The ledger is in recovery then, and its writer is fenced on every bookie that answers.

    Raises:
        IllegalOperationError: the ledger is closed already.
        NoSuchLedgerError, MetadataError.
        UnauthorizedError: the bookies hold another password than the metadata.
    """
    record = await LedgerView.read(client.metadata_store.ledgers, ledger_id)
    if record.metadata.is_closed:
        raise IllegalOperationError(
            f"ledger {ledger_id} is closed at entry {record.metadata.last_entry}, and that is final: nothing can be "
            f"given up. `bk ledger explain {ledger_id}` shows which copies are left"
        )
    try:
        return await recover(client.services, record, digest_of(record.metadata))
    except RecoveryInconclusiveError as error:
        why = in_words(error)
    if (stored := await record.refresh()).is_closed:
        return stored
    survey = _Survey(client, record)
    try:
        return LossPlan(ledger_id, record.versioned, await survey.run(why))
    finally:
        await survey.tasks.close()


async def accept_loss(client: BookKeeper, plan: LossPlan) -> LedgerMetadata:
    """Close the ledger as planned, record what is given up, and mark the ledger for repair.

    Raises:
        IllegalOperationError: the ledger was changed since; plan again.
        NoSuchLedgerError: it was deleted.
        MetadataUnavailableError: it is not known whether it was closed.
    """
    metadata, services, given = client.metadata_store, client.services, plan.given_up
    now_ms = services.seams.clock.wall_ms()
    closed = plan.over.value.close_recovered(given.last_entry, given.length)
    note = given.encode(now_ms)
    beside = metadata.own("given-up", f"{plan.ledger_id}-{now_ms}")
    if closed.format_version == 1:  # the oldest format has no custom metadata
        await metadata.store.create(beside, note, parents=True)
    else:
        closed = replace(closed, custom=MappingProxyType({**closed.custom, KEY: note}))
    record = LedgerView(metadata.ledgers, plan.ledger_id, plan.over)
    try:
        stored = await record.write(closed, plan.over, same_creation=True)
    except MetadataConflictError as error:
        stored = await record.refresh()
        if not _is_done(stored, closed):  # a repair may have changed it since
            if closed.format_version == 1:
                await metadata.store.delete(beside, None)
            raise IllegalOperationError(
                f"the metadata of ledger {plan.ledger_id} were changed meanwhile, so nothing was given up: begin again"
            ) from error
    _log.warning(
        "ledger %d was closed at entry %d by an operator's order although its recovery was inconclusive (%s); given "
        "up: %s",
        plan.ledger_id,
        given.last_entry,
        given.why,
        f"entries {', '.join(given.spans())}" if given.entries else "whatever was acknowledged after that entry",
    )
    up = await metadata.bookies.registered()
    await metadata.under_replication.mark(plan.ledger_id, sorted(stored.bookies - up), now_ms)
    return stored


def _is_done(stored: LedgerMetadata, closed: LedgerMetadata) -> bool:
    """Whether a ledger was closed as it was to be, by a write whose reply was lost."""
    same_end = stored.is_closed and (stored.last_entry, stored.length) == (closed.last_entry, closed.length)
    return same_end and stored.custom.get(KEY) == closed.custom.get(KEY)


class _Survey:
    """Finds out what can be read of one ledger in recovery."""

    def __init__(self, client: BookKeeper, record: LedgerView) -> None:
        self.tasks = Tasks(f"what is left of ledger {record.ledger_id}")
        self._services = client.services
        self._record = record
        self._metadata = record.metadata
        self._digest = digest_of(record.metadata)
        self._silent: dict[BookieId, str] = {}
        self._confirmed: int = record.metadata.last_fragment.first_entry - 1

    async def run(self, why: str) -> ClosingLoss:
        metadata = self._metadata
        await asyncio.gather(*map(self._fence, metadata.last_fragment.ensemble))
        bookies = sorted(metadata.bookies)
        held = dict(zip(bookies, await asyncio.gather(*map(self._held, bookies)), strict=True))
        last = await self._last_readable(held)
        end = closing_entry(metadata, last.entry_id if last is not None else NO_ENTRY)
        gaps = self._gaps(held, end)
        length = last.length if last is not None else 0
        entries = lost_entries(gaps, end, self._confirmed)
        size = await self._size(gaps, held) if end == (last.entry_id if last else NO_ENTRY) else None
        return ClosingLoss(end, length, entries, size, why, self._silent)

    # -- asking ---------------------------------------------------------------------------------------------

    async def _fence(self, bookie: BookieId) -> None:
        """Fence the writer, and hear the last add confirmed."""
        found = await self._read(bookie, None)
        if not isinstance(found, Entry) and classify(found) is not Answer.NEGATIVE:
            self._silent[bookie] = in_words(found)

    async def _held(self, bookie: BookieId) -> Held:
        """What a bookie holds; nothing if it does not say."""
        try:
            return await held_by(self._services, self.tasks, bookie, self._record)
        except NO_LISTS:
            return await self._read_through(bookie)
        except BookKeeperError as error:
            self._silent.setdefault(bookie, in_words(error))
            return IdRanges()

    async def _read_through(self, bookie: BookieId) -> IdRanges:
        """Read every entry that a bookie should hold; of the last fragment up to where it has none any more."""
        found, spec = IdRanges(), self._metadata.spec
        for copy in copies_of(self._metadata, bookie):
            if copy.is_decided:
                for run in copy.runs(spec, READS_AT_ONCE):
                    if await self._read_run(bookie, run, found) is None:
                        return found
                continue
            at = spec.next_held(copy.position, copy.first_entry)
            more: bool | None = True
            while more or (more is not None and at <= self._confirmed):
                run = [at]
                while len(run) < READS_AT_ONCE:
                    run.append(spec.next_held(copy.position, run[-1] + 1))
                more, at = await self._read_run(bookie, run, found), run[-1] + 1
        return found

    async def _read_run(self, bookie: BookieId, run: Sequence[int], found: IdRanges) -> bool | None:
        """Read some entries. Returns whether any was there; None: the bookie answers nothing."""
        some, answered = False, False
        for entry, answer in zip(run, await asyncio.gather(*(self._read(bookie, e) for e in run)), strict=True):
            if isinstance(answer, Entry):
                found.add(entry)
                some = True
            elif classify(answer) is Answer.NEGATIVE:
                answered = True
            else:
                self._silent.setdefault(bookie, in_words(answer))
        return some if some or answered else None

    async def _read(self, bookie: BookieId, entry_id: int | None) -> Entry | BookKeeperError:
        """Read one entry and fence; None: whatever entry the bookie has last."""
        ledger_id = self._record.ledger_id
        number = NO_ENTRY if entry_id is None else EntryId(entry_id)
        request = ReadEntry(ledger_id, number, master_key=self._digest.master_key, fence=True)
        reply = await request_reply(self._services, self.tasks, bookie, request)
        what = f"entry {number} of ledger {ledger_id} on {bookie}"
        try:
            found = entry_of(reply, self._digest, ledger_id, entry_id, what)
        except BookKeeperError as error:
            return error
        self._confirmed = max(self._confirmed, found.last_add_confirmed)
        return found

    async def _read_any(self, entry_id: int, held: Mapping[BookieId, Held]) -> Entry | None:
        """A good copy of one entry; None if no bookie has one."""
        for bookie in self._metadata.write_set(entry_id):
            if entry_id in held[bookie] and isinstance(found := await self._read(bookie, entry_id), Entry):
                return found
        return None

    # -- judging --------------------------------------------------------------------------------------------

    async def _last_readable(self, held: Mapping[BookieId, Held]) -> Entry | None:
        """The greatest entry of which a copy can be read, with its digest right."""
        for index in reversed(range(len(self._metadata.fragments))):
            first, end = self._metadata.fragments[index].first_entry, self._metadata.fragment_end(index)
            at = self._top(index, held) if end is None else int(end)
            for entry in range(at, first - 1, -1):
                if (found := await self._read_any(entry, held)) is not None:
                    return found
        return None

    def _top(self, index: int, held: Mapping[BookieId, Held]) -> int:
        """The greatest entry that a bookie of this fragment says it holds."""
        top = int(self._metadata.fragments[index].first_entry) - 1
        for bookie in self._metadata.fragments[index].ensemble:
            listed = held[bookie]
            ends = [listed.last] if isinstance(listed, HeldEntries) else [last for _, last in listed]
            top = max([top, *ends])
        return top

    def _gaps(self, held: Mapping[BookieId, Held], end: int) -> list[range]:
        """Entries up to ``end`` of which no bookie has a copy."""
        gaps: list[range] = []
        for index, fragment in enumerate(self._metadata.fragments):
            known = self._metadata.fragment_end(index)
            stop = end if known is None else known
            copies = [
                self._copy(Copy(fragment.first_entry, EntryId(stop), position, bookie), held[bookie])
                for position, bookie in enumerate(fragment.ensemble)
            ]
            gaps += without_copy(self._metadata.spec, fragment.first_entry, stop, copies)
        return gaps

    def _copy(self, copy: Copy, held: Held) -> ExplainedCopy:
        missing = missing_entries(copy, self._metadata.spec, held)
        lacks = tuple(some for some, _ in missing)
        return ExplainedCopy(copy.bookie, CopyState.LACKING, sum(count for _, count in missing), lacks)

    async def _size(self, gaps: list[range], held: Mapping[BookieId, Held]) -> int | None:
        """The bytes of the gaps, by the lengths that the entries beside them have."""
        if len(gaps) > GAPS_MEASURED:
            return None
        lengths: dict[int, tuple[int, int]] = {}
        for gap in gaps:
            for entry in (gap.start - 1, gap.stop):
                if entry >= 0 and entry not in lengths and (found := await self._read_any(entry, held)) is not None:
                    lengths[entry] = found.length, len(found.payload)
        return size_of_gaps(gaps, lengths)
