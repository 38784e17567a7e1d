"""A bookie whose ledgers are deleted, with and without a grace time, brought back, collected and compacted.

Whatever a crash leaves: of each ledger that lives or can be brought back, by the metadata of that very moment, every
acknowledged entry is there.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from bookkeeper import wire
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.meta import Metadata
from bookkeeper.meta.stores.memory import MemorySnapshot
from bookkeeper.wire import Status
from tests.bookkeeper.bookie.cluster import Cluster, run
from tests.bookkeeper.bookie.garbage.test_garbage_collector import KEY, ledger
from tests.bookkeeper.bookie.garbage.test_model import GRACE_S, PROOF_S, STORAGE, packet
from tests.crash_images.traced import Lived, TracedDisk

OPTIONS: Final[dict[str, Any]] = {
    "storage": STORAGE,
    "garbage_interval_s": 10**6,
    "garbage_grace_s": PROOF_S,
    "garbage_shrink_max": 1.0,
}


@dataclass
class Undeleting(Lived):
    paths: dict[LedgerId, tuple[str, str]] = field(default_factory=dict)
    """Where the metadata of a ledger lie, and its record when it was deleted."""
    acked: dict[tuple[int, int], int] = field(default_factory=dict)

    def owed(self, metadata: MemorySnapshot) -> dict[tuple[int, int], bytes]:
        here = {each for each, places in self.paths.items() if any(place in metadata.nodes for place in places)}
        at = self.disk.views[[view is metadata for _, view in self.disk.views].index(True)][0]
        return {
            key: self.truth.sent[key] for key, when in self.acked.items() if LedgerId(key[0]) in here and when <= at
        }


def undeleting_life(seed: int) -> Undeleting:
    """One life."""
    lived: list[Undeleting] = []

    async def main(cluster: Cluster) -> None:
        node = cluster.node
        node.disk = disk = TracedDisk(cluster.metadata)
        node.life = 0
        node._begin_life()
        cluster.metadata._wall_ms = cluster.world.node("client").seams.clock.wall_ms
        metadata = await cluster.up()
        assert cluster.server is not None
        life = Undeleting(disk, cluster.server.config.storage)
        lived.append(life)
        await _Story(cluster, metadata, life, Random(seed)).tell()

    run(main, seed=seed, **OPTIONS)
    return lived[0]


class _Story:
    def __init__(self, cluster: Cluster, metadata: Metadata, life: Undeleting, rng: Random) -> None:
        self.cluster, self.ledgers, self.life, self.rng = cluster, metadata.ledgers, life, rng
        self.counts: dict[LedgerId, int] = {}

    @property
    def done(self) -> int:
        return len(self.life.disk.ops)

    async def create(self) -> LedgerId:
        number, _ = await self.ledgers.create(ledger())
        self.life.paths[number] = self.ledgers.path(number), self.ledgers.restorable.path(number)
        self.counts[number] = 0
        return number

    async def add(self, *numbers: LedgerId) -> None:
        for _ in range(3):
            keys = []
            for number in numbers:
                for _ in range(self.rng.randrange(1, 4)):
                    keys.append((number, self.counts[number]))
                    self.counts[number] += 1
            self.life.truth.sent.update({key: packet(*key) for key in keys})
            requests = [wire.AddEntry(number, EntryId(at), KEY, packet(number, at)) for number, at in keys]
            assert {reply.status for reply in await self.cluster.ask_all(requests)} == {Status.OK}
            self.life.acked.update(dict.fromkeys(keys, self.done + 1))
            self.life.truth.acked.update(dict.fromkeys(keys, self.done + 1))

    async def delete(self, number: LedgerId, grace_s: int) -> None:
        await self.ledgers.delete(number, grace_s=grace_s)
        self.life.disk.look()

    async def collect(self, *gone: LedgerId) -> None:
        """Passes, until these are provably gone and dropped."""
        self.life.truth.dropped.update(dict.fromkeys(gone, self.done))
        for _ in range(3):
            assert self.cluster.server is not None
            await self.cluster.server.collect_garbage()
            await asyncio.sleep(PROOF_S + 1)
        self.life.truth.gone.update(dict.fromkeys(gone, self.done + 1))

    async def compact(self) -> None:
        assert self.cluster.server is not None
        self.cluster.server.engine.compact(lambda error: None, major=True)
        await asyncio.sleep(self.rng.choice([0.0, 0.002, 5.0]))

    async def tell(self) -> None:
        stays, back, late, gone = [await self.create() for _ in range(4)]
        await self.add(stays, back, late, gone)
        await self.add(stays, back)
        await self.delete(back, GRACE_S)
        await self.delete(gone, 0)
        await self.add(stays, late)
        await self.delete(late, GRACE_S)
        await self.collect(gone)
        await self.compact()
        await self.add(stays)
        assert self.cluster.server is not None
        if self.rng.random() < 0.5:
            self.cluster.server.engine.checkpoint(lambda error: None)
        await self.ledgers.restore(back)
        self.life.disk.look()
        await self.add(back, stays)
        await asyncio.sleep(GRACE_S)
        await self.collect(late)
        await self.compact()
        await self.add(back)
        await self.delete(back, GRACE_S)
        await self.collect()
        await self.ledgers.restore(back)
        self.life.disk.look()
        await self.compact()
        await self.add(back, stays)
        await asyncio.sleep(5)
