"""A bookie takes the place of one that is gone: ledgers are copied to it, closed ones and one that its writer left.

Whatever a crash leaves: as soon as the metadata name the bookie, it has every entry that they count on (A1, A5).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from bookkeeper.ids import BookieId
from bookkeeper.meta.records import ledger_format
from bookkeeper.meta.stores.memory import MemorySnapshot
from bookkeeper.replication.copying import RepairContext, copies_of
from bookkeeper.replication.repairs import GracePeriods, repair_ledger
from bookkeeper.testing.cluster import SimCluster
from bookkeeper.testing.world import WorkerPace
from tests.bookkeeper.replication.clusters import append, holds, written
from tests.crash_images.traced import Lived, TracedDisk

TARGET = "b4"


@dataclass
class Repaired(Lived):
    paths: dict[int, str] = field(default_factory=dict)
    """Where the metadata of each ledger lie."""
    counts: dict[int, int] = field(default_factory=dict)
    """Ledger -> how many entries were acknowledged."""
    left: int = -1
    """The ledger that its writer left: it counts as whole when its repair is over."""

    def owed(self, metadata: MemorySnapshot) -> dict[tuple[int, int], bytes]:
        owed = {}
        for ledger_id, path in self.paths.items():
            if path not in metadata.nodes:
                continue
            found = ledger_format.decode(metadata.nodes[path].value)
            for copy in copies_of(found, BookieId(TARGET)):
                if ledger_id == self.left:
                    continue  # a recovery closes a ledger when an ack quorum has everything
                end = copy.end if copy.end is not None else self.counts[ledger_id] - 1
                spec = found.spec
                for entry_id in range(copy.first_entry, end + 1):
                    position = (copy.position - entry_id) % spec.ensemble_size
                    if position < spec.write_quorum:
                        owed[ledger_id, entry_id] = self.truth.sent[ledger_id, entry_id]
        return owed


def repaired_life(seed: int) -> tuple[Repaired, int]:
    """One life, and the operation at which the repair began."""
    cluster = SimCluster(seed, 3, garbage_interval_s=10**6)
    node = cluster.node(TARGET)
    node.disk = disk = TracedDisk(cluster.store)
    node.life = 0
    node.pace = WorkerPace(delay_s=0.05)  # a slow disk: who does not wait for it is ahead of it
    node._begin_life()
    lived: list[tuple[Repaired, int]] = []

    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            whole = [await written(cluster, bk, 30, ensemble=3, write_quorum=2, ack_quorum=2) for _ in range(2)]
            large = await written(cluster, bk, 60, ensemble=3, write_quorum=3, ack_quorum=2)
            left = await bk.create_ledger(password=b"pw", ensemble=3, write_quorum=3, ack_quorum=2)
            await append(cluster, left, 20)
            await left.abandon()
            await cluster.add_bookie(TARGET)
            life = Repaired(disk, cluster.servers[TARGET].config.storage, left=left.id)
            for ledger_id in (*whole, large, left.id):
                life.paths[ledger_id] = bk.metadata_store.ledgers.path(ledger_id)
                life.counts[ledger_id] = sum(key[0] == ledger_id for key in cluster._acked)
            await asyncio.sleep(1)
            begin = len(disk.ops)
            cluster.node("b1").crash(power=True)
            await asyncio.sleep(10)
            graces, context = GracePeriods(0), RepairContext(services=bk.services)
            await asyncio.gather(*(repair_ledger(context, each, graces) for each in whole))
            cluster.servers[TARGET].engine.checkpoint(lambda error: None)
            for each in (large, left.id):
                await repair_ledger(context, each, graces)
            whole_at = len(disk.ops) + 1
            cluster.servers[TARGET].engine.checkpoint(lambda error: None)
            await asyncio.sleep(5)
            await cluster.check_acked()
            for number in life.paths:
                for entry_id in holds(cluster, TARGET, number):
                    life.truth.sent[number, entry_id] = await _entry(cluster, number, entry_id)
                assert holds(cluster, TARGET, number), "it has taken part of each"
            life.truth.acked = {key: whole_at for key in life.truth.sent if key[0] == left.id}
            disk.look()
            lived.append((life, begin))

    cluster.run(story, within_s=3600)
    return lived[0]


async def _entry(cluster: SimCluster, ledger_id: int, entry_id: int) -> bytes:
    from bookkeeper.ids import EntryId, LedgerId

    got: asyncio.Future[bytes | BaseException] = asyncio.get_running_loop().create_future()
    cluster.servers[TARGET].engine.read(LedgerId(ledger_id), EntryId(entry_id), got.set_result)
    entry = await got
    assert isinstance(entry, bytes) and entry.endswith(cluster._acked[ledger_id, entry_id])
    return entry
