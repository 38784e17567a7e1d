"""Power fails everywhere at once, in the middle of every bookie's last write."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from bookkeeper.client.write.write_handle import WriteHandle
from bookkeeper.testing.cluster import SimCluster
from bookkeeper.testing.world import SECTOR, Node, SimDisk


class Certain(Random):
    """Chance that leaves nothing to chance: whatever may happen does, after one operation."""

    def random(self) -> float:
        return 0.2

    def randrange(self, *args: Any) -> int:
        return 1

    def choice(self, seq: Any) -> Any:
        return seq[-1]


def is_about_to_write(node: Node) -> bool:
    """The journal's worker has a group that it has not begun to write."""
    return any(worker._jobs for worker in node._workers.all if worker._name == "journal")


def first_sector_only(_disk: SimDisk, before: bytearray, offset: int, data: bytes) -> bytes:
    old = bytes(before[offset + SECTOR : offset + len(data)])
    return data[:SECTOR] + old.ljust(max(len(data) - SECTOR, 0), b"\0")


async def cut_the_power(cluster: SimCluster, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Four writers, and a cut that leaves the first sector of each bookie's last write; the ledgers."""
    bk = await cluster.new_client()
    handles = [await bk.create_ledger(ensemble=3, write_quorum=3, ack_quorum=2) for _ in range(4)]

    async def write(handle: WriteHandle) -> None:
        for number in range(10_000):
            payload = b"%d of %d " % (number, handle.id) + bytes(1500)
            cluster.acked(handle.id, await handle.append(payload), payload)

    writers = [asyncio.ensure_future(write(handle)) for handle in handles]
    nodes = [cluster.node(name) for name in cluster.names]
    for node in nodes:
        node.pace.delay_s = 0.001
    await asyncio.sleep(0.1)
    while not all(map(is_about_to_write, nodes)):  # noqa: ASYNC110 - virtual time, and nobody tells
        await asyncio.sleep(0.0001)
    monkeypatch.setattr(SimDisk, "_torn", first_sector_only)
    for node in nodes:
        chances = node.rng, node.disk.rng
        node.rng = node.disk.rng = Certain()
        node.crash(power=True)
        node.rng, node.disk.rng = chances
    monkeypatch.undo()
    for writer in writers:
        writer.cancel()
    await asyncio.gather(*writers, return_exceptions=True)
    for node in nodes:
        node.restart()
    await cluster.wait_until_up()
    return [handle.id for handle in handles]


@pytest.mark.rule("K9", "R11", "R15", "F2")
def test_with_a_torn_last_group_on_every_bookie_every_ledger_closes_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torn group that was taken for lost data would put all bookies of a ledger into limbo at once: all would say
    "unknown" of its end for ever, and no recovery could close it."""
    everywhere = 0

    async def story(cluster: SimCluster) -> None:
        nonlocal everywhere
        for _ in range(5):
            ledgers = await cut_the_power(cluster, monkeypatch)
            reports = [cluster.servers[name].engine.report for name in cluster.names]
            everywhere += all(report.torn_tail for report in reports)
            assert not any(report.limbo_reason or report.quarantined for report in reports)
            async with cluster.connect() as bk:
                for ledger in ledgers:
                    async with await bk.open_ledger(ledger) as reader:
                        assert reader.closed
        await cluster.check_acked()

    cluster = SimCluster(1)
    for name in cluster.names:
        cluster.node(name).disk.direct = False
    cluster.run(story)
    assert everywhere >= 2
