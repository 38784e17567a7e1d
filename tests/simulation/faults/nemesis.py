"""What goes wrong in a simulated cluster, and how it is mended.

One method per kind of fault (names as in :data:`tests.simulation.plan.FAULTS`). Each lasts for a while;
:meth:`Nemesis.heal` ends all that are left, so that the quiet phase begins with a cluster that could work.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from random import Random
from typing import Final

from bookkeeper.errors import MetadataError, NoSuchKeyError
from bookkeeper.meta.stores.memory import Fate
from bookkeeper.storage.base.durable_file import BLOCK
from bookkeeper.storage.entry_log.entry_log_file import log_name
from bookkeeper.testing.cluster import SESSION_TIMEOUT_S
from bookkeeper.testing.world import Fault, Node, Weather
from tests.simulation.cluster import SwarmCluster
from tests.simulation.faults.damage import LEDGERS, Damage, DamageReport, DirectoryBackup, exchange, files_of
from tests.simulation.faults.volume_faults import VolumeFaults
from tests.simulation.plan import VOLUME_FAULTS

DAY_MS: Final = 86_400_000


class Nemesis:
    """Draws faults until the chaos is over."""

    def __init__(self, cluster: SwarmCluster) -> None:
        self.cluster = cluster
        self.plan = cluster.plan
        self.rng = Random(f"{cluster.plan.seed}/faults")
        self._undo: dict[int, Callable[[], None]] = {}
        self._number = 0
        self._in_trouble: dict[str, int] = {}
        self._lost = False
        self._hurt = ""
        """The bookie whose files may be damaged."""
        self._copy: DirectoryBackup | None = None
        """Its files, some time ago."""
        cluster.store.interference = Distance(Random(0))
        self._directories = VolumeFaults(cluster, self.rng, self._for_a_while, self._bookie, self._recovered)

    async def run(self) -> None:
        """Fault after fault for ``chaos_s`` seconds."""
        loop = self.cluster.world.loop
        end = loop.time() + self.plan.chaos_s
        while loop.time() < end:
            await asyncio.sleep(self.rng.expovariate(1 / self.plan.fault_pause_s))
            kind = self.rng.choice(self.plan.faults)
            who = self._directories if kind in VOLUME_FAULTS else self
            if getattr(who, kind)() is not False:
                self.cluster.world.trace.add(loop.time(), "fault", kind)
                self.cluster.monitor.count(f"fault {kind}")

    def heal(self) -> None:
        """End every fault now; start whoever is down."""
        for undo in list(self._undo.values()):
            undo()
        self._undo.clear()
        cluster = self.cluster
        cluster.world.network.mend()
        cluster.world.network.weather = Weather()
        cluster.store.interference = Distance(Random(0))
        for node in cluster.world.nodes.values():
            node.disk.faults.clear()
            cluster.revive(node)

    # -- tools --------------------------------------------------------------------------------------------

    def _for_a_while(self, undo: Callable[[], None], least_s: float, most_s: float) -> None:
        self._number += 1
        number = self._number
        self._undo[number] = undo

        def end() -> None:
            if (function := self._undo.pop(number, None)) is not None:
                function()

        self.cluster.world.loop.call_later(self.rng.uniform(least_s, most_s), end)

    def _bookie(self) -> Node | None:
        """A bookie to get into trouble, if there may be one more; :meth:`_recovered` lets it go."""
        names = [name for name in self.cluster.names if name not in self.cluster.monitor.lost]
        fine = [name for name in names if name not in self._in_trouble]
        if len(self._in_trouble) >= self.plan.down_max or not fine:
            return None
        node = self.cluster.node(self.rng.choice(fine))
        if not node.alive or node.frozen:
            return None
        self._in_trouble[node.name] = 1
        return node

    def _recovered(self, node: Node) -> None:
        self._in_trouble.pop(node.name, None)

    def _people(self) -> list[Node]:
        return [node for name, node in self.cluster.world.nodes.items() if name[0] in "wrtdu"]

    def _everyone(self) -> list[Node]:
        return [self.cluster.node(name) for name in self.cluster.names] + self._people()

    # -- network ------------------------------------------------------------------------------------------

    def slow_link(self) -> None:
        weather = self.cluster.world.network.weather
        weather.slow_share, weather.slow_s = self.rng.choice([(0.1, 0.3), (0.5, 0.05), (0.05, 1.5)])

        def undo() -> None:
            weather.slow_share, weather.slow_s = 0.01, 0.02

        self._for_a_while(undo, 0.5, 4)

    def reset(self) -> None:
        weather = self.cluster.world.network.weather
        weather.reset_share = self.rng.choice([0.005, 0.05])

        def undo() -> None:
            weather.reset_share = 0.0

        self._for_a_while(undo, 0.2, 3)

    def partition(self) -> None:
        """Some cannot talk to some others: a split, or one node that is alone with a few."""
        names = [node.name for node in self._everyone()]
        side = set(self.rng.sample(names, self.rng.randint(1, max(1, len(names) // 2))))
        links = [(a, b) for a in names for b in names if a in side and b not in side]
        if self.rng.random() < 0.5:
            links = self.rng.sample(links, self.rng.randint(1, len(links)))
        self._cut(links, both=True)

    def one_way(self) -> None:
        one, other = self.rng.sample([node.name for node in self._everyone()], 2)
        self._cut([(one, other)], both=False)

    def _cut(self, links: list[tuple[str, str]], *, both: bool) -> None:
        network = self.cluster.world.network
        for one, other in links:
            network.cut(one, other, both=both)

        def undo() -> None:
            for one, other in links:
                network.mend(one, other)

        self._for_a_while(undo, 0.1, 5)

    # -- machines -----------------------------------------------------------------------------------------

    def crash(self) -> bool:
        if self.plan.down_max == self.plan.bookies and self.rng.random() < 0.15:
            return self._blackout()
        node = self._bookie()
        if node is None:
            return False
        node.crash()
        self._restart_later(node)
        return True

    def _blackout(self) -> bool:
        """Power is lost everywhere (F2)."""
        for name in self.cluster.names:
            node = self.cluster.node(name)
            if node.alive:
                node.crash(power=True)
                self._restart_later(node)
        return True

    def _restart_later(self, node: Node) -> None:
        def undo() -> None:
            self._recovered(node)
            self.cluster.revive(node)

        self._for_a_while(undo, 0.05, 5)

    def client_crash(self) -> bool:
        running = [node for node in self._people() if node.alive]
        if not running:
            return False
        node = self.rng.choice(running)
        node.crash(power=False)
        self.cluster.monitor.count("client crashes")
        self._restart_later(node)
        return True

    def freeze(self) -> bool:
        """A process stops, with all it believes; if it takes long its session ends meanwhile (F5)."""
        node = self._bookie() if self.rng.random() < 0.6 else self.rng.choice(self._people())
        if node is None or not node.alive or node.frozen:
            return False
        life, loop = node.life, self.cluster.world.loop
        session, store = self.cluster.sessions.get(node.name), self.cluster.store
        node.freeze()
        self.cluster.freezes[node.name] += 1
        if session is not None:
            store.suspend(session)
            loop.call_later(SESSION_TIMEOUT_S, lambda: self._session_ends(node, life))

        def undo() -> None:
            self._recovered(node)
            if node.life == life and node.frozen:
                node.thaw()
                if session is not None and not store.outage:
                    store.resume(session)

        self._for_a_while(undo, 0.05, 6)
        return True

    def _session_ends(self, node: Node, life: int) -> None:
        if node.life == life and node.frozen:
            self.cluster.store.end_session(self.cluster.sessions[node.name].session_id)

    def clock(self) -> None:
        node = self.rng.choice(self._everyone())
        node.clock.wall_offset_ms = self.rng.randint(-10 * DAY_MS, 10 * DAY_MS)

    # -- disks --------------------------------------------------------------------------------------------

    def disk_full(self) -> bool:
        node = self._bookie()
        if node is None:
            return False
        disk = node.disk
        disk.capacity = disk.used() + self.rng.choice([0, 4096, 40_000])

        def undo() -> None:
            disk.capacity = 1 << 40
            self._recovered(node)

        self._for_a_while(undo, 0.5, 6)
        return True

    def fsync_error(self) -> bool:
        """One error, after which the kernel may claim that all is well (K23)."""
        node = self._bookie()
        if node is None:
            return False
        fault = Fault(
            operation=self.rng.choice(["sync", "sync", "sync", "pwrite", "sync_directory"]),
            code=errno.EIO,
            path=self.rng.choice(["journal", "journal", "ledgers", ""]),
            after=self.rng.randint(0, 5),
            times=self.rng.choice([1, 1, 3]),
            partial=self.rng.random() < 0.5,
        )
        node.disk.faults.append(fault)
        if self.rng.random() < 0.6:  # and what is in doubt is lost
            self.cluster.world.loop.call_later(self.rng.uniform(0.02, 0.3), self._power_off, node)

        def undo() -> None:
            if fault in node.disk.faults:
                node.disk.faults.remove(fault)
            self._recovered(node)

        self._for_a_while(undo, 0.5, 5)
        return True

    def _power_off(self, node: Node) -> None:
        if node.alive and not self.cluster.calm:
            node.crash(power=True)
            self._restart_later(node)

    def slow_disk(self) -> None:
        node = self.cluster.node(self.rng.choice(self.cluster.names))
        disk = node.disk
        disk.slow_sync_share, disk.slow_sync_s = self.rng.choice([(0.1, 0.6), (0.7, 0.05), (1.0, 0.5)])
        disk.cold_share = self.rng.choice([0.0, 0.5])

        def undo() -> None:
            disk.slow_sync_share = disk.cold_share = 0.0

        self._for_a_while(undo, 0.5, 5)

    def lose_bookie(self) -> bool:
        """A machine burns down, and another one comes: once per world (F3)."""
        if self._lost or len(self.cluster.world.nodes) < 2:
            return False
        names = [name for name in self.cluster.names if self.cluster.node(name).alive]
        if len(names) < len(self.cluster.names):
            return False
        self._lost = True
        node = self.cluster.node(self.rng.choice(names))
        self.cluster.monitor.lost.add(node.name)
        node.crash(power=True)
        self.cluster.names.remove(node.name)
        name = f"b{self.plan.bookies + 1}"
        self.cluster.monitor.late.add(name)
        if self.cluster.racks:  # it comes in the other one's place
            self.cluster.racks[name] = self.cluster.racks[node.name]

        def come() -> None:
            self.cluster.world.loop.create_task(self.cluster.add_bookie(name))

        self._for_a_while(come, 0.1, 5)
        return True

    def reborn(self) -> bool:
        """An operator gives a bookie an empty disk, deletes its cookie and starts it again under its id: once per
        world, and in no trouble else (F3, W10a)."""
        cluster = self.cluster
        if self._lost or self._in_trouble or not all(map(cluster.is_up, cluster.names)) or cluster.store.outage:
            return False
        node = self._bookie()
        if node is None:
            return False
        self._lost = True
        cluster.monitor.on_wiped(node.name)
        node.crash(power=True)
        cluster.lose_disk(node.name)
        node.disk.direct = self.plan.direct

        async def operator() -> None:
            forgotten = False
            while not forgotten:
                try:
                    await cluster.forget_cookie(node.name)
                    forgotten = True
                except NoSuchKeyError:  # it was done, and the answer lost
                    forgotten = True
                except MetadataError:
                    await asyncio.sleep(1)
            self._recovered(node)
            cluster.revive(node)

        def undo() -> None:
            cluster.world.loop.create_task(operator())

        self._for_a_while(undo, 0.1, 5)
        return True

    # -- files --------------------------------------------------------------------------------------------

    def rot(self) -> bool:
        """Most often a power cut besides: then what lies in the journal lies nowhere else."""
        return self._damage(Damage.rot, power=self.rng.random() < 0.7)

    def decay(self) -> bool:
        """A bit turns over in an entry log that is sealed, while its bookie serves."""
        if not self._hurt:
            self._hurt = self.rng.choice(self.cluster.names)
        cluster, name = self.cluster, self._hurt
        if not cluster.is_up(name):
            return False
        disk, manifest = cluster.node(name).disk, cluster.engine_of(name)._checkpointer.manifest
        paths = [f"{LEDGERS}{log_name(log_id)}" for log_id, log in sorted(manifest.logs.items()) if log.finished]
        if not paths:
            return False
        path = self.rng.choice(paths)
        place = self.rng.randrange(BLOCK, len(disk.read_file(path)))
        if (path, place) in cluster.monitor.rotten[name]:
            return False
        disk.flip_bit(path, 8 * place + self.rng.randrange(0, 8))
        cluster.monitor.hurt.add(name)
        cluster.monitor.rotten[name].add((path, place))
        cluster.world.trace.add(cluster.world.loop.time(), "decay", name, path, place)
        return True

    def thin(self) -> bool:
        """A file goes, or an older one comes in its place."""
        return self._damage(Damage.thin)

    def older_copy(self) -> bool:
        """An operator copies a bookie's directory, and puts it back in a later life. What became durable in the last
        seconds of a life is guarded by nobody (K32): that is not tried."""
        node = self._the_one()
        if node is None:
            return False
        boot = self.cluster.servers[node.name].boot
        if self._copy is None:
            self._copy = DirectoryBackup(files_of(node.disk), boot)
        if self._copy.boot >= boot:
            node.crash()
            self._restart_later(node)
            return False
        return self._damage(Damage.older_copy, node)

    def exchanged(self) -> bool:
        """Somebody puts the disks of two bookies back, some of their files into the wrong machine."""
        one = self._the_one()
        if one is None:
            return False
        names = [name for name in self.cluster.names if name not in self._in_trouble]
        others = [self.cluster.node(name) for name in names if self.cluster.is_up(name)]
        if not others:
            self._recovered(one)
            return False
        both = [one, self.rng.choice(others)]
        self._in_trouble[both[1].name] = 1
        for node in both:
            node.crash()
        dealt = exchange(self.rng, *(node.disk for node in both))
        for node in both:
            self._start_damaged(node, dealt, both)
        return dealt is not None

    def _the_one(self) -> Node | None:
        """The one bookie of this world whose files may be damaged (F3), if it serves and is in no trouble."""
        if not self._hurt:
            self._hurt = self.rng.choice(self.cluster.names)
        node = self.cluster.node(self._hurt)
        if node.name in self._in_trouble or node.frozen or not self.cluster.is_up(node.name):
            return None
        self._in_trouble[node.name] = 1
        return node

    def _damage(
        self, deal: Callable[[Damage], DamageReport | None], node: Node | None = None, *, power: bool | None = None
    ) -> bool:
        node = node or self._the_one()
        if node is None:
            return False
        cluster = self.cluster
        node.crash(power=power)
        damage = Damage(self.rng, node.disk, cluster.monitor.tails.get(node.name), self._copy)
        if (dealt := deal(damage)) is not None:
            cluster.monitor.hurt.add(node.name)
            cluster.world.trace.add(cluster.world.loop.time(), "damage", node.name, dealt.what)
        self._start_damaged(node, dealt, [node])
        return dealt is not None

    def _start_damaged(self, node: Node, dealt: DamageReport | None, nodes: list[Node]) -> None:
        def undo() -> None:
            self.cluster.revive(node)
            if dealt is not None and dealt.may_refuse:
                if node is nodes[-1]:
                    self.cluster.world.loop.create_task(self._operator(dealt, nodes))
            else:
                self._recovered(node)

        self._for_a_while(undo, 0.05, 3)

    async def _operator(self, dealt: DamageReport, nodes: list[Node]) -> None:
        """Where a bookie refuses to start, what was done is undone after a while."""
        cluster = self.cluster
        for _ in range(6):
            await asyncio.sleep(0.5)
            if all(cluster.is_up(node.name) for node in nodes):
                break
        else:
            for node in nodes:
                node.crash(power=False)
            dealt.undo()
            cluster.monitor.count("damage undone by an operator")
        for node in nodes:
            self._recovered(node)
            cluster.revive(node)

    # -- metadata -----------------------------------------------------------------------------------------

    def lag(self) -> bool:
        """Some sessions see the past until they sync (Z6)."""
        cluster = self.cluster
        sessions = {name: store for name, store in cluster.sessions.items() if cluster.world.nodes[name].alive}
        names = self.rng.sample(sorted(sessions), self.rng.randint(1, len(sessions)))
        for name in names:
            sessions[name].lag()

        def undo() -> None:
            for name in names:
                sessions[name].catch_up()

        self._for_a_while(undo, 0.5, 4)
        return True

    def session(self) -> bool:
        name = self.rng.choice(sorted(self.cluster.sessions))
        node = self.cluster.world.nodes[name]
        if not node.alive or node.frozen or self.cluster.store.outage:
            return False
        self.cluster.store.expire(self.cluster.sessions[name])
        return True

    def outage(self) -> bool:
        store = self.cluster.store
        if store.outage:
            return False
        store.begin_outage()

        def undo() -> None:
            store.outage = False
            for name, session in self.cluster.sessions.items():
                node = self.cluster.world.nodes[name]
                if node.alive and not node.frozen:
                    store.resume(session)

        self._for_a_while(undo, 0.2, 6)
        return True

    def lost_reply(self) -> None:
        store = self.cluster.store
        store.interference = _Losses(Random(self.rng.getrandbits(64)))

        def undo() -> None:
            store.interference = Distance(Random(self._number))

        self._for_a_while(undo, 0.5, 4)

    def ended_write(self) -> None:
        """Some sessions end when a write of theirs is done, and before anybody is told (M8, Z1)."""
        store = self.cluster.store
        store.interference = EndedWrites(Random(self.rng.getrandbits(64)))

        def undo() -> None:
            store.interference = Distance(Random(self._number))

        self._for_a_while(undo, 0.5, 3)


class Distance:
    """An Interference that only takes its time: a store is a machine of its own."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def fate(self, session: int, kind: str, path: str) -> Fate:
        return Fate(delay_before_s=0.0002 + self._rng.random() * 0.001, delay_after_s=0.0002)


class _Losses:
    """An Interference: some requests and replies are late, some never come."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def fate(self, session: int, kind: str, path: str) -> Fate:
        rng = self._rng
        return Fate(
            delay_before_s=rng.random() * 0.02,
            request_lost=rng.random() < 0.05,
            reply_lost=rng.random() < 0.15,
            delay_after_s=0.01 + rng.random() * 0.05,
        )


class EndedWrites:
    """An Interference: some writes are the last of their sessions."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def fate(self, session: int, kind: str, path: str) -> Fate:
        rng = self._rng
        return Fate(
            delay_before_s=rng.random() * 0.01,
            delay_after_s=rng.random() * 0.01,
            session_ends=rng.random() < 0.02,
        )
