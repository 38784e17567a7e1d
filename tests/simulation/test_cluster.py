"""Processes that come back, and a store that tells what happens to ledgers."""

from __future__ import annotations

import asyncio

from bookkeeper.errors import BookKeeperError, MetadataUnavailableError
from bookkeeper.ids import EntryId
from bookkeeper.meta.cluster import init_cluster_in
from bookkeeper.seams import Seams
from tests.simulation.cluster import RESTART_S, SwarmCluster
from tests.simulation.plan import plan


def test_a_process_whose_program_ends_is_started_again_and_bugs_are_problems() -> None:
    cluster = SwarmCluster(plan(0))
    lives: list[float] = []
    errors: list[BaseException] = [MetadataUnavailableError("expected"), ZeroDivisionError("a bug")]

    async def program(seams: Seams) -> None:
        lives.append(seams.clock.monotonic())
        if len(lives) <= len(errors):
            raise errors[len(lives) - 1]
        await asyncio.Event().wait()

    with cluster.world as world:
        cluster.launch(world.node("w0"), program)
        world.loop.run_until_complete(asyncio.sleep(10))
    assert lives == [0.0, RESTART_S, 2 * RESTART_S]
    assert len(cluster.monitor.problems) == 1
    assert "ZeroDivisionError" in cluster.monitor.problems[0]


def test_bookies_come_up_after_a_crash_and_the_store_knows_each_ledger() -> None:
    cluster = SwarmCluster(plan(3))

    async def main() -> None:
        await init_cluster_in(cluster.store.connect(), cluster.client.seams)
        for name in cluster.names:
            await cluster.add_bookie(name)
        await asyncio.sleep(5)
        assert all(map(cluster.is_up, cluster.names))
        cluster.node("b1").crash()
        assert not cluster.is_up("b1")
        client = await cluster.new_client()
        handle = await client.create_ledger(ensemble=1, write_quorum=1, ack_quorum=1)
        assert cluster.committed(handle.id) == handle.metadata
        assert await handle.append(b"x") == EntryId(0)
        bookie = handle.metadata.last_fragment.ensemble[0]
        assert (handle.id, 0) in cluster.monitor.durable[bookie]
        cluster.revive(cluster.node("b1"))
        await asyncio.sleep(10)
        assert all(map(cluster.is_up, cluster.names))
        await client.close()

    with cluster.world as world:
        world.loop.run_until_complete(main())
    assert cluster.monitor.problems == []
    assert issubclass(MetadataUnavailableError, BookKeeperError)
