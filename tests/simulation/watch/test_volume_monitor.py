"""The monitor sees what bookies with several ledger directories must not do."""

from __future__ import annotations

from random import Random

import pytest

from bookkeeper.testing.world import SimDisk
from bookkeeper.volumes.map.ledger_map import PlacementKind, PlacementRecord
from bookkeeper.volumes.map.placement_log import write_placements
from tests.bookkeeper.volumes.doors import Door
from tests.simulation.watch.monitor import Monitor
from tests.simulation.watch.volume_monitor import engine_with, is_lost


class ProgressSource(Door):
    """A door whose bookie is watched; its notes are on a disk that says what survives."""

    def __init__(self) -> None:
        super().__init__(2)
        self.monitor, self.notes = Monitor(), SimDisk(Random(1))
        self.notes.make_directories("/data")
        self.noted()
        self.monitor.volumes.watch("b1", self.volumes, self.notes)

    def noted(self) -> None:
        """The notes are durable as the bookie has them now."""
        write_placements(self.notes, "/data", 77, 1, self.volumes.placements.records())


def test_what_is_right_is_no_problem() -> None:
    door = ProgressSource()
    door.add(1, 0)
    door.noted()
    door.acked(1, 1)
    assert door.monitor.durable["b1"] == {(1, 0), (1, 1)} and not door.monitor.problems


@pytest.mark.rule("K35")
def test_an_answer_before_the_place_is_durable_is_seen() -> None:
    door = ProgressSource()
    door.acked(1, 0)  # these notes do not have it
    assert door.monitor.problems == ["K35: b1 answers for ledger 1 on 1, its notes have None"]


@pytest.mark.rule("B12")
def test_a_disk_that_leaves_though_it_works_is_seen() -> None:
    door = ProgressSource()
    door.add(1, 0)
    door.noted()
    door.acked(1, 1)
    door.volumes.members.lose(1, "no reason")
    assert [each[:3] for each in door.monitor.problems] == ["B12", "B12"]


@pytest.mark.rule("B12")
def test_a_regular_add_to_a_ledger_that_was_on_a_lost_disk_is_seen() -> None:
    door = ProgressSource()
    door.add(1, 0)
    door.noted()
    door.acked(1, 1)
    door.monitor.volumes.broken.add(("b1", "/d1"))
    door.volumes.members.lose(1, "burnt")
    assert is_lost(door.volumes, 1) and engine_with(door.volumes, 1) is None
    assert door.monitor.durable["b1"] == set() and door.monitor.volumes.gone["b1"] == {(1, 0), (1, 1)}
    door.volumes.placements.take(PlacementRecord(PlacementKind.GONE, 1))  # as if it had been deleted
    door.add(1, 2)
    assert door.monitor.problems == ["B12: b1 takes a regular add to ledger 1, which was on a lost disk"]
