from __future__ import annotations

import asyncio
from random import Random

import pytest

from bookkeeper.testing.cluster import SimCluster
from segments.namespace import StreamNamespace
from tests.segments.world.chain_witness import ChainWitness
from tests.segments.world.stream_cluster import StreamCluster
from tests.segments.world.world_hosts import start_programs
from tests.segments.world.world_state import CONFIG, CURSOR, PRODUCERS, STREAM, WorldState


@pytest.mark.parametrize("gateways", [False, True])
def test_in_a_world_without_faults_everybody_works(gateways: bool) -> None:
    witness = ChainWitness()
    cluster = StreamCluster(3, witness)

    async def story(_: SimCluster) -> None:
        world = WorldState(3, cluster, witness, gateways=gateways, rng=Random(3))
        async with cluster.connect() as client:
            stream = await StreamNamespace(client).create(STREAM, config=CONFIG)
            start_programs(world)
            await asyncio.sleep(8)
            assert all(world.judge.first_unacked(each) > 20 for each in PRODUCERS)
            assert len(world.cursor.done) > 20 and bool(world.ownerships) == gateways
            world.calm = True
            await asyncio.sleep(10)
            async with stream.read() as reader:
                found = [record async for record in reader]
            assert len(found) == len(world.judge.acked)
            state = await stream.cursor(CURSOR).state()
            assert world.cursor.judge(state, found) == [] == witness.problems  # type: ignore[arg-type]  # no gap

    cluster.run(story)
