"""A bookie's rules and connections over a real engine, in a world without sockets: what these tests share."""

from __future__ import annotations

import asyncio
import struct
from functools import partial
from typing import Any

from bookkeeper.bookie.bookie import Bookie
from bookkeeper.bookie.connections.admission import Admission
from bookkeeper.bookie.connections.server import Connections
from bookkeeper.bookie.connections.server_connection import ServerConnection
from bookkeeper.ids import Address
from bookkeeper.metrics import Metrics
from bookkeeper.net.connection import BookieConnection, connect_bookie
from bookkeeper.net.in_process import InProcessNet
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.engine import Engine
from bookkeeper.testing import World
from bookkeeper.volumes import OneVolume, Volumes
from bookkeeper.wire import Dialect

KEY = b"k" * 20
ADDRESS = Address("bookie", 1)


def storage_config(**changes: Any) -> StorageConfig:
    """Small files."""
    sizes = {"journal_file_bytes": 1 << 20, "entry_log_bytes": 1 << 22, "reserve_bytes": 0}
    return StorageConfig(journal_dir="/data/journal", ledger_dir="/data/ledgers", **{**sizes, **changes})


class House:
    """One bookie at ``ADDRESS`` of ``net``; its disk is node ``b``'s."""

    def __init__(
        self,
        world: World,
        *,
        frame_max: int = 5 * 1024 * 1024,
        in_progress: int = 64 << 20,
        reserve: int = 16 << 20,
        connections_max: int = 100,
        slow_frame_s: float = 30.0,
        idle_s: float = 3600.0,
        connections_per_host_max: int | None = None,
        receive_bytes: int = 64 << 20,
        long_polls_max: int = 1000,
        storage: StorageConfig | None = None,
    ) -> None:
        self.world = world
        self.node = world.node("b")
        self.net = InProcessNet()
        self.metrics = Metrics()
        disk = self.node.disk
        disk.make_directories("/data/journal")
        disk.make_directories("/data/ledgers")
        config = storage or storage_config()
        self.disk_engine = Engine.open(
            config, disk, self.node.seams.workers, boot=1, monotonic=self.node.clock.monotonic
        )
        self.engine: Volumes = OneVolume(self.disk_engine, config)
        loop = world.loop
        self.bookie = Bookie(
            self.engine,
            call_later=loop.call_later,
            wall_ms=self.node.clock.wall_ms,
            frame_max=frame_max,
            batch_read_bytes=frame_max,
            long_polls_max=long_polls_max,
            long_poll_max_s=60,
        )
        self.admission = Admission(in_progress, reserve)
        self.connections = Connections(
            self.bookie,
            self.admission,
            self.metrics,
            frame_max=frame_max,
            connections_max=connections_max,
            connections_per_host_max=connections_per_host_max or connections_max,
            slow_frame_s=slow_frame_s,
            idle_s=idle_s,
            receive_bytes=receive_bytes,
        )

    async def open(self) -> House:
        await self.net.listen(ADDRESS, partial(ServerConnection, self.connections))
        self.connections.start()
        return self

    async def client(self, dialect: Dialect = Dialect.V3) -> BookieConnection:
        return await connect_bookie(self.net, ADDRESS, dialect)

    async def raw(self) -> RawPeer:
        return await self.net.connect(ADDRESS, RawPeer, timeout_s=5)

    def accepted(self) -> list[ServerConnection]:
        return [one for one in self.connections.connections if isinstance(one, ServerConnection)]

    def close(self) -> None:
        self.connections.close()


class RawPeer(asyncio.Protocol):
    """Sends any bytes; collects frame bodies and the end of the connection."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.closed = False
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._rest += data
        while len(self._rest) >= 4 and len(self._rest) - 4 >= (size := struct.unpack_from(">I", self._rest)[0]):
            self.frames.append(self._rest[4 : 4 + size])
            self._rest = self._rest[4 + size :]

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True

    def send(self, data: bytes) -> None:
        self.transport.write(data)


def run(main: Any, *, seed: int = 0, **options: Any) -> Any:
    """``await main(house)`` in a world of its own."""
    with World(seed) as world:

        async def program() -> Any:
            house = await House(world, **options).open()
            try:
                return await main(house)
            finally:
                house.close()
                await asyncio.sleep(0.1)

        return world.run(program())
