"""Who deletes ledgers brings them back, also when it died meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.meta.cluster import init_cluster_in
from tests.simulation.cluster import SwarmCluster
from tests.simulation.plan import FIRST_WITH_UNDELETION, plan
from tests.simulation.users.actors import PASSWORD
from tests.simulation.users.undeleter import Undeleter


async def _appended(client: BookKeeper, cluster: SwarmCluster) -> int:
    async with await client.create_ledger(ensemble=1, write_quorum=1, ack_quorum=1, password=PASSWORD) as ledger:
        await ledger.append(b"1")
    cluster.ledgers.append(ledger.id)
    return int(ledger.id)


@pytest.mark.rule("G8")
@pytest.mark.parametrize("lost", [False, True])
def test_all_that_it_deleted_is_there_in_the_end_but_what_is_gone_for_good(lost: bool) -> None:
    """If a record is ``lost`` before its time, that is seen."""
    cluster = SwarmCluster(plan(FIRST_WITH_UNDELETION))

    async def main() -> None:
        await init_cluster_in(cluster.store.connect(), cluster.client.seams)
        for name in list(cluster.names):
            await cluster.add_bookie(name)
        while not all(cluster.is_up(name) for name in cluster.names):  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0.01)
        client = await cluster.new_client(cluster.plan.client)
        over, back, there = [await _appended(client, cluster) for _ in range(3)]
        undeleter = Undeleter(cluster, "u0")
        undeleter.asked |= {over, back, there}
        await client.delete_ledger(over, grace_s=1)
        await client.delete_ledger(back, grace_s=600)
        await asyncio.sleep(5)
        assert cluster.monitor.deletions.gone == {over} and cluster.ledgers_there() == [back, there]
        if lost:
            await client.metadata_store.ledgers.restorable.remove(back)  # type: ignore[arg-type]
        cluster.calm = True
        await undeleter.rest(client)
        assert await client.metadata(there)
        if not lost:
            assert (await client.metadata(back)).is_closed
        assert cluster.monitor.counts["ledgers dropped by a bookie"] >= 1

    with cluster.world as world:
        world.loop.run_until_complete(main())
    assert [problem.split(",")[0] for problem in cluster.monitor.problems] == (
        ["G8: ledger 1 cannot be brought back any more"] if lost else []
    )
