"""Bugs of placement are found by the watch over where copies stand, and are gone afterwards."""

from __future__ import annotations

from bookkeeper.ledger.placement.spread_choice import SpreadChoice
from bookkeeper.testing.patches import patches
from tests.simulation.bugs.bugs import BUGS
from tests.simulation.bugs.rack_bugs import RACK_BUGS
from tests.simulation.plan import FIRST_WITH_RACKS


def test_they_are_bugs_like_the_others_and_are_gone_afterwards() -> None:
    assert len(RACK_BUGS) == 2
    before = (SpreadChoice.replace, SpreadChoice._too_near)
    for name, bug in RACK_BUGS.items():
        assert BUGS[name] is bug and bug.first == FIRST_WITH_RACKS and bug.breaks == "Q6"
        with patches() as patch:
            bug.plant(patch)
            assert (SpreadChoice.replace, SpreadChoice._too_near) != before
        assert (SpreadChoice.replace, SpreadChoice._too_near) == before
