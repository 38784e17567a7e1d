"""Another end of a world: while people are at work, the metadata are put back to an older state (M10, F10).

    M10  from ten seconds after that no handle of before acknowledges, delivers or tells an end, each of them has ended
         with an error, and no bookie has dropped anything; after somebody accepted the loss the bookies start again,
         and what the older metadata know as it was is readable as it was acknowledged

Until the loss is accepted nobody judges ledgers by their metadata: what the store shows is not what there was.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Sequence
from random import Random
from typing import Final

from bookkeeper.client.read.read_handle import ReadHandle
from bookkeeper.client.write.write_handle import WriteHandle
from bookkeeper.errors import BookKeeperError
from bookkeeper.ids import BookieId
from bookkeeper.meta.stores.memory import MemorySnapshot, MemoryStore
from bookkeeper.replication.losses.rollback import accept, list_held
from bookkeeper.testing.cluster import SESSION_TIMEOUT_S
from tests.simulation.cluster import SwarmCluster
from tests.simulation.quiet import recover_whole, until_bookies_serve
from tests.simulation.users.actors import Actor, Recoverer
from tests.simulation.watch.history import EventKind

NOTICED_S: Final = 10.0
"""How long whoever was there before may believe the older state."""
WATCHED_S: Final = 20.0
"""So long it is watched that nobody does."""
SETTLED_S: Final = 3.0
"""Until what the last faults have begun has come to its end, as a disk's error that a sync is about to meet."""
AWAY_S: Final = 5.0
"""Some sessions reach the store again only so long after it was put back."""
NEWER: Final = 50
"""Every session has seen at least so many changes that are lost: fewer may be hidden by those made since."""
WORK_S: Final = 120.0
"""Longest time for people to make these."""
PASS_S: Final = 2.0
"""Between two garbage passes of a bookie, and longer than the grace of simulated ones."""
EARLY_S: Final = 4.0
"""How long it is watched that a bookie does not start."""
KEEP_S: Final = 3600


class PutBack:
    """See the module.

    Args:
        backup: the state of some moment before.
    """

    def __init__(self, cluster: SwarmCluster, actors: Sequence[Actor], backup: MemorySnapshot) -> None:
        self.cluster = cluster
        self.actors = [actor for actor in actors if actor.node.alive]
        self.backup = backup
        self._rng = Random(f"{cluster.plan.seed}/put back")
        self._held: dict[str, set[int]] = {}
        """Bookie -> its ledgers when the metadata were put back."""

    async def run(self) -> None:
        """Put them back, judge, accept, judge."""
        cluster, loop = self.cluster, self.cluster.world.loop
        await asyncio.sleep(SETTLED_S)
        if not await until_bookies_serve(cluster):
            return
        await self._collect()
        if not await self._until_newer():
            return
        self._held = {name: set(cluster.servers[name].engine.ledgers()) for name in cluster.names}
        handles, same = self._open_handles(), self._unchanged()
        cluster.put_back(self.backup)
        self._forget_sessions()
        self._disturb_sessions()
        began = loop.time()
        cluster.world.trace.add(began, "metadata put back")
        passes = loop.create_task(self._collect_until(began + WATCHED_S))
        await asyncio.sleep(NOTICED_S)
        self._judge_handles(handles)
        await passes
        self._judge_events(began + NOTICED_S)
        self._judge_bookies(cluster.names)
        cluster.calm = True
        early = await self._start_early() if self._rng.random() < 0.4 else None
        if not cluster.monitor.problems:
            await self._accept(same, early)

    # -- before -------------------------------------------------------------------------------------------

    async def _until_newer(self) -> bool:
        """Wait until everybody who is there has seen what will be lost, and somebody writes."""
        for _ in range(int(WORK_S / 0.1)):
            sessions = [self._session(actor.name) for actor in self.actors]
            sessions += [self._session(name) for name in self.cluster.names]
            least = min(session.last_transaction for session in sessions)
            enough = least >= self.backup.transaction + NEWER
            if enough and self._open_writers() and all(map(self.cluster.is_up, self.cluster.names)):
                return True
            await asyncio.sleep(0.1)
        self.cluster.monitor.problem("V6", f"people make less than {NEWER} changes in {WORK_S:.0f} s, or nobody writes")
        return False

    def _session(self, name: str) -> MemoryStore:
        return self.cluster.sessions[name]

    def _open_handles(self) -> list[WriteHandle | ReadHandle]:
        clients = [actor.client for actor in self.actors if actor.client is not None]
        handles = [handle for client in clients for handle in client._handles]
        return [handle for handle in handles if not (isinstance(handle, WriteHandle) and handle.closed)]

    def _open_writers(self) -> list[WriteHandle]:
        return [handle for handle in self._open_handles() if isinstance(handle, WriteHandle)]

    def _unchanged(self) -> dict[int, bytes]:
        """Ledgers that the backup shows as they are: their metadata."""
        now = self.cluster.store.dump()
        found: dict[int, bytes] = {}
        for ledger, path in self.cluster.store.paths.items():
            before = self.backup.nodes.get(path)
            if before is not None and path in now and now[path].value == before.value:
                found[ledger] = before.value
        return found

    def _forget_sessions(self) -> None:
        """Sessions of the backup that have ended since end anew, when the store has waited for them long enough."""
        store = self.cluster.store
        owners = {node.owner for node in self.backup.nodes.values() if node.owner}

        def end(session: int) -> None:
            store.write(session, lambda transaction: transaction.end_session(session))

        for owner in sorted(owner for owner in owners if not store.is_live(owner)):
            self.cluster.world.loop.call_later(SESSION_TIMEOUT_S, end, owner, context=contextvars.Context())

    def _disturb_sessions(self) -> None:
        """The servers that were put back may not know a session, or not be reached by it for a while."""
        store = self.cluster.store
        for name in [*(actor.name for actor in self.actors), *self.cluster.names]:
            fate, session = self._rng.random(), self._session(name)
            if fate < 0.3:
                store.expire(session)
            elif fate < 0.6:
                store.suspend(session)
                self.cluster.world.loop.call_later(self._rng.uniform(0.1, AWAY_S), store.resume, session)

    # -- after --------------------------------------------------------------------------------------------

    async def _collect(self) -> None:
        """A garbage pass of every bookie."""
        for name in self.cluster.names:
            if not self.cluster.servers[name].is_open:
                continue
            try:
                await self.cluster.servers[name].collect_garbage()
                self.cluster.monitor.count("garbage passes")
            except BookKeeperError as error:
                self.cluster.monitor.count(f"garbage passes ended by {type(error).__name__}")

    async def _collect_until(self, end: float) -> None:
        while self.cluster.world.loop.time() < end:
            await self._collect()
            await asyncio.sleep(PASS_S)

    def _judge_handles(self, handles: Sequence[WriteHandle | ReadHandle]) -> None:
        monitor = self.cluster.monitor
        for actor in self.actors:
            assert actor.client is not None, "it has a session"
            why = actor.client._ended
            monitor.count(f"clients ended by {type(why).__name__}")
            if why is None:
                monitor.problem("M10", f"{actor.name} still believes metadata that were put back {NOTICED_S:.0f} s ago")
        for handle in handles:
            writes = isinstance(handle, WriteHandle)
            ended = handle._error() if isinstance(handle, WriteHandle) else handle._ended
            kind = "writer" if writes else "reader"
            monitor.count(f"{kind}s of before ended by {type(ended).__name__}")
            if ended is None and (isinstance(handle, WriteHandle) or not handle._closed):
                monitor.problem(
                    "M10", f"a {kind} of ledger {handle.id} is open {NOTICED_S:.0f} s after the metadata were put back"
                )

    def _judge_events(self, since: float) -> None:
        late = [event for event in self.cluster.history.meanwhile if event.time > since]
        for event in late:
            if event.kind in (EventKind.ACK, EventKind.READ, EventKind.CLOSED):
                self.cluster.monitor.problem(
                    "M10",
                    f"{event.process} was told {event.kind.value} {event.entry} of ledger {event.ledger} "
                    f"{event.time - since:.1f} s after metadata that were put back had to be noticed",
                )
                return

    def _judge_bookies(self, names: Sequence[str]) -> None:
        cluster = self.cluster
        for name in names:
            held = self._held[name]
            server = cluster.servers[name]
            if not server.is_open:
                cluster.monitor.problem("M10", f"{name} serves no more after the metadata were put back")
            elif lost := sorted(held - set(server.engine.ledgers())):
                cluster.monitor.problem("M10", f"{name} has dropped ledgers {lost[:5]} that older metadata do not know")

    async def _start_early(self) -> str:
        """A bookie is started again before anybody has accepted the loss: in vain, and it cannot be asked."""
        cluster = self.cluster
        name = self._rng.choice(cluster.names)
        cluster.node(name).crash()
        cluster.revive(cluster.node(name))
        cluster.monitor.count("bookies started with older metadata")
        for _ in range(int(EARLY_S / 0.1)):
            await asyncio.sleep(0.1)
            if cluster.is_up(name):
                cluster.monitor.problem("M10", f"{name} has started with older metadata, and nobody accepted them")
                break
        return name

    async def _accept(self, same: dict[int, bytes], early: str | None) -> None:
        """An operator lets the cluster go on from there, and starts the bookies again."""
        cluster = self.cluster
        without = frozenset(() if early is None else (early,))
        now = cluster.store.dump()
        kept = [
            ledger
            for ledger, value in same.items()
            if (at := now.get(cluster.store.paths[ledger])) is not None and at.value == value
        ]
        operator = await cluster.new_client(cluster.plan.client)
        where = {BookieId(name): cluster.servers[name].address for name in cluster.names}
        first = await accept(operator, await list_held(operator, where), keep_s=KEEP_S, without=without)
        if first <= max(cluster.ledgers):
            cluster.monitor.problem("M6", f"ids go on at {first}, and {max(cluster.ledgers)} was given out")
        await operator.close()
        cluster.trust(kept)
        for name in cluster.names:
            cluster.node(name).crash()
        await asyncio.sleep(SESSION_TIMEOUT_S + 1)
        for name in cluster.names:
            cluster.revive(cluster.node(name))
        if not await until_bookies_serve(cluster):
            return
        client = await cluster.new_client(cluster.plan.client)
        auditor = Recoverer(cluster, "client")
        for ledger in kept:
            cluster.monitor.count("ledgers that were put back as they were")
            await recover_whole(cluster, client, auditor, ledger)
        for _ in range(3):
            await self._collect()
            await asyncio.sleep(PASS_S)
        self._judge_bookies([name for name in cluster.names if name != early])  # nobody knows what that one held
        await client.close()
