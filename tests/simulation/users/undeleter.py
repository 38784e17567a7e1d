"""Who deletes ledgers in a simulated cluster, and brings them back: with some of them in time, with some too late."""

from __future__ import annotations

from typing import Final

from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.operators import Operator
from bookkeeper.errors import BookKeeperError, NoSuchLedgerError, RecoveryInconclusiveError
from tests.simulation.cluster import SwarmCluster
from tests.simulation.users.actors import Actor

GRACES_S: Final = (1, 2, 3, 600)
"""Grace times in seconds: most are over while garbage passes are made."""
WAITING_MAX: Final = 4
"""So many ledgers at most are deleted at a time: the others need some to read."""


class Undeleter(Actor):
    """Deletes ledgers, written to or not, and brings them back, as long as it is alive. When it is calm it sees to it
    that all are there, but for those that are gone for good."""

    kind = "undeleter"

    def __init__(self, cluster: SwarmCluster, name: str) -> None:
        super().__init__(cluster, name)
        self.asked: set[int] = set()
        """Every ledger that it ever asked to be deleted: the answer may have been lost."""
        self.waiting: set[int] = set()
        """Those of them that it has not seen back since."""

    async def work(self, client: BookKeeper) -> None:
        await self.pause(0.4)
        if len(self.waiting) < WAITING_MAX and self.rng.random() < 0.6:
            ledger = self.some_ledger()
            if ledger is not None and ledger not in self.cluster.monitor.deletions.gone:
                await self.delete(client, ledger)
        elif self.waiting:
            await self.bring_back(client, self.rng.choice(sorted(self.waiting)))

    async def delete(self, client: BookKeeper, ledger: int) -> None:
        """Delete a ledger, closed or by force."""
        self.asked.add(ledger)
        self.waiting.add(ledger)
        try:
            await client.delete_ledger(ledger, force=self.rng.random() < 0.2, grace_s=self.rng.choice(GRACES_S))
        except BookKeeperError as error:
            self.cluster.monitor.count(f"deletions ended by {type(error).__name__}")

    async def bring_back(self, client: BookKeeper, ledger: int) -> bool:
        """Bring a ledger back; whether it is known what became of it."""
        monitor = self.cluster.monitor
        try:
            await Operator(client).undelete_ledger(ledger)
        except NoSuchLedgerError:
            if ledger not in monitor.deletions.gone and not await self._is_there(client, ledger):
                return False
        except RecoveryInconclusiveError:
            monitor.count("ledgers brought back and not closed")
        except BookKeeperError as error:
            monitor.count(f"undeletions ended by {type(error).__name__}")
            return False
        self.waiting.discard(ledger)
        return True

    async def _is_there(self, client: BookKeeper, ledger: int) -> bool:
        """Whether a ledger that cannot be brought back is there. G8: it is, unless its grace was over meanwhile."""
        try:
            await client.metadata(ledger)
        except NoSuchLedgerError:
            gone = ledger in self.cluster.monitor.deletions.gone
            if not gone and self.cluster.calm:
                self.cluster.monitor.problem("G8", f"ledger {ledger} is neither there nor can it be brought back")
            return gone
        except BookKeeperError:
            return False
        return True

    async def rest(self, client: BookKeeper) -> None:
        """Whatever was asked for in an earlier life has come to its end when this one could look."""
        await self.pause(2.0)
        left = sorted(self.asked)
        while left:
            left = [ledger for ledger in left if not await self.bring_back(client, ledger)]
            await self.pause(0.3)
