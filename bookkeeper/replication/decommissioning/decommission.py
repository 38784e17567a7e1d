"""Decommission: takes bookies out of the cluster for good, by :mod:`~bookkeeper.replication.decommissioning.drain` and
:mod:`~bookkeeper.replication.decommissioning.forget`.

    1. Every ledger is drained off the bookies, which must take no new entries.
    2. Every ledger that they held is looked at until all of its copies were seen and no mark is left.
    3. A bookie that still runs is waited for: it has to be stopped now.
    4. The bookies are forgotten, unless they have copies of deleted ledgers that can still be brought back: these are
       given up by order only.

All progress is in the metadata: a decommission that was cut short is simply begun again. Ledgers that were moved before
are then no longer known as held, but each of their moved copies was verified when it was made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.ledger_view import LedgerView
from bookkeeper.errors import BookKeeperError, MetadataFormatError, NoSuchLedgerError, in_words
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.replication.config import DecommissionConfig
from bookkeeper.replication.copying.repair import RepairContext
from bookkeeper.replication.copying.repair_lock import repair_lock
from bookkeeper.replication.copying.throttle import Throttle
from bookkeeper.replication.decommissioning.deleted_copies import deleted_copies
from bookkeeper.replication.decommissioning.drain import DrainProgress, MovedCopy, StuckLedger, drain, shares_of
from bookkeeper.replication.decommissioning.forget import forget
from bookkeeper.replication.inspection.check import incomplete_copies
from bookkeeper.replication.repairs.ledger_repair import GracePeriods, repair_ledger


class DecommissionStep(StrEnum):
    """What a decommission does now, for people."""

    DRAINS = "drains"
    CHECKS = "checks the ledgers that it held"
    AWAITS_STOP = "waits until it is stopped"
    FORGETS = "forgets"


@dataclass(slots=True)
class DecommissionProgress:
    """How far a decommission is."""

    step: DecommissionStep = DecommissionStep.DRAINS
    drain: DrainProgress = field(default_factory=DrainProgress)
    ledgers: int = 0
    """The ledgers that the bookies held, as far as is known."""
    whole: int = 0
    """How many of them were found whole."""


@dataclass(slots=True)
class DecommissionReport:
    """How a decommission ended."""

    bookies: tuple[BookieId, ...]
    moved: list[MovedCopy] = field(default_factory=list)
    recovered: list[LedgerId] = field(default_factory=list)
    """Open ledgers that were recovered and closed."""
    held: int = 0
    """How many ledgers were drained, or had a mark that names one of the bookies."""
    stuck: list[StuckLedger] = field(default_factory=list)
    """What could not be moved, and ledgers that are not whole, with the reasons."""
    running: list[BookieId] = field(default_factory=list)
    """Bookies that hold nothing any more, and still run: they have to be stopped."""
    forgotten: list[BookieId] = field(default_factory=list)
    given_up: list[LedgerId] = field(default_factory=list)
    """Deleted ledgers that can still be brought back, and whose copies on the bookies were given up."""

    @property
    def is_complete(self) -> bool:
        return set(self.forgotten) == set(self.bookies)


async def decommission(
    client: BookKeeper,
    bookies: Sequence[str],
    config: DecommissionConfig | None = None,
    on_progress: Callable[[DecommissionProgress], None] = lambda progress: None,
    on_reason: Callable[[str], None] = lambda reason: None,
) -> DecommissionReport:
    """Drain bookies, wait until every ledger that they held is whole, and forget them.

    Args:
        on_progress: called when something has been done.
        on_reason: called with each new reason why a ledger holds it up: a sentence for people.

    Raises:
        IllegalOperationError: as :func:`~bookkeeper.replication.decommissioning.drain.drain` and
            :func:`~bookkeeper.replication.decommissioning.forget.forget`. What was moved stays moved.
        MetadataError: the ledgers cannot be listed. What was moved until then stays moved.
    """
    return await _Decommission(client, bookies, config or DecommissionConfig(), on_progress, on_reason).run()


class _Decommission:
    def __init__(
        self,
        client: BookKeeper,
        bookies: Sequence[str],
        config: DecommissionConfig,
        on_progress: Callable[[DecommissionProgress], None],
        on_reason: Callable[[str], None],
    ) -> None:
        self._client = client
        self._metadata = client.metadata_store
        self._names = tuple(dict.fromkeys(map(BookieId, bookies)))
        self._config = config
        self._on_progress = on_progress
        self._on_reason = on_reason
        self._said: set[str] = set()
        self._progress = DecommissionProgress()
        self._report = DecommissionReport(self._names)
        self._looked = False
        """Whether it is known which ledgers the bookies held when this began."""
        self._held: set[LedgerId] = set()
        self._whole: set[LedgerId] = set()
        self._context = RepairContext(
            services=client.services,
            config=config.drain.copy,
            throttle=Throttle(config.drain.bytes_per_s),
            locked=True,
        )

    async def run(self) -> DecommissionReport:
        report = self._report
        while True:
            if not await self._repeat_until(self._drain, DecommissionStep.DRAINS):
                return report
            if not await self._repeat_until(self._check, DecommissionStep.CHECKS):
                return report
            if not await self._registered():
                break
            # a bookie that was writable until it stopped may have been given new ledgers: once more from the beginning
            if not await self._repeat_until(self._is_stopped, DecommissionStep.AWAITS_STOP):
                return report
        self._enter(DecommissionStep.FORGETS)
        give_up = self._config.give_up_deleted
        if not give_up and (deleted := await deleted_copies(self._client, self._names)):
            self._mark_stuck([StuckLedger(each.ledger_id, each.reason) for each in deleted])
            return report
        done = await forget(self._client, self._names, give_up_deleted=give_up)
        report.forgotten, report.given_up = done.removed, done.given_up
        return report

    async def _repeat_until(self, done: Callable[[], Coroutine[Any, Any, bool]], step: DecommissionStep) -> bool:
        """Repeat until it is done; False if nothing has changed for ``wait_s``."""
        self._enter(step)
        loop = asyncio.get_running_loop()
        seen, since = self._state(), loop.time()
        while not await done():
            if self._state() != seen:
                seen, since = self._state(), loop.time()
            if loop.time() - since >= self._config.wait_s:
                return False
            await asyncio.sleep(min(self._config.poll_s, self._config.wait_s))
        return True

    def _state(self) -> tuple[int, ...]:
        """What grows with every progress."""
        report = self._report
        return len(report.moved), len(report.recovered), len(self._whole)

    def _enter(self, step: DecommissionStep) -> None:
        self._progress.step = step
        self._on_progress(self._progress)

    def _mark_stuck(self, stuck: Collection[StuckLedger]) -> None:
        self._report.stuck = sorted(stuck, key=lambda each: each.ledger_id)
        for each in self._report.stuck:
            if (reason := str(each)) not in self._said:
                self._said.add(reason)
                self._on_reason(reason)

    # -- the steps ------------------------------------------------------------------------------------------

    async def _drain(self) -> bool:
        report = self._report
        if not self._looked:
            await self._find_held()
        drained = await drain(self._client, self._names, self._config.drain, self._drained)
        report.moved += drained.moved
        report.recovered += drained.recovered
        self._held |= {moved.ledger_id for moved in drained.moved} | set(drained.recovered)
        report.held = self._progress.ledgers = len(self._held)
        self._whole -= {moved.ledger_id for moved in drained.moved}
        self._mark_stuck(drained.stuck)
        return drained.is_complete

    def _drained(self, progress: DrainProgress) -> None:
        self._progress.drain = progress
        self._on_progress(self._progress)

    async def _find_held(self) -> None:
        shares, _ = await shares_of(self._client, self._names)
        self._held |= {share.ledger_id for share in shares}
        marks = self._metadata.under_replication
        async for ledger_id in marks.ledgers():
            try:
                mark = await marks.read(ledger_id)
            except MetadataFormatError:  # it may name anybody; the drain knows by the ledger's metadata
                continue
            if mark is not None and set(mark.bookies) & set(self._names):
                self._held.add(ledger_id)
        self._looked = True
        self._report.held = self._progress.ledgers = len(self._held)

    async def _check(self) -> bool:
        waiting, stuck = sorted(self._held - self._whole), list[StuckLedger]()

        async def work() -> None:
            while waiting:
                ledger_id = waiting.pop(0)
                if reason := await self._incomplete_reason(ledger_id):
                    stuck.append(StuckLedger(ledger_id, reason))
                    continue
                self._whole.add(ledger_id)
                self._progress.whole = len(self._whole)
                self._on_progress(self._progress)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(self._config.drain.parallel, len(waiting))):
                group.create_task(work())
        self._mark_stuck(stuck)
        return not stuck

    async def _incomplete_reason(self, ledger_id: LedgerId) -> str:
        """Complete what bookies that are here lack, and remove the mark. Returns "" if the ledger is whole."""
        try:
            record = await LedgerView.read(self._metadata.ledgers, ledger_id)
            mark = await self._metadata.under_replication.read(ledger_id)
            if mark is None and not await incomplete_copies(self._context, record):
                return ""
            async with repair_lock(self._metadata, ledger_id, self._config.drain.owner) as holder:
                if holder is not None:
                    return f"{holder} repairs it now and holds its lock"
                mark = await self._metadata.under_replication.read(ledger_id)
                repair = await repair_ledger(self._context, ledger_id, GracePeriods(0.0), mark, replace_gone=False)
        except NoSuchLedgerError:
            return ""
        except BookKeeperError as error:
            return in_words(error)
        return "" if repair.whole else repair.reason

    async def _registered(self) -> list[BookieId]:
        up = await self._metadata.bookies.registered()
        self._report.running = [name for name in self._names if name in up]
        return self._report.running

    async def _is_stopped(self) -> bool:
        return not await self._registered()
