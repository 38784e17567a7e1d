"""The quiet phase notices what does not come to its end."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.meta.cluster import init_cluster_in
from bookkeeper.testing.sim_actors import MAKERS, Actor
from bookkeeper.testing.sim_cluster import SwarmCluster
from bookkeeper.testing.sim_plan import plan
from bookkeeper.testing.sim_quiet import quiet_phase


def calm_after(seconds: float, dead: str | None) -> list[str]:
    """A small world without faults, in which ``dead`` never comes back; the rules that do not hold."""
    cluster = SwarmCluster(plan(3))

    async def main() -> None:
        await init_cluster_in(cluster.store.connect(), cluster.client.seams)
        for name in list(cluster.names):
            await cluster.add_bookie(name)
        actors: list[Actor] = [MAKERS[name[0]](cluster, name) for name in ("w0", "r0", "t0")]
        for actor in actors:
            cluster.launch(actor.node, actor.program)
        await asyncio.sleep(seconds)
        cluster.calm = True
        if dead is not None:
            cluster.world.node(dead).crash()
        await quiet_phase(cluster, actors)

    with cluster.world as world:
        world.loop.run_until_complete(main())
    return [problem.split(":")[0] for problem in cluster.monitor.problems]


@pytest.mark.rule("V1", "V5", "V7")
@pytest.mark.parametrize(("dead", "found"), [(None, []), ("b1", ["V5"]), ("w0", ["V1"])])
def test_who_does_not_come_back_is_missed(dead: str | None, found: list[str]) -> None:
    assert calm_after(5, dead)[:1] == found
