"""The cluster that one seed simulates: processes that end and come back, each with its session, all watched.

A *process* is a node with a program. When its program ends, as a bookie's does whose disk failed, something like
an init system starts it again a moment later; crashes are the faults' business.
"""

from __future__ import annotations

import asyncio
import contextvars
import re
from collections import Counter
from collections.abc import Callable, Collection, Coroutine
from dataclasses import replace
from random import Random
from typing import Any, Final

from bookkeeper.bookie.config import BookieConfig
from bookkeeper.bookie.identity.progress_publisher import ProgressPublisher
from bookkeeper.bookie.lifecycle import BookieServer
from bookkeeper.bookie.start.bookie_start import BookieStart
from bookkeeper.client.write.write_handle import WriteHandle
from bookkeeper.errors import BookKeeperError, CookieError, InvariantError
from bookkeeper.ids import LedgerId
from bookkeeper.ledger import LedgerMetadata
from bookkeeper.meta import Metadata
from bookkeeper.meta.records import ledger_format
from bookkeeper.meta.records.deleted_ledgers import decode
from bookkeeper.meta.records.disks import DISKS, DiskProgress
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.stores.memory import MemorySnapshot, MemoryStore
from bookkeeper.meta.stores.tree import Tree, TreeNode
from bookkeeper.seams import Seams
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.testing.cluster import SESSION_TIMEOUT_S, SimCluster, WitnessedStore, bookie_config
from bookkeeper.testing.world import Node
from bookkeeper.volumes import MappedVolumes, Volumes
from tests.simulation.plan import WorldPlan
from tests.simulation.users.litter import Litter
from tests.simulation.users.volume_operator import PLACES, DiskOperator
from tests.simulation.watch.deletions import deleted_ledger
from tests.simulation.watch.history import History
from tests.simulation.watch.monitor import Monitor
from tests.simulation.watch.rack_watch import RackWatch

RESTART_S: Final = 1.0
"""How soon a process whose program ended is started again."""


class _WatchedStore(WitnessedStore):
    """Notes what happens to ledgers; what is illegal becomes a problem, and is done all the same."""

    def __init__(self, wall_ms: Callable[[], int], monitor: Monitor) -> None:
        super().__init__(wall_ms)
        self._monitor, self._now_ms = monitor, wall_ms
        self.paths: dict[int, str] = {}
        """Ledger -> where its metadata is."""
        self.resting = False

    def trust(self) -> None:
        """What there is now is where every ledger goes on from."""
        now = self.dump()
        for path in list(self.seen):
            if path in now:
                self.seen[path] = ledger_format.decode(now[path].value)
            else:
                del self.seen[path]
        self.resting = False

    def _witness(self, path: str) -> None:
        if self.resting:
            return
        if (deleted := deleted_ledger(path)) is not None:
            self._on_record(deleted, path)
            return
        old = self.seen.get(path)
        try:
            super()._witness(path)
        except (AssertionError, InvariantError) as error:
            self._monitor.problem("metadata", error)
        new = self.seen.get(path)
        if new is None:
            return
        ledger = int(re.sub(r"\D", "", path))
        if self._monitor.racks is not None and new is not old:
            self._monitor.racks.on_metadata(ledger, new)
        if old is None:
            self.paths[ledger] = path
            self._monitor.count("ledgers")
        elif new is not old:
            self._monitor.on_metadata(ledger, old, new)

    def _on_record(self, ledger: int, path: str) -> None:
        def look(tree: Tree) -> tuple[TreeNode | None, bool]:
            return tree.find(path), tree.find(self.paths[ledger]) is not None

        found, is_there = self.read(look)
        record = decode(LedgerId(ledger), found.value, found.created_ms) if found is not None else None
        self._monitor.deletions.on_record(ledger, record, is_there, self._now_ms())


class _WatchedServer(BookieServer):
    """A production bookie that cannot do anything unseen."""

    def __init__(
        self, name: str, monitor: Monitor, config: BookieConfig, seams: Seams, metadata: Metadata, *, deletes: bool
    ) -> None:
        super().__init__(config, seams, metadata)
        self._begun = _WatchedStart(name, monitor, config, seams, metadata, deletes=deletes)
        self._name, self._monitor = name, monitor

    def _serve(self) -> None:
        super()._serve()
        self._monitor.watch_bookie(self._name, self.parts.bookie)


class _WatchedStart(BookieStart):
    """A production start whose disk cannot do anything unseen."""

    def __init__(
        self, name: str, monitor: Monitor, config: BookieConfig, seams: Seams, metadata: Metadata, *, deletes: bool
    ) -> None:
        super().__init__(config, seams, metadata)
        self._name, self._monitor, self._deletes = name, monitor, deletes

    async def open_volumes(self, publisher: ProgressPublisher) -> Volumes:
        engine = await super().open_volumes(publisher)
        if isinstance(engine, MappedVolumes):
            self._monitor.volumes.watch(self._name, engine, self.seams.disk)
        else:
            self._monitor.watch_engine(self._name, engine)
        if self._deletes:
            self._monitor.deletions.watch(self._name, engine)
        return engine


class SwarmCluster(SimCluster):
    """See the module; made from a plan."""

    def __init__(self, plan: WorldPlan) -> None:
        super().__init__(plan.seed, plan.bookies)
        self.plan = plan
        self.racks: dict[str, str] = {}
        """Bookie -> where it stands; empty: nobody knows of racks."""
        self.monitor = Monitor(self.committed, self.disk_record)
        if plan.racks:
            enforced = plan.client.racks_enforced
            self.racks = {name: f"/rack{number % plan.racks}" for number, name in enumerate(self.names)}
            self.monitor.racks = RackWatch(self.racks, self.monitor.problem, self.monitor.count, enforced=enforced)
        self.history = History(self.world.loop.time)
        self.store: _WatchedStore = _WatchedStore(self.client.seams.clock.wall_ms, self.monitor)
        self.handles: dict[int, WriteHandle] = {}
        """Ledger -> its writer's handle, which outlives its writer here: what it had confirmed is the truth (W3)."""
        self.ledgers: list[int] = []
        """As they were made: what processes know of each other's ledgers."""
        self.calm = False
        """The quiet phase has begun: nobody starts anything new."""
        self.freezes: Counter[str] = Counter()
        """How often each node was frozen."""
        self.hunt: asyncio.Event = asyncio.Event()
        self.hunted = -1
        """The ledger that somebody has just begun to recover: others may join (R15)."""
        self.operators: dict[str, DiskOperator] = {}
        """Bookie with several ledger directories -> who looks after them."""
        self._life_of: dict[str, int] = {}
        self._litter: dict[str, asyncio.Task[None]] = {}

    # -- processes ----------------------------------------------------------------------------------------

    def launch(self, node: Node, program: Callable[[Seams], Coroutine[Any, Any, Any]]) -> None:
        """Run a program as a process that is started again when it ends."""

        async def life(seams: Seams) -> None:
            life_number = node.life
            try:
                await program(seams)
            except (BookKeeperError, OSError, TimeoutError) as error:
                self.world.trace.add(self.world.loop.time(), "ended", node.name, type(error).__name__)
            except Exception as error:
                self.monitor.problem("P7", f"{node.name} ended with {error!r}")
            outside = contextvars.Context()
            self.world.loop.call_soon(self._ended, node, life_number, context=outside)

        node.start(life)

    def _ended(self, node: Node, life: int) -> None:
        if not node.alive or node.life != life:
            return
        node.crash(power=False)
        self.world.loop.call_later(RESTART_S, self.revive, node)

    def revive(self, node: Node) -> None:
        """Start a process again, unless it runs or is gone for ever."""
        begins_anew = self.history.resting and node.name not in self.names
        if not node.alive and node.name not in self.monitor.lost and not begins_anew:
            node.restart()

    def put_back(self, backup: MemorySnapshot) -> None:
        """The store shows an older state from now on. Until :meth:`trust` nothing is judged by it, and no user comes
        who never saw the newer one."""
        self.store.resting = self.monitor.resting = self.history.resting = True
        self.store.restore(backup)

    def trust(self, ledgers: Collection[int]) -> None:
        """Somebody has accepted the older state; of these ledgers it is the same as the newer one was."""
        self.store.trust()
        self.history.trust(ledgers)
        self.monitor.resting = False

    async def add_bookie(self, name: str) -> None:
        """A new bookie process; does not wait for it."""
        if name not in self.names:
            self.names.append(name)
        if self.plan.directories:
            node = self.world.node(name, PLACES)
            self.operators.setdefault(name, DiskOperator(node, PLACES[: self.plan.directories], self.monitor))
        node = self.node(name)
        node.disk.direct = self.plan.direct
        self.launch(node, lambda seams: self._serve(name, seams))

    async def _serve(self, name: str, seams: Seams) -> str:
        metadata = await Metadata.over(self.session(self.node(name)), seams)
        config = replace(
            bookie_config(name),
            storage=StorageConfig(journal_dir="/data/journal", ledger_dir="/data/ledgers", **self.plan.storage),
            space_check_s=1.0,
            long_poll_max_s=2.0,
            location=self.racks.get(name),
            ledger_dirs=tuple(self.operators[name].configured) if name in self.operators else (),
            **self.plan.bookie,
        )
        deletes = self.plan.undeleters > 0
        server = _WatchedServer(name, self.monitor, config, seams, metadata, deletes=deletes)
        self.servers[name], self._life_of[name] = server, self.node(name).life
        try:
            await server.start()
        except CookieError:
            if name in self.operators:
                self.operators[name].on_refused()
            raise
        if self.plan.litter:
            rng = Random(f"{self.plan.seed}/{name}/{server.boot}")
            litter = Litter(self.engine_of(name), rng, self.monitor.problem, self.monitor.count)
            self._litter[name] = asyncio.create_task(litter.run())
        return await server.run_until_failure()

    def is_up(self, name: str) -> bool:
        """Does this bookie serve in its present life?"""
        node, server = self.node(name), self.servers.get(name)
        if not node.alive or server is None or self._life_of[name] != node.life or not server.is_open:
            return False
        return bool(server.health()["status"] == "ok")

    def ledgers_there(self) -> list[int]:
        """The ledgers that were made, without those that are gone for good."""
        return [ledger for ledger in self.ledgers if ledger not in self.monitor.deletions.gone]

    def committed(self, ledger: int) -> LedgerMetadata | None:
        """A ledger's metadata as the store has it now."""
        return self.store.seen.get(self.store.paths.get(ledger, ""))

    def disk_record(self, name: str) -> DiskProgress | None:
        """What a bookie has published of its disk."""
        server = self.servers.get(name)
        if server is None:
            return None
        path = Paths().own(DISKS, server.bookie_id)
        found = self.store.read(lambda tree: tree.find(path))
        return DiskProgress.decode(found.value, path) if found is not None else None

    def ledger_path(self, ledger: int) -> str:
        """Where the store keeps a ledger's metadata."""
        return self.store.paths[ledger]

    def session(self, node: Node) -> MemoryStore:
        """A new metadata session for the running process of ``node``."""
        store = super().session(node)
        node.on_crash[:] = [lambda: self._session_ends(store)]
        return store

    def _session_ends(self, store: MemoryStore) -> None:
        self.world.loop.call_later(
            SESSION_TIMEOUT_S, self.store.end_session, store.session_id, context=contextvars.Context()
        )
