"""The auditor: one process of the cluster, by election, that finds what is under-replicated and marks it.

It does four things, again and again, each from what the metadata say now:

    * lost bookies: every ledger that names one is marked (:mod:`~bookkeeper.autorecovery.lost_bookies` decides when);
    * all ledgers, in turn: what their bookies say they hold is compared with the metadata; what is missing is marked;
    * where copies stand: ledgers with entries whose copies are all in too few racks are counted, and marked if asked;
    * its name, where Apache's tools look for it.

Java's auditors and ours vote under the same nodes, so that one of them works at a time. If two do, both mark the same.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence
from typing import Final

from bookkeeper.amounts import counted
from bookkeeper.autorecovery.config import AutorecoveryConfig
from bookkeeper.autorecovery.lost_bookies import LostBookies
from bookkeeper.autorecovery.wakeup import Wakeup
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.ledger_view import LedgerView
from bookkeeper.client.operators import Operator
from bookkeeper.errors import BookKeeperError, DataUnknownError, NoSuchLedgerError, in_words
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.meta.records.autorecovery import AutorecoveryNodes, ClusterCheck, Vote
from bookkeeper.metrics import Summary
from bookkeeper.replication.copying import RepairContext
from bookkeeper.replication.inspection.check import IncompleteCopy, incomplete_copies

_log = logging.getLogger(__name__)

CLOCKS_APART_MS: Final = 600_000
"""Clocks of two auditors may differ by so much. A check that was completed later than this from now was noted by a
clock that was wrong, and is made again: until that time comes there would be none."""


class Auditor:
    """Audits while it is elected, until it is cancelled."""

    def __init__(self, client: BookKeeper, records: AutorecoveryNodes, name: str, config: AutorecoveryConfig) -> None:
        services = client.services
        self._services = services
        self._operator = Operator(client)
        self._metadata = services.metadata
        self._clock = services.seams.clock
        self._records = records
        self._name = name
        self._config = config
        self._lost = LostBookies(config.mass_loss_share, config.bookies_interval_s)
        self._context = RepairContext(services=services)
        self._vote: Vote | None = None
        self._delay_version: int | None = None
        """The write of the delay that was seen last; another one is a request to look at once."""
        self._look_again_at: float | None = None
        self._check: asyncio.Task[None] | None = None
        """The check of all ledgers, which takes long: lost bookies are looked for beside it."""
        self.placed = ""
        """What the last check of placement has found; empty: all is well, or none was made."""
        self.marked = Summary()
        """How many ledgers were marked, each time that those of lost bookies were."""
        self.elected = False
        self.doing = "it has not begun"
        """What it does, or why it does nothing: a sentence for people."""
        self.checking = ""
        """How far the check of all ledgers is; empty if this process has begun none."""
        self.wakeup = Wakeup()
        self.on_marked = Wakeup().ring
        """Called when ledgers were marked; set by whoever runs a worker beside it."""

    @property
    def lost_bookies(self) -> int:
        """How many bookies are lost now, as the auditor sees it; 0 while another process audits."""
        return len(self._lost.since) if self.elected else 0

    async def run(self) -> None:
        """Audit until cancelled; then the vote is withdrawn."""
        bookies = self._metadata.bookies
        watches = [*self._records.watch(self.wakeup.ring), bookies.watch(self.wakeup.ring)]
        try:
            while True:
                await self._turn()
                await self.wakeup.wait(self._pause())
        finally:
            for watch in watches:
                watch.close()
            await self._stop_check()
            if self._vote is not None:
                try:
                    await self._records.withdraw(self._vote)
                except BookKeeperError as error:
                    _log.info("the auditor's vote stays until the session ends (%s)", in_words(error))

    def _pause(self) -> float:
        left = self._config.poll_s
        if self.elected and self._look_again_at is not None:
            left = min(left, self._look_again_at - asyncio.get_running_loop().time())
        return max(left, 0.05)

    async def _turn(self) -> None:
        self._look_again_at = None
        try:
            if not await self._is_elected():
                await self._stop_check()
                return
            if not await self._records.is_enabled():
                await self._stop_check()
                self.doing = "autorecovery is disabled for this cluster (`bk autorecovery enable` switches it on)"
                return
            await self._audit_bookies()
            if self._check is None and (due := [check for check in ClusterCheck if await self._is_due(check)]):
                self._check = asyncio.get_running_loop().create_task(
                    self._check_ledgers(due), name="check of all ledgers"
                )
        except BookKeeperError as error:
            said = f"the audit could not be done ({in_words(error)}): it is tried again"
            if self.doing != said:
                _log.warning(said)
            self.doing = said
        except Exception as error:  # one exception never ends the loop
            _log.exception("the audit ended unexpectedly: it is tried again")
            self.doing = f"the audit ended unexpectedly ({in_words(error)}): it is tried again"

    # -- election -----------------------------------------------------------------------------------------

    async def _is_elected(self) -> bool:
        votes = await self._records.votes()
        if self._vote is None or self._vote not in votes:  # the session has ended, and the vote with it
            self._vote = await self._records.cast(self._name)
            votes = await self._records.votes()
        elected = bool(votes) and votes[0] == self._vote
        if elected and not self.elected:
            await self._records.announce(self._name)
            self._delay_version = await self._records.delay_version()
            _log.info("%s is the auditor of this cluster now", self._name)
        self.elected = elected
        if not elected:
            self.doing = f"{await self._records.auditor() or 'another process'} is the auditor"
        return elected

    # -- lost bookies -------------------------------------------------------------------------------------

    async def _audit_bookies(self) -> None:
        version = await self._records.delay_version()
        if version != self._delay_version:
            self._delay_version = version
            self._lost.on_request()
        delay = await self._records.delay_s()
        delay = self._config.lost_bookie_delay_s if delay is None else delay
        bookies, loop = self._metadata.bookies, asyncio.get_running_loop()
        known = await bookies.known()
        available = await bookies.registered()
        plan = self._lost.on_listed(known, available, delay, loop.time())
        self._look_again_at = plan.look_again_at
        said = plan.waits or (
            f"lost: {', '.join(self._lost.since)}; their ledgers were marked for repair"
            if self._lost.since
            else ("the bookie is here" if len(available) == 1 else f"all {counted(len(available), 'bookie')} are here")
        )
        if plan.waits and said != self.doing:
            _log.warning("%s", said)
        self.doing = said
        if plan.mark:
            self.doing = f"marks the ledgers of {', '.join(sorted(plan.mark))}"
            count = await self._mark_ledgers_of(plan.mark)
            self._lost.on_marked(plan.mark, loop.time())
            self.marked.observe(count)
            _log.warning(
                "%s %s lost: of the ledgers that name %s, marked for repair: %d",
                ", ".join(sorted(plan.mark)),
                "is" if len(plan.mark) == 1 else "are",
                "it" if len(plan.mark) == 1 else "them",
                count,
            )
        elif self._lost.requested:
            self._lost.on_marked((), loop.time())

    async def _mark_ledgers_of(self, lost: Collection[BookieId]) -> int:
        """Mark every ledger that names one of ``lost``. Returns how many."""
        count = 0
        async for ledger_id, found in self._operator.all_metadata():
            if isinstance(found, BookKeeperError):
                _log.warning("the metadata of ledger %d cannot be read: %s", ledger_id, in_words(found))
                continue
            if named := sorted(found.bookies & set(lost)):
                await self._mark(ledger_id, named)
                count += 1
        return count

    async def _mark(self, ledger_id: LedgerId, bookies: list[BookieId]) -> None:
        await self._metadata.under_replication.mark(ledger_id, bookies, self._clock.wall_ms())
        self.on_marked()

    # -- all ledgers, in turn ------------------------------------------------------------------------------

    async def _is_due(self, check: ClusterCheck) -> bool:
        config = self._config
        if check is ClusterCheck.PLACEMENT and self._services.config.placement == "random":
            return False
        interval_s = config.placement_interval_s if check is ClusterCheck.PLACEMENT else config.ledgers_interval_s
        if interval_s <= 0:
            return False
        last = await self._records.last_check(check)
        if last is None:
            return True
        age_ms = self._clock.wall_ms() - last
        return age_ms >= 1000 * interval_s or age_ms < -CLOCKS_APART_MS

    async def _check_ledgers(self, due: Sequence[ClusterCheck]) -> None:
        """Check every copy of every ledger. What is cut short is begun anew."""
        try:
            if ClusterCheck.PLACEMENT in due:
                await self._check_placement()
            if set(due) - {ClusterCheck.PLACEMENT}:
                await self._pass()
            for check in due:
                await self._records.record_check(check, self._clock.wall_ms())
        except BookKeeperError as error:
            _log.warning("the check of all ledgers was cut short (%s): it is begun anew", in_words(error))
            self.checking = f"the last check was cut short: {in_words(error)}"
        finally:
            self._check = None

    async def _check_placement(self) -> None:
        """Count the closed ledgers of which all copies of some entries stand in too few racks, and mark them if that is
        wanted: a mark that names nobody, as Apache's."""
        placement, found = self._services.placement, 0
        async for ledger_id, metadata in self._operator.all_metadata():
            if isinstance(metadata, BookKeeperError) or not metadata.is_closed:
                continue
            lacks = [placement.shortfall(metadata.spec, fragment.ensemble) for fragment in metadata.fragments]
            if any(lacks):
                found += 1
                if self._config.repair_placement:
                    await self._mark(ledger_id, [])
        marked = "; they are marked, and moved apart as far as there are racks" if self._config.repair_placement else ""
        said = (
            f"{counted(found, 'closed ledger', 'has', 'have')} entries whose copies all stand in too few racks{marked}"
        )
        if found and self.placed != said:
            _log.warning("%s", said)
        self.placed = said if found else ""

    async def _pass(self) -> None:
        loop, rate, began = (
            asyncio.get_running_loop(),
            self._config.check_ledgers_per_s,
            asyncio.get_running_loop().time(),
        )
        bookies = self._metadata.bookies
        there = {*await bookies.known(), *await bookies.registered()}
        seen, short, unknown = 0, 0, 0
        async for ledger_id in self._metadata.ledgers.list():
            lacking = await self._check_one(ledger_id, there)
            seen, short, unknown = seen + 1, short + (lacking is True), unknown + (lacking is None)
            self.checking = (
                f"{counted(seen, 'ledger', 'was', 'were')} checked: "
                f"{counted(short, 'ledger', 'lacks', 'lack')} copies, "
                f"of {unknown} it is not known"
            )
            if rate and (ahead := began + seen / rate - loop.time()) > 0:
                await asyncio.sleep(ahead)
        _log.info("all ledgers were checked: %s", self.checking or "there is none")

    async def _stop_check(self) -> None:
        if self._check is not None:
            self._check.cancel()
            await asyncio.gather(self._check, return_exceptions=True)
            self._check = None

    async def _check_one(self, ledger_id: LedgerId, there: Collection[BookieId]) -> bool | None:
        """Whether a ledger lacks copies, and is marked now; None: it is not known.

        ``there``: all bookies of the cluster; what one that was forgotten holds is lost.
        """
        try:
            record = await LedgerView.read(self._metadata.ledgers, ledger_id, fresh=False)
            lacking = await incomplete_copies(self._context, record, sample_percent=self._config.sample_percent)
        except NoSuchLedgerError:
            return False
        except BookKeeperError as error:
            _log.info("ledger %d could not be checked: %s", ledger_id, in_words(error))
            return None
        short = sorted({each.copy.bookie for each in lacking if _is_short(each, there)})
        if short:
            await self._mark(ledger_id, short)
            return True
        return None if lacking else False


def _is_short(copy: IncompleteCopy, there: Collection[BookieId]) -> bool:
    """Whether a copy has to be repaired. What a bookie does not know of itself counts: while the ledger is open nobody
    completes it."""
    return copy.missing > 0 or isinstance(copy.unknown, DataUnknownError) or copy.copy.bookie not in there
