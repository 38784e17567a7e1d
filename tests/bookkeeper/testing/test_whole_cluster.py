"""A whole cluster in a world: real bookies, real clients, real disks' bytes, and everything that can go wrong.

Bookies crash (with and without their machine), freeze, lose their sessions, their links and single connections;
disks are slow; the metadata store is away; a second client recovers ledgers under their writer. In the end
every acknowledged entry is in its ledger, with the bytes that were acknowledged.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from random import Random
from typing import Any

import pytest

from bookkeeper.bookie.config import config_from
from bookkeeper.bookie.lifecycle import BookieServer
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.errors import BookKeeperError
from bookkeeper.ids import LedgerId
from bookkeeper.meta import Metadata, init_cluster_in
from bookkeeper.meta.stores.memory import MemoryCluster
from bookkeeper.seams import Net, Seams
from bookkeeper.testing import World

BOOKIES = [f"b{i}" for i in range(5)]
SMALL = {
    "journal_file_bytes": 256 * 1024,
    "entry_log_bytes": 256 * 1024,
    "checkpoint_bytes": 64 * 1024,
    "reserve_bytes": 0,
}


class Joined:
    """What a client stands on."""

    net: Net | None = None

    def __init__(self, metadata: Metadata) -> None:
        self.metadata = metadata

    async def close(self) -> None: ...


class Simulation:
    """One seed: its nodes, what goes wrong, what was acknowledged."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.rng: Random = world.rng
        self.store = MemoryCluster()
        self.sessions: dict[str, Any] = {}
        self.acked: dict[LedgerId, dict[int, bytes]] = {}
        self.down: list[str] = []
        self.stopping = False

    async def join(self, seams: Seams) -> BookKeeper:
        metadata = await Metadata.over(self.store.connect(), seams)
        return await BookKeeper.over(Joined(metadata), seams=seams)

    async def bookie(self, name: str, seams: Seams) -> None:
        """The program of a bookie's node: try until it starts."""
        options = {"metadata_uri": "memory://x", "directory": "/data", "listen": f"{name}:3181", "insecure": True}
        config = config_from({**options, "http_listen": "", "storage": SMALL})
        self.sessions[name] = self.store.connect()
        while True:
            try:
                server = BookieServer(config, seams, await Metadata.over(self.sessions[name], seams))
                await server.start()
                break
            except BookKeeperError:
                await asyncio.sleep(1)
        await server.run_until_failure()

    async def writer(self, seams: Seams) -> None:
        rng = Random(seams.rng.getrandbits(64))
        client = await self.join(seams)
        while not self.stopping:
            try:
                ledger = await client.create_ledger(password=b"pw")
            except BookKeeperError:
                await asyncio.sleep(0.5)
                continue
            acked = self.acked.setdefault(ledger.id, {})
            try:
                for n in range(60):
                    payloads = [b"%d.%d.%d" % (ledger.id, n, k) for k in range(rng.randrange(1, 6))]
                    futures = [ledger.append_nowait(payload) for payload in payloads]
                    results = await asyncio.gather(*futures, return_exceptions=True)
                    for payload, result in zip(payloads, results, strict=True):
                        if isinstance(result, int):
                            acked[result] = payload
                    if any(isinstance(result, BaseException) for result in results):
                        break
                    await asyncio.sleep(0.01 * rng.random())
                await (ledger.close() if rng.random() < 0.5 else ledger.abandon())
            except BookKeeperError:
                pass

    async def usurper(self, seams: Seams) -> None:
        """Recovers the newest ledger, whoever writes it."""
        client = await self.join(seams)
        while not self.stopping:
            await asyncio.sleep(2 * seams.rng.random())
            if self.acked:
                try:
                    await (await client.open_ledger(max(self.acked), b"pw")).close()
                except BookKeeperError:
                    pass

    async def trouble(self) -> None:
        """One thing goes wrong, or is put right."""
        rng, world, store = self.rng, self.world, self.store
        chance, name = rng.random(), rng.choice(BOOKIES)
        node = world.node(name)
        if chance < 0.4 and node.alive and len(self.down) < 2:
            node.crash()
            self.down.append(name)
        elif chance < 0.75 and self.down:
            world.node(self.down.pop(rng.randrange(0, len(self.down)))).restart()
        elif chance < 0.83 and node.alive:
            node.freeze()
            await asyncio.sleep(1.5 * rng.random())
            node.thaw()
        elif chance < 0.87:
            store.expire(self.sessions[name])
        elif chance < 0.9:
            store.begin_outage()
            await asyncio.sleep(3 * rng.random())
            store.end_outage()
        elif chance < 0.97:
            world.network.cut("writer", name, both=rng.random() < 0.5)
            await asyncio.sleep(2 * rng.random())
            world.network.mend()

    async def run(self) -> None:
        world = self.world
        writer, usurper = world.node("writer"), world.node("usurper")
        await init_cluster_in(self.store.connect(), writer.seams)
        for name in BOOKIES:
            node = world.node(name)
            node.disk.slow_sync_share, node.disk.cold_share = self.rng.choice([0.0, 0.02]), self.rng.choice([0.0, 0.3])
            node.start(lambda seams, name=name: self.bookie(name, seams))  # type: ignore[misc]
            node.on_crash.append(lambda name=name: self.store.expire(self.sessions[name]))  # type: ignore[misc]
        await asyncio.sleep(2)
        world.network.weather.reset_share = self.rng.choice([0.0, 0.001])
        working = [writer.start(self.writer), usurper.start(self.usurper)]
        for _ in range(20):
            await asyncio.sleep(0.05 + 0.5 * self.rng.random())
            await self.trouble()
        world.network.mend()
        world.network.weather.reset_share = 0.0
        for name in self.down:
            world.node(name).restart()
        self.stopping = True
        await asyncio.gather(*working)
        await asyncio.sleep(10)
        await world.node("reader").start(self.audit)

    async def audit(self, seams: Seams) -> None:
        """Every acknowledged entry is there (R11, L1), in ledgers that all come to an end (V2)."""
        client = await self.join(seams)
        for ledger_id, acked in sorted(self.acked.items()):
            for attempt in range(20):
                try:
                    ledger = await client.open_ledger(ledger_id, b"pw")
                    break
                except BookKeeperError:
                    assert attempt < 19, f"ledger {ledger_id} cannot be recovered"
                    await asyncio.sleep(2)
            last = ledger.last_add_confirmed
            assert last >= max(acked, default=-1), f"ledger {ledger_id} ends at {last}, {max(acked)} was acknowledged"
            found = (
                {int(entry.entry_id): bytes(entry.payload) async for entry in ledger.read(0, last)} if last >= 0 else {}
            )
            assert len(found) == last + 1
            for entry_id, payload in acked.items():
                assert found[entry_id] == payload
            await ledger.close()


def simulate(seed: int) -> tuple[str, int]:
    """The digest of all that happened, and how many entries were acknowledged."""
    with World(seed) as world:
        simulation = Simulation(world)
        world.run(simulation.run())
        return world.trace.digest, sum(map(len, simulation.acked.values()))


@pytest.mark.rule("W1", "W6", "R3", "R11", "L1", "B1", "B2", "V2", "F1", "F2", "F4", "F5")
@pytest.mark.parametrize("seed", range(8))
def test_what_was_acknowledged_is_there_in_the_end(seed: int) -> None:
    _, acknowledged = simulate(seed)
    assert acknowledged > 100


def test_a_seed_tells_the_same_story_in_every_process() -> None:
    script = "from tests.bookkeeper.testing.test_whole_cluster import simulate; print(simulate(3)[0])"
    environment = {**os.environ, "PYTHONHASHSEED": "77"}
    out = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert out.stdout.strip() == simulate(3)[0]
