"""Makes one ledger whole again: what a repair worker does for each marked ledger, and ``bk ledger repair`` once.

    1. Copies whose bookies are gone are made again on other bookies.
    2. A ledger that is not closed, and whose last fragment names a bookie that is gone, is left to its writer for a
       grace period, and then recovered.
    3. What bookies that are here lack is copied to them, or, if they cannot take it, to another bookie.
    4. What bookies hold that the mark names is read back, and copied anew where it is damaged.
    5. If the mark names nobody, or there is none, copies that all stand in one rack are moved apart, as far as there
       are racks.
    6. Only when every copy was seen as the metadata are stored now, the mark goes.

Everything is looked at anew each time: a repair that was cut short is simply begun again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from bookkeeper.client.ledger_view import LedgerView
from bookkeeper.client.ledgers.ledger_recovery import recover
from bookkeeper.errors import BookKeeperError, DataUnknownError, NoSuchLedgerError, in_words
from bookkeeper.ids import BookieId, EntryId, LedgerId
from bookkeeper.ledger import LedgerState
from bookkeeper.meta.records.under_replication import UnderReplicationMark
from bookkeeper.replication.copying.copies import Copy, copies_of
from bookkeeper.replication.copying.fragment import CopyOutcome
from bookkeeper.replication.copying.repair import RepairContext, RepairResult, copy_fragment, digest_of
from bookkeeper.replication.copying.replace import replace_copy
from bookkeeper.replication.inspection.check import IncompleteCopy, incomplete_copies

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class GracePeriods:
    """How long ledgers that are not closed are left to their writers. Pure.

    A grace period begins when the ledger's last fragment is first seen to name a bookie that is gone. A writer that
    goes on replaces the bookie, and so begins another fragment with a grace period of its own.
    """

    grace_s: float
    since: dict[LedgerId, tuple[EntryId, float]] = field(default_factory=dict)
    """The last fragment's first entry, and when its grace period began."""

    def end(self, ledger_id: LedgerId, first_entry: EntryId, now: float) -> float:
        """When the grace period of this fragment ends."""
        known = self.since.get(ledger_id)
        if known is None or known[0] != first_entry:
            known = self.since[ledger_id] = (first_entry, now)
        return known[1] + self.grace_s

    def forget(self, ledger_id: LedgerId) -> None:
        """Nothing of this ledger is waited for any more."""
        self.since.pop(ledger_id, None)


@dataclass(slots=True)
class LedgerRepair:
    """How the repair of a ledger went."""

    ledger_id: LedgerId
    whole: bool = False
    """Every copy was seen, and the mark, if there was one, is gone."""
    deleted: bool = False
    recovered: bool = False
    """The ledger was not closed, and was recovered."""
    copied: list[RepairResult] = field(default_factory=list)
    """The copies that were made or completed."""
    problems: list[str] = field(default_factory=list)
    """Why it is not whole: sentences for people."""
    until: float | None = None
    """When the one reason that is left ends (a grace period), in the loop's time; None: not known."""

    @property
    def reason(self) -> str:
        return "; ".join(self.problems)


async def repair_ledger(
    context: RepairContext,
    ledger_id: LedgerId,
    graces: GracePeriods,
    mark: UnderReplicationMark | None = None,
    *,
    replace_gone: bool = True,
    report: Callable[[str], None] = lambda what: None,
) -> LedgerRepair:
    """Repair one ledger. The caller holds the lock of its repair.

    Args:
        mark: its mark, read before; it is removed if the ledger is whole and nobody has marked it again.
        replace_gone: without it only what bookies that are here lack is copied, and no ledger is recovered.
        report: called with what is being done: a few words for people.

    Raises: BookKeeperError: the metadata cannot be read.
    """
    return await _Repair(context, ledger_id, graces, mark, replace_gone, report).run()


class _Repair:
    def __init__(
        self,
        context: RepairContext,
        ledger_id: LedgerId,
        graces: GracePeriods,
        mark: UnderReplicationMark | None,
        replace_gone: bool,
        report: Callable[[str], None],
    ) -> None:
        self._context = context
        self._services = context.services
        self._graces = graces
        self._mark = mark
        self._replace_gone = replace_gone
        self._report = report
        self._result = LedgerRepair(ledger_id)

    async def run(self) -> LedgerRepair:
        result = self._result
        try:
            record = await LedgerView.read(self._services.metadata.ledgers, result.ledger_id)
            await self._repair(record)
        except NoSuchLedgerError:
            result.deleted = True
            result.problems.clear()
            await self._unmark()
        if result.whole:
            self._graces.forget(result.ledger_id)
        return result

    async def _repair(self, record: LedgerView) -> None:
        if self._replace_gone:
            gone = await self._gone(record)
            await self._decide(record, gone)
            await self._replace(record, gone)
            if self._result.problems:
                return
        self._report("asks the bookies what they hold")
        lacking = await incomplete_copies(self._context, record)
        if self._replace_gone:  # a bookie that does not know what it has lost is of no more use to an idle writer
            doubtful = [each for each in lacking if isinstance(each.unknown, DataUnknownError)]
            await self._decide(record, {each.copy.bookie for each in doubtful if not each.copy.is_decided})
        named = self._mark is not None and bool(self._mark.bookies)
        if doubted := self._doubted(record, lacking):
            for copy in doubted:
                await self._complete(record, copy)
            lacking = await incomplete_copies(self._context, record)
        if not lacking and not named and await self._move_apart(record):
            lacking = await incomplete_copies(self._context, record)
        if lacking:
            self._result.problems += map(str, lacking)
            return
        verified = record.versioned.version
        await record.refresh()
        if record.versioned.version != verified:
            self._result.problems.append("its metadata changed while it was verified")
            return
        await self._unmark()

    def _doubted(self, record: LedgerView, lacking: Collection[IncompleteCopy]) -> list[Copy]:
        """The copies to complete: those that lack entries, and those of bookies that the mark names. What such a bookie
        says it holds may be damaged, so all of it is read back."""
        named = set(self._mark.bookies) if self._mark is not None else set()
        unknown = {each.copy for each in lacking if each.unknown is not None}
        short = {each.copy for each in lacking if each.missing}
        spec = record.metadata.spec
        return [
            copy
            for copy in copies_of(record.metadata)
            if copy.held(spec) and copy not in unknown and (copy in short or copy.bookie in named)
        ]

    async def _gone(self, record: LedgerView) -> set[BookieId]:
        """The ledger's bookies that are not registered now."""
        return set(record.metadata.bookies) - await self._services.metadata.bookies.registered()

    async def _decide(self, record: LedgerView, gone: Collection[BookieId]) -> None:
        """Recover a ledger that is not closed if its last fragment names a bookie that is gone, after the grace."""
        metadata, loop = record.metadata, asyncio.get_running_loop()
        missing = sorted(set(metadata.last_fragment.ensemble) & set(gone))
        if metadata.is_closed or not missing:
            return
        ledger_id, state = record.ledger_id, "open" if metadata.state is LedgerState.OPEN else "in recovery"
        until = self._graces.end(ledger_id, metadata.last_fragment.first_entry, loop.time())
        if until > loop.time():
            self._result.problems.append(
                f"it is {state}, and its last fragment names {', '.join(missing)}: it is recovered if its writer has "
                f"not moved on within {self._graces.grace_s:g} s"
            )
            self._result.until = until
            return
        self._report("recovers it")
        try:
            await recover(self._services, record, digest_of(metadata))
        except BookKeeperError as error:
            self._result.problems.append(f"it cannot be recovered: {in_words(error)}")
            return
        await record.refresh()
        self._result.recovered = True
        _log.warning(
            "ledger %d was %s, and %s, which its last fragment names, is gone: it was recovered and closed. If its "
            "writer lives, its next append fails with LedgerFencedError",
            ledger_id,
            state,
            ", ".join(missing),
        )

    async def _replace(self, record: LedgerView, gone: Collection[BookieId]) -> None:
        """Make the copies of bookies that are gone again on others."""
        for bookie in sorted(gone):
            for copy in copies_of(record.metadata, bookie):
                if copy.is_decided:
                    await self._replace_one(record, copy, gone)

    async def _replace_one(self, record: LedgerView, copy: Copy, gone: Collection[BookieId]) -> None:
        self._report(f"copies {copy}")
        try:
            self._note(copy, await replace_copy(self._context, record, copy, gone))
        except NoSuchLedgerError:
            raise
        except BookKeeperError as error:
            self._result.problems.append(f"{copy}: {in_words(error)}")

    async def _move_apart(self, record: LedgerView) -> bool:
        """Move copies of fragments of which all copies of some entries stand in too few racks. Returns whether any was
        moved. What cannot be moved stays: a ledger is whole all the same, unless racks are enforced."""
        placement, watcher = self._services.placement, self._services.watcher
        moved = False
        for first_entry in [fragment.first_entry for fragment in record.metadata.fragments]:
            spec = record.metadata.spec
            for _ in range(spec.ensemble_size):
                ensemble = record.metadata.fragment_of(first_entry).ensemble
                exchange = placement.move(spec, ensemble, watcher.candidates(), avoided=watcher.quarantined())
                if exchange is None or not await self._exchange(record, first_entry, *exchange):
                    break
                moved = True
        return moved

    async def _exchange(self, record: LedgerView, first_entry: EntryId, old: BookieId, new: BookieId) -> bool:
        copies = [each for each in copies_of(record.metadata, old) if each.first_entry == first_entry]
        if not copies or not copies[0].is_decided:
            return False
        self._report(f"copies {copies[0]} to {new}, in another rack")
        copied = await copy_fragment(self._context, record, copies[0], new)
        self._note(copies[0], copied)
        await record.refresh()
        return copied.outcome is not CopyOutcome.FAILED

    async def _complete(self, record: LedgerView, copy: Copy) -> None:
        """Copy to a bookie what it lacks of its own share, and read back the rest; if it cannot take it, to another."""
        self._report(f"completes {copy}")
        copied = await copy_fragment(self._context, record, copy, copy.bookie)
        if copied.error is not None and copied.target_at_fault:
            await self._replace_one(record, copy, ())
        else:
            self._note(copy, copied)

    def _note(self, copy: Copy, copied: RepairResult) -> None:
        if copied.outcome is CopyOutcome.FAILED:
            assert copied.error is not None
            self._result.problems.append(f"{copy}: {in_words(copied.error)}")
        elif copied.entries:
            self._result.copied.append(copied)

    async def _unmark(self) -> None:
        marks, result = self._services.metadata.under_replication, self._result
        result.whole = self._mark is None or await marks.remove(self._mark)
        if not result.whole:
            result.problems.append("it was marked again meanwhile")
