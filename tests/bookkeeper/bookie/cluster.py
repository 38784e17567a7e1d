"""A metadata store, one bookie on a simulated machine, and whoever asks it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any

from bookkeeper import wire
from bookkeeper.bookie.config import config_from
from bookkeeper.bookie.lifecycle import BookieServer
from bookkeeper.errors import NoSuchKeyError
from bookkeeper.ids import Address, BookieId
from bookkeeper.meta import Metadata, init_cluster_in
from bookkeeper.meta.store import Version, Versioned
from bookkeeper.meta.stores.memory import MemoryCluster, MemorySnapshot, MemoryStore
from bookkeeper.net.connection import connect_bookie
from bookkeeper.seams import Seams
from bookkeeper.testing import World
from bookkeeper.testing.world import SimDisk

BOOKIE = BookieId("b:3181")


class Cluster:
    """A metadata store, a bookie ``b``, and whoever asks it."""

    def __init__(self, world: World, *, mounts: Sequence[str] = (), **options: Any) -> None:
        """
        Args:
            mounts: directories of the bookie that are disks of their own.
        """
        self.world = world
        self.metadata = MemoryCluster()
        self.node = world.node("b", mounts)
        self.options = {
            "metadata_uri": "memory://test",
            "directory": "/data",
            "listen": "b:3181",
            "insecure": True,
            "http_listen": "",
            "storage": {
                "journal_file_bytes": 64 * 1024,
                "entry_log_bytes": 64 * 1024,
                "checkpoint_bytes": 32 * 1024,
                "reserve_bytes": 0,
            },
            **options,
        }
        self.server: BookieServer | None = None
        self.started = asyncio.Event()
        self.stores: list[Any] = []
        self.client: Metadata
        """After :meth:`up`."""

    async def bookie(self, seams: Seams) -> None:
        """The program of node ``b``."""
        store = self.metadata.connect()
        self.stores.append(store)
        self.server = BookieServer(config_from(self.options), seams, await Metadata.over(store, seams))
        await self.server.start()
        self.started.set()
        await self.server.run_until_failure()

    async def up(self) -> Metadata:
        """Make the cluster, start the bookie; metadata as a client sees it."""
        self.node.on_crash.append(lambda: self.metadata.expire(self.stores[-1]))
        seams = self.world.node("client").seams
        store = self.metadata.connect()
        await init_cluster_in(store, seams)
        self.node.start(self.bookie)
        await self.started.wait()
        self.client = await Metadata.over(store, seams)
        return self.client

    async def again(self) -> Metadata:
        """Restart the bookie; metadata as a client sees it. Raises what its start raises."""
        self.started.clear()
        task = self.node.restart()
        waiting = asyncio.ensure_future(self.started.wait())
        await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            waiting.cancel()
            await task
        return self.client

    async def wiped(self) -> Metadata:
        """What a careless operator does: stop the bookie, empty its disk, delete its cookie, start it again."""
        self.node.crash(power=True)
        self.node.disk = SimDisk(Random(self.node.life))
        cookies = self.client.cookies
        await cookies.delete(BOOKIE, (await cookies.read(BOOKIE)).version)
        return await self.again()

    async def ask(self, request: wire.Request) -> Any:
        return (await self.ask_all([request]))[0]

    async def ask_all(self, requests: Sequence[wire.Request]) -> list[Any]:
        client = self.world.node("client")
        connection = await client.run(connect_bookie(client.seams.net, Address("b", 3181), timeout_s=5))
        try:
            return await asyncio.gather(*[client.run(connection.request(request, 10)) for request in requests])
        finally:
            connection.close()


class Follower:
    """A session at a server of the store that is behind: until it syncs it shows what was there once."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._view: MemorySnapshot | None = None

    def falls_behind(self, view: MemorySnapshot) -> None:
        self._view = view

    async def sync(self, path: str) -> None:
        await self._store.sync(path)
        self._view = None

    async def get(self, path: str) -> Versioned[bytes]:
        if self._view is None:
            return await self._store.get(path)
        node = self._view.nodes.get(path)
        if node is None:
            raise NoSuchKeyError(path)
        return Versioned(node.value, Version(node.version))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def run(main: Any, *, seed: int = 0, **options: Any) -> None:
    with World(seed) as world:

        async def program() -> None:
            await main(Cluster(world, **options))

        world.run(program())
