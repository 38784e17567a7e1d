from __future__ import annotations

from random import Random
from typing import Any, cast

import pytest

from bookkeeper.testing.cluster import SimCluster
from tests.segments.world.chain_witness import ChainWitness
from tests.segments.world.stream_cluster import LostReplies, StreamCluster
from tests.segments.world.world_faults import Faults
from tests.segments.world.world_state import CLEANER, DRIVERS, EXECUTORS, HOSTS, READERS, WorldState

NAMES = (
    "_kill", "_pause", "_crash_bookie", "_lose_replies", "_outage", "_cut_off", "_kill_reader", "_kill_cleaner",
    "_kill_driver", "_pause_driver", "_kill_executor",
)  # fmt: skip
PROGRAMS = (*HOSTS, *READERS, CLEANER, *DRIVERS, *EXECUTORS)


@pytest.mark.parametrize("name", NAMES)
def test_after_a_fault_everything_is_as_it_was(name: str) -> None:
    witness = ChainWitness()
    cluster = StreamCluster(1, witness)

    async def story(_: SimCluster) -> None:
        before = cluster.store.interference = LostReplies(Random(1), 0, 0)
        world = WorldState(1, cluster, witness, gateways=False, rng=Random(name), with_batches=True)
        faults = Faults(world, cast(Any, None))
        for each in PROGRAMS:
            cluster.world.node(each).start(lambda seams: cluster.wait_until_up())
        await getattr(faults, name)(HOSTS[0], HOSTS[1])
        machines = [cluster.world.node(each) for each in (*PROGRAMS, *cluster.names)]
        assert all(machine.alive and not machine.frozen for machine in machines)
        assert cluster.store.interference is before
        await cluster.wait_until_up()

    cluster.run(story)


def test_a_fault_comes_by_chance_and_is_noted() -> None:
    witness = ChainWitness()
    cluster = StreamCluster(1, witness)

    async def story(same: SimCluster) -> None:
        world = WorldState(1, cluster, witness, gateways=False, rng=Random(4))
        faults = Faults(world, cast(Any, None))
        for each in PROGRAMS:
            cluster.world.node(each).start(lambda seams: cluster.wait_until_up())
        for _ in range(4):
            await faults.one()
        assert len(faults.names) == 4 and len(set(faults.names)) > 1

    cluster.run(story)
