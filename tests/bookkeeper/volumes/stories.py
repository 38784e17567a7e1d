"""Bookies with three ledger directories in a simulated world, and what is done to them."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from bookkeeper.bookie.lifecycle import BookieServer
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.ids import LedgerId
from bookkeeper.testing.cluster import SimCluster
from bookkeeper.testing.world import Fault
from bookkeeper.volumes import MappedVolumes
from tests.bookkeeper.bookie.cluster import Cluster
from tests.bookkeeper.bookie.cluster import run as run_one

DISKS = ("/disk1", "/disk2", "/disk3")


class DirectoriesCluster(SimCluster):
    """Each bookie has three ledger directories, and b1 those that a story gives it."""

    def __init__(self, seed: int = 1, bookies: int = 4, **options: Any) -> None:
        super().__init__(seed, bookies, **{"ledger_dirs": DISKS, **options})
        self.dirs_of: dict[str, Sequence[str]] = {}
        self.grown: dict[str, dict[str, Any]] = {}

    def options_of(self, name: str) -> dict[str, Any]:
        options = super().options_of(name)
        return {
            **options,
            "ledger_dirs": tuple(self.dirs_of.get(name, options["ledger_dirs"])),
            **self.grown.get(name, {}),
        }

    def volumes(self, name: str) -> MappedVolumes:
        found = self.servers[name].engine
        assert isinstance(found, MappedVolumes)
        return found

    def pull_out(self, name: str, place: str) -> None:
        """Every operation on a directory fails from now on."""
        self.node(name).disk.faults.append(Fault(operation="*", code=errno.EIO, path=place))

    def put_back_empty(self, name: str, place: str) -> None:
        """The directory works again, and nothing is in it."""
        disk = self.node(name).disk
        disk.faults[:] = [fault for fault in disk.faults if fault.path != place]
        disk.replace({path: None for path in disk.files() if path.startswith(f"{place}/")})
        disk.make_directories(place)


class Writers:
    """Clients that append until they are told to stop, each to ledger after ledger."""

    def __init__(self, cluster: SimCluster, bk: BookKeeper, count: int, entries: int = 12) -> None:
        self._cluster, self._bk, self._entries = cluster, bk, entries
        self._stop = False
        self.ledgers: list[LedgerId] = []
        self._tasks = [asyncio.get_running_loop().create_task(self._run(number)) for number in range(count)]

    async def _run(self, number: int) -> None:
        rng = Random(number)
        while not self._stop:
            writer = await self._bk.create_ledger(ensemble=3, write_quorum=3, ack_quorum=2, password=b"")
            self.ledgers.append(writer.id)
            for at in range(self._entries):
                payload = b"%d/%d " % (writer.id, at) * rng.randrange(1, 30)
                entry_id = await writer.append(payload)
                self._cluster.acked(writer.id, entry_id, payload)
                await asyncio.sleep(rng.random() * 0.1)
            await writer.close()

    async def stop(self) -> None:
        """Let every writer finish its ledger. Raises: what a writer met."""
        self._stop = True
        await asyncio.gather(*self._tasks)


async def until(condition: Any, *, within_s: float = 60.0) -> None:
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110 - virtual time, and nobody tells
            await asyncio.sleep(0.05)


def directories_of(server: BookieServer) -> dict[str, str]:
    """Each ledger directory and its state."""
    return {row["ledger_dir"]: row["state"] for row in server.ledger_directories.rows()}


def run_bookie(main: Callable[[Cluster], Any], **options: Any) -> None:
    run_one(main, ledger_dirs=["/d1", "/d2"], **options)


def volumes_of(cluster: Cluster) -> MappedVolumes:
    assert cluster.server is not None and isinstance(cluster.server.engine, MappedVolumes)
    return cluster.server.engine
