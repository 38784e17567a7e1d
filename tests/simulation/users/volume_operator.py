"""Who looks after the ledger directories of a simulated bookie: which are configured, and what the operator's page says
is to be done with a disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from bookkeeper.bookie.lifecycle import BookieServer
from bookkeeper.errors import BookKeeperError, CookieError
from bookkeeper.testing.world import Node, SimDisks
from bookkeeper.volumes.disks.volume_list import VolumeEntry, VolumeState, read_volumes
from bookkeeper.volumes.start.volume_directories import lose_offline

if TYPE_CHECKING:
    from tests.simulation.watch.monitor import Monitor

HOME: Final = "/data"
PLACES: Final = ("/disk1", "/disk2", "/disk3", "/disk4")
"""Where a bookie's machine has room for disks."""


class DiskOperator:
    """One bookie's."""

    def __init__(self, node: Node, places: Sequence[str], monitor: Monitor) -> None:
        self.configured = list(places)
        """``ledger_dirs`` of the next start."""
        self._node, self._monitor = node, monitor
        self._told_drained: set[str] = set()
        self._exchanged: set[str] = set()
        """Places whose disks were exchanged, and not added again since."""

    @property
    def disk(self) -> SimDisks:
        """The machine's disks."""
        assert isinstance(self._node.disk, SimDisks)
        return self._node.disk

    def listed(self) -> tuple[VolumeEntry, ...]:
        """The volumes as the bookie's directory has them; none before its first start."""
        found = read_volumes(self.disk, HOME) if self.disk.exists(HOME) else None
        return found.serving if found is not None else ()

    def exchange(self, place: str) -> None:
        """Put an empty disk in the place of another one."""
        self.disk.faults[:] = [fault for fault in self.disk.faults if fault.path != place]
        self.disk.exchange(place)
        self._exchanged.add(place)
        self._monitor.count("disks exchanged")

    async def add(self, server: BookieServer, place: str) -> None:
        """Let the bookie use an empty disk. Whatever becomes of it, the next start shall have it."""
        if place not in self.configured:
            self.configured.append(place)
        self.disk.make_directories(place)
        self._exchanged.discard(place)
        self._told_drained.discard(place)
        try:
            await server.ledger_directories.add(place, place)
            self._monitor.count("directories added")
        except (BookKeeperError, OSError) as error:
            self._monitor.count(f"directories not added: {type(error).__name__}")

    async def drain(self, server: BookieServer, place: str) -> None:
        """Have a directory emptied; then take its disk away."""

        async def says(_text: str) -> None:
            pass

        try:
            moved = await server.ledger_directories.drain(place, says)
        except (BookKeeperError, OSError) as error:
            self._monitor.count(f"directories not drained: {type(error).__name__}")
            return
        self._monitor.count("directories drained")
        self._monitor.count("ledgers moved off a directory", moved)
        self._told_drained.add(place)
        self.exchange(place)
        if place in self.configured:
            self.configured.remove(place)

    def on_refused(self) -> None:
        """The bookie does not start. A directory whose disk was exchanged is given up."""
        for entry in self.listed():
            place = entry.ledger_dir
            if place in self._told_drained:
                self._monitor.problem(
                    "B12", f"{self._node.name} wants {place} back, of which it said that it is drained"
                )
            if place in self._exchanged and entry.state is not VolumeState.NEW:
                try:
                    lose_offline(self.disk, HOME, place)
                    self._monitor.count("directories given up")
                except CookieError as error:
                    self._monitor.problem("B12", f"{self._node.name} does not give {place} up: {error}")
