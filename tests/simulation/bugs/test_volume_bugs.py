"""Bugs of several ledger directories are planted where they work, and are gone afterwards."""

from __future__ import annotations

import pytest

from bookkeeper.testing.patches import patches
from bookkeeper.volumes.disks.volume_list import VolumeList
from bookkeeper.volumes.map.ledger_map import PlacementKind, PlacementRecord, Placements
from bookkeeper.volumes.map.placement_log import PlacementLog
from bookkeeper.volumes.map.stored_ledger_map import StoredLedgerMap
from bookkeeper.volumes.routing.ledger_moves import LedgerMoves
from bookkeeper.volumes.routing.routes import Routes
from bookkeeper.volumes.volume_drain import VolumeDrain
from tests.simulation.bugs.bugs import BUGS
from tests.simulation.bugs.volume_bugs import VOLUME_BUGS
from tests.simulation.plan import FIRST_WITH_VOLUMES

WATCHED = (LedgerMoves, StoredLedgerMap, PlacementLog, Placements, Routes, VolumeDrain, VolumeList)


def test_they_are_bugs_like_the_others() -> None:
    assert len(VOLUME_BUGS) >= 6
    for name, bug in VOLUME_BUGS.items():
        assert BUGS[name] is bug and bug.first == FIRST_WITH_VOLUMES
        assert "B12" in bug.breaks or "K35" in bug.breaks or "B3" in bug.breaks


@pytest.mark.parametrize("name", list(VOLUME_BUGS))
def test_a_planted_bug_is_gone_afterwards(name: str) -> None:
    before = [dict(vars(owner)) for owner in WATCHED]
    with patches() as patch:
        VOLUME_BUGS[name].plant(patch)
    assert [dict(vars(owner)) for owner in WATCHED] == before


def test_a_loss_that_is_forgotten_leaves_nothing_lost() -> None:
    placed = PlacementRecord(PlacementKind.PLACED, 7, 1)
    lost = PlacementRecord(PlacementKind.VOLUME_LOST, volume=1)
    assert set(Placements([placed, lost]).lost) == {7}
    with patches() as patch:
        VOLUME_BUGS["loss-forgotten"].plant(patch)
        assert not Placements([placed, lost]).lost
