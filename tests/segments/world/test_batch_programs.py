from __future__ import annotations

import asyncio
from random import Random

import pytest

from bookkeeper.testing.cluster import SimCluster
from segments.namespace import StreamNamespace
from tests.segments.world.batch_judge import BatchJudge
from tests.segments.world.batch_programs import start_batches
from tests.segments.world.chain_witness import ChainWitness
from tests.segments.world.stream_cluster import StreamCluster
from tests.segments.world.world_hosts import start_programs
from tests.segments.world.world_state import APP, CONFIG, STREAM, WorldState


@pytest.mark.parametrize("gateways", [False, True])
def test_in_a_world_without_faults_two_drivers_publish_one_query(gateways: bool) -> None:
    """A few worlds: that a driver repeats a batch, and that one has no key, happens in most of them."""
    repeated = without_key = 0
    for seed in range(3, 11):
        batches = _batches(seed, gateways=gateways)
        repeated += batches.repeated
        without_key += sum(not attempt.app and attempt.done is not None for attempt in batches.attempts)
        if repeated and without_key:
            break
    assert repeated and without_key


def _batches(seed: int, *, gateways: bool) -> BatchJudge:
    """Run one world; what its drivers did."""
    witness = ChainWitness()
    cluster = StreamCluster(seed, witness)
    world = WorldState(seed, cluster, witness, gateways=gateways, rng=Random(seed), with_batches=True)

    async def story(_: SimCluster) -> None:
        async with cluster.connect() as client:
            stream = await StreamNamespace(client).create(STREAM, config=CONFIG)
            if gateways:
                start_programs(world)
            start_batches(world)
            await asyncio.sleep(20)
            world.calm = True
            await asyncio.sleep(10)
            async with stream.read() as reader:
                found = [record async for record in reader]
            assert world.batches.judge(found) == [] == witness.problems  # type: ignore[arg-type]  # no gap
            assert world.batches.committed[APP] > 10
            assert {record.value for record in found} <= set(world.judge.sent)  # type: ignore[union-attr]

    cluster.run(story)
    return world.batches
