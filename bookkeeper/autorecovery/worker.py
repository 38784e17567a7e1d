"""A repair worker: takes marked ledgers, one after the other and some at a time, and makes them whole.

The worker lists the marks again and again, chooses by :mod:`~bookkeeper.autorecovery.repair_queue`, holds the
ledger's lock while it repairs (:mod:`bookkeeper.replication.repairs.ledger_repair`), and keeps the reason of every
ledger that it could not repair. Safety rests on compare-and-set, not on the locks: Java's workers may run beside it.
"""

from __future__ import annotations

import asyncio
import logging

from bookkeeper.amounts import counted
from bookkeeper.autorecovery.config import AutorecoveryConfig
from bookkeeper.autorecovery.repair_queue import RepairQueue
from bookkeeper.autorecovery.report import STUCK_MAX, AutorecoveryReport, StuckRepair
from bookkeeper.autorecovery.wakeup import Wakeup
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.errors import BookKeeperError, in_words
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.meta.records.autorecovery import AutorecoveryNodes
from bookkeeper.replication.copying import RepairContext, Throttle, repair_lock
from bookkeeper.replication.repairs import GracePeriods, LedgerRepair, repair_ledger

_log = logging.getLogger(__name__)


class RepairWorker:
    """Repairs marked ledgers until it is cancelled."""

    def __init__(self, client: BookKeeper, records: AutorecoveryNodes, name: str, config: AutorecoveryConfig) -> None:
        services = client.services
        self._metadata = services.metadata
        self._clock = services.seams.clock
        self._records = records
        self._name = name
        self._config = config
        self._queue = RepairQueue(config.backoff_s, config.backoff_max_s, services.seams.rng)
        self._graces = GracePeriods(config.grace_ms / 1000)
        self._context = RepairContext(
            services=services,
            config=config.copy,
            throttle=Throttle(config.bytes_per_s),
            on_copied=self._on_copied,
            locked=True,
        )
        self._doing: dict[LedgerId, str] = {}
        self._tasks: dict[LedgerId, asyncio.Task[None]] = {}
        self._bookies: frozenset[BookieId] = frozenset()
        """Who was registered when that was looked at last."""
        self._bookies_known = False
        self._away = ""
        """Why the marks cannot be listed; empty if they can."""
        self._list_at = 0.0
        """When the marks are listed again though ledgers of the last list are ready."""
        self._repaired = 0
        self._recovered = 0
        self._entries = 0
        self._bytes = 0
        self.wakeup = Wakeup()
        """Rung by whoever knows of new marks, or of a bookie that came back."""

    def _on_copied(self, entries: int, size: int) -> None:
        self._entries += entries
        self._bytes += size

    def retry_stuck(self) -> None:
        """Bookies may have come or gone: if some have come, try every stuck ledger again now."""
        self._bookies_known = False
        self.wakeup.ring()

    async def _note_returned_bookies(self) -> None:
        here = frozenset(await self._metadata.bookies.registered())
        if here - self._bookies:
            self._queue.retry_now(asyncio.get_running_loop().time())
        self._bookies, self._bookies_known = here, True

    async def run(self) -> None:
        """Repair until cancelled."""
        watch = self._records.watch_marks(self.wakeup.ring)
        try:
            while True:
                may_work = await self._turn()
                await self.wakeup.wait(self._pause() if may_work else self._config.poll_s)
        finally:
            watch.close()
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _pause(self) -> float:
        due = self._queue.next_due() if len(self._tasks) < self._config.parallel else None
        left = due - asyncio.get_running_loop().time() if due is not None else self._config.poll_s
        return min(max(left, 0.001), self._config.poll_s)

    async def _turn(self) -> bool:
        """Begin what is ready. List the marks before, if that was long ago or nothing is ready. False: nothing may be
        repaired now."""
        loop = asyncio.get_running_loop()
        due = self._queue.next_due()
        if (due is None or due > loop.time() or loop.time() >= self._list_at) and not await self._list():
            return False
        while len(self._tasks) < self._config.parallel and (ledger := self._queue.take(loop.time())) is not None:
            self._tasks[ledger] = loop.create_task(self._one(ledger), name=f"repair of ledger {ledger}")
        return True

    async def _list(self) -> bool:
        """List the marks. Returns False if nothing may be repaired now."""
        loop = asyncio.get_running_loop()
        try:
            if not await self._records.is_enabled():
                return False
            if not self._bookies_known:
                await self._note_returned_bookies()
            marked = [ledger async for ledger in self._metadata.under_replication.ledgers()]
        except BookKeeperError as error:
            if not self._away:
                _log.warning(
                    "the list of under-replicated ledgers cannot be read (%s): it is tried again", in_words(error)
                )
            self._away = f"the list of under-replicated ledgers cannot be read: {in_words(error)}"
            return False
        self._away = ""
        self._list_at = loop.time() + self._config.poll_s
        self._queue.on_listed(marked, loop.time())
        return True

    async def _one(self, ledger_id: LedgerId) -> None:
        """Repair one ledger. Whatever happens, the others go on."""
        loop = asyncio.get_running_loop()
        self._doing[ledger_id] = "takes its lock"
        try:
            async with repair_lock(self._metadata, ledger_id, self._name) as holder:
                repair = await self._repair(ledger_id) if holder is None else None
            if repair is not None:  # now, with the lock gone: a list from before would have it taken once more
                self._settle(repair)
            else:
                self._queue.on_busy(ledger_id, holder or "", loop.time())
        except BookKeeperError as error:
            self._fail(ledger_id, in_words(error))
        except Exception as error:  # unexpected, and logged as such; this ledger waits, the others go on
            _log.exception("the repair of ledger %d ended unexpectedly", ledger_id)
            self._fail(ledger_id, f"the repair ended unexpectedly: {in_words(error)}")
        finally:
            del self._doing[ledger_id], self._tasks[ledger_id]
            self.wakeup.ring()

    async def _repair(self, ledger_id: LedgerId) -> LedgerRepair:
        mark = await self._metadata.under_replication.read(ledger_id)
        if mark is None:  # somebody else has repaired it
            self._graces.forget(ledger_id)
            return LedgerRepair(ledger_id, whole=True)

        def report(what: str) -> None:
            self._doing[ledger_id] = what

        return await repair_ledger(self._context, ledger_id, self._graces, mark, report=report)

    def _settle(self, repair: LedgerRepair) -> None:
        self._recovered += repair.recovered
        if not repair.whole:
            self._fail(repair.ledger_id, repair.reason, repair.until if len(repair.problems) == 1 else None)
            return
        self._queue.on_repaired(repair.ledger_id)
        self._repaired += bool(repair.copied or repair.recovered)
        if repair.copied or repair.recovered:
            _log.info(
                "ledger %d is whole again: %s copied to %s",
                repair.ledger_id,
                counted(sum(copied.entries for copied in repair.copied), "entry", "was", "were"),
                ", ".join(sorted({copied.target for copied in repair.copied})) or "no bookie",
            )

    def _fail(self, ledger_id: LedgerId, reason: str, until: float | None = None) -> None:
        known = self._queue.taken[ledger_id].reason
        self._queue.on_failed(ledger_id, reason, asyncio.get_running_loop().time(), until)
        if reason != known:
            _log.warning("ledger %d is not whole yet: %s", ledger_id, reason)

    def report(self, name: str) -> AutorecoveryReport:
        """What it does, and what it cannot do."""
        loop, wall = asyncio.get_running_loop(), self._clock.wall_ms()
        stuck = list(self._queue.stuck())
        return AutorecoveryReport(
            name,
            working=tuple(f"ledger {ledger}: {what}" for ledger, what in sorted(self._doing.items()))
            + ((self._away,) if self._away else ()),
            repaired=self._repaired,
            recovered=self._recovered,
            copied_entries=self._entries,
            copied_bytes=self._bytes,
            waiting=len(self._queue.waiting),
            stuck=tuple(
                StuckRepair(ledger, each.reason, each.tries, wall - int(1000 * (loop.time() - each.since)))
                for ledger, each in stuck[:STUCK_MAX]
            ),
            stuck_count=len(stuck),
            updated_ms=wall,
        )
