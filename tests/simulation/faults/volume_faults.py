"""What goes wrong with single ledger directories, and what administrators do with them.

One method for each of :data:`tests.simulation.plan.VOLUME_FAULTS`. Disks of one bookie fail for good, so that one
copy of an entry at most is lost (F3); those of all bookies fill up, are drained and added.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from random import Random

from bookkeeper.testing.world import Fault, Node
from bookkeeper.volumes import MappedVolumes
from bookkeeper.volumes.disks.volume_list import VolumeState
from tests.simulation.cluster import SwarmCluster
from tests.simulation.users.volume_operator import PLACES


class VolumeFaults:
    """Draws with the same dice as :class:`tests.simulation.faults.nemesis.Nemesis`."""

    def __init__(
        self,
        cluster: SwarmCluster,
        rng: Random,
        for_a_while: Callable[[Callable[[], None], float, float], None],
        take: Callable[[], Node | None],
        let_go: Callable[[Node], None],
    ) -> None:
        self._cluster, self._rng = cluster, rng
        self._for_a_while, self._take, self._let_go = for_a_while, take, let_go
        self._hurt = ""
        """The bookie whose disks fail."""

    def disk_error(self) -> bool:
        """Operations on one disk fail: some, or all from now on. The last one that works fails for a moment only."""
        node, volumes = self._the_one()
        if volumes is None:
            return False
        monitor, disk = self._cluster.monitor.volumes, node.disk
        places = [each.config.ledger_dir for each in volumes.serving]
        place = self._rng.choice(places)
        broken = {fault.path for fault in disk.faults}
        last = len(set(places) - broken - {place}) == 0
        fault = Fault(
            operation=self._rng.choice(["sync", "sync", "pwrite", "pread", "open", "*"]),
            code=errno.EIO,
            path=place,
            after=self._rng.randint(0, 5),
            times=self._rng.choice([1, 3] if last else [1, 3, 1 << 60]),
            partial=self._rng.random() < 0.5,
        )
        disk.faults.append(fault)
        monitor.broken.add((node.name, place))
        if self._rng.random() < 0.3:  # and what is in doubt is lost
            self._cluster.world.loop.call_later(self._rng.uniform(0.02, 0.3), self._power_off, node)

        def undo() -> None:
            if fault in disk.faults:
                disk.faults.remove(fault)

        self._for_a_while(undo, 0.5, 5)
        return True

    def disk_emptied(self) -> bool:
        """A machine comes back with an empty disk in the place of one."""
        node, volumes = self._the_one()
        if volumes is None or len(volumes.serving) < 2:
            return False
        operator = self._cluster.operators[node.name]
        node.crash()
        if len(listed := operator.listed()) >= 2:
            place = self._rng.choice([each.ledger_dir for each in listed])
            operator.exchange(place)
            self._cluster.monitor.volumes.broken.add((node.name, place))
        self._for_a_while(lambda: self._cluster.revive(node), 0.05, 3)
        return True

    def directory_full(self) -> bool:
        """A disk fills up: one with ledgers, or the one with the bookie's notes."""
        node = self._take()
        if node is None:
            return False
        operator = self._cluster.operators[node.name]
        mount = self._rng.choice(["", *operator.configured])
        operator.disk.limit(mount, self._rng.choice([0, 4096, 40_000]))

        def undo() -> None:
            operator.disk.limit(mount, None)
            self._let_go(node)

        self._for_a_while(undo, 0.5, 6)
        return True

    def drain(self) -> bool:
        """An administrator has a directory emptied while writers write."""
        node, volumes = self._anyone()
        server = self._cluster.servers[node.name]
        if volumes is None or server.ledger_directories is None:
            return False
        places = [each.ledger_dir for each in volumes.volume_list if each.state is VolumeState.USED]
        if len(places) < 2:
            return False
        node.run(self._cluster.operators[node.name].drain(server, self._rng.choice(places)))
        return True

    def grow(self) -> bool:
        """An administrator adds a disk: a new one, or an empty one in the place of one that is lost or drained."""
        node, volumes = self._anyone()
        server, operator = self._cluster.servers[node.name], self._cluster.operators[node.name]
        if volumes is None or server.ledger_directories is None:
            return False
        used = {each.ledger_dir for each in volumes.volume_list.serving}
        free = [place for place in PLACES if place not in used]
        if not free:
            return False
        place = self._rng.choice(free)
        operator.exchange(place)
        self._cluster.monitor.volumes.broken.discard((node.name, place))
        node.run(operator.add(server, place))
        return True

    # -- tools --------------------------------------------------------------------------------------------

    def _the_one(self) -> tuple[Node, MappedVolumes | None]:
        """The one bookie whose disks fail, and its volumes if it serves."""
        if not self._hurt:
            self._hurt = self._rng.choice(self._cluster.names)
        return self._cluster.node(self._hurt), self._volumes_of(self._hurt)

    def _anyone(self) -> tuple[Node, MappedVolumes | None]:
        name = self._rng.choice(self._cluster.names)
        return self._cluster.node(name), self._volumes_of(name)

    def _volumes_of(self, name: str) -> MappedVolumes | None:
        if not self._cluster.is_up(name) or self._cluster.node(name).frozen:
            return None
        volumes = self._cluster.servers[name].engine
        assert isinstance(volumes, MappedVolumes)
        return volumes

    def _power_off(self, node: Node) -> None:
        if node.alive and not self._cluster.calm:
            node.crash(power=True)
            self._for_a_while(lambda: self._cluster.revive(node), 0.05, 3)
