"""The quiet phase notices what does not come to its end."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

import pytest

from bookkeeper.meta.cluster import init_cluster_in
from bookkeeper.volumes import MappedVolumes
from bookkeeper.volumes.after_all import wait_until_done
from bookkeeper.volumes.disks.volume_list import VolumeState
from tests.simulation.cluster import SwarmCluster
from tests.simulation.plan import FIRST_WITH_VOLUMES, plan
from tests.simulation.quiet import quiet_phase, until_bookies_serve
from tests.simulation.users.actors import MAKERS, Actor


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


def with_states(states: list[VolumeState], *, full: bool = False) -> tuple[list[str], bool]:
    """A world without faults in which directories of one bookie are brought into these states, those that are used are
    full if asked for, and V5 is looked at: what it says, and whether the bookie is read-only."""
    cluster = SwarmCluster(replace(plan(FIRST_WITH_VOLUMES), directories=3))

    async def main() -> bool:
        await init_cluster_in(cluster.store.connect(), cluster.client.seams)
        for name in list(cluster.names):
            await cluster.add_bookie(name)
        assert await until_bookies_serve(cluster)
        volumes = cluster.servers["b1"].engine
        assert isinstance(volumes, MappedVolumes)
        for each, state in zip(volumes.serving, states, strict=True):
            if state is VolumeState.LOST:
                cluster.monitor.volumes.broken.add(("b1", each.config.ledger_dir))
                volumes.members.lose(each.number, "its disk is taken away")
            elif state is VolumeState.DRAINING:
                await wait_until_done(partial(volumes.members.set_state, each.number, state))
            elif full:
                cluster.operators["b1"].disk.limit(each.config.ledger_dir, 0)
        await asyncio.sleep(5)
        assert await until_bookies_serve(cluster) is not bool(cluster.monitor.problems)
        return cluster.store.read(lambda tree: tree.find("/ledgers/available/b1")) is None

    with cluster.world as world:
        read_only = world.loop.run_until_complete(main())
    return [problem.split(":")[0] for problem in cluster.monitor.problems], read_only


USED, DRAINING, LOST = VolumeState.USED, VolumeState.DRAINING, VolumeState.LOST


@pytest.mark.rule("V5")
@pytest.mark.parametrize(
    ("states", "full", "found", "read_only"),
    [
        ([LOST, LOST, DRAINING], False, [], True),
        ([LOST, DRAINING, DRAINING], False, [], True),
        ([LOST, DRAINING, USED], False, [], False),
        ([LOST, DRAINING, USED], True, ["V5"], True),
    ],
)
def test_a_bookie_may_be_read_only_when_no_directory_of_it_gets_new_ledgers(
    states: list[VolumeState], full: bool, found: list[str], read_only: bool
) -> None:
    assert with_states(states, full=full) == (found, read_only)
