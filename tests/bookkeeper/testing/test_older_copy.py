"""A bookie comes back with an older copy of its disk while another copy is away."""

from __future__ import annotations

import asyncio
import copy

import pytest

from bookkeeper.errors import BookKeeperError
from bookkeeper.testing.cluster import SimCluster


@pytest.mark.rule("K32", "R6", "R11", "B5")
@pytest.mark.parametrize("seed", range(3))
def test_no_recovery_ends_a_ledger_before_what_was_acknowledged(seed: int) -> None:
    """The bookie that was put back denied the ledger, the one that had missed the adds did too, and two of three
    denials closed an acknowledged ledger as empty."""

    async def story(cluster: SimCluster) -> None:
        older = copy.deepcopy(cluster.node("b1").disk._directories)
        async with cluster.connect() as bk:
            writer = await bk.create_ledger(ensemble=3, write_quorum=3, ack_quorum=2)
            cluster.node("b3").crash(power=False)  # it misses what follows
            for number in range(10):
                payload = b"entry %d" % number
                cluster.acked(writer.id, await writer.append(payload), payload)
            await asyncio.sleep(12)
            for name in ("b1", "b2"):
                cluster.node(name).crash(power=False)
        cluster.node("b1").disk._directories = older
        for name in ("b1", "b3"):
            cluster.node(name).restart()
        await cluster.wait_until_up("b1", "b3")
        async with cluster.connect() as bk:
            with pytest.raises(BookKeeperError):
                await bk.open_ledger(writer.id)
        cluster.node("b2").restart()
        await cluster.wait_until_up()
        await cluster.check_acked()

    SimCluster(seed).run(story)
