"""Operators of simulated bookies exchange disks, add and drain directories, and give up what is gone."""

from __future__ import annotations

from bookkeeper.testing.world import World
from bookkeeper.volumes.disks.volume_list import VolumeList, VolumeState, read_volumes, write_volumes
from tests.simulation.users.volume_operator import HOME, PLACES, DiskOperator
from tests.simulation.watch.monitor import Monitor


def new_operator(world: World) -> tuple[DiskOperator, Monitor]:
    monitor = Monitor()
    operator = DiskOperator(world.node("b1", PLACES), PLACES[:2], monitor)
    operator.disk.make_directories(HOME)
    listed = VolumeList(7)
    for place in PLACES[:2]:
        listed = listed.with_new(place, place, VolumeState.USED)
    write_volumes(operator.disk, HOME, listed)
    return operator, monitor


def test_a_directory_whose_disk_was_exchanged_is_given_up_when_a_start_is_refused() -> None:
    with World(1) as world:
        operator, monitor = new_operator(world)
        operator.on_refused()
        assert len(operator.listed()) == 2, "nothing was exchanged"
        operator.exchange("/disk2")
        operator.on_refused()
        listed = read_volumes(operator.disk, HOME)
        assert listed is not None and [each.state.value for each in listed] == ["used", "lost"]
        assert monitor.counts["directories given up"] == 1 and not monitor.problems


def test_a_drained_directory_that_is_wanted_back_is_a_problem() -> None:
    with World(1) as world:
        operator, monitor = new_operator(world)
        operator._told_drained.add("/disk2")
        operator.on_refused()
        assert len(monitor.problems) == 1 and "/disk2" in monitor.problems[0]
