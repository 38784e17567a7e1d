"""A few cuts, and planted bugs that they have to show; ``make power-cuts N=…`` makes more."""

from __future__ import annotations

import pytest

from bookkeeper import real
from tests.power_cuts.__main__ import document
from tests.power_cuts.campaign import Moment, Tally, campaign
from tests.power_cuts.volume import why_not

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

EXT4 = [("ext4", "")]


@pytest.fixture(autouse=True)
def _with_loop_devices() -> None:
    if reason := why_not():
        pytest.skip(reason)


@pytest.mark.rule("B1", "B2", "B3", "B4", "B5", "K1", "K2", "K3", "K7", "K9", "K13", "K17", "K21", "M6")
@pytest.mark.parametrize("seed", [1, 2])
def test_a_power_cut_takes_nothing_that_was_acknowledged(seed: int) -> None:
    tally = real.run(campaign(3, seed, EXT4))
    assert tally.problems == []
    assert sum(tally.cuts.values()) == 3
    counts = tally.counts["ext4"]
    assert counts["starts"] >= 3 and counts["entries"] > 0


@pytest.mark.rule("K7")
@pytest.mark.parametrize("sabotage", ["no-journal-syncs", "early-answers"])
def test_a_bookie_with_a_bug_is_noticed(sabotage: str) -> None:
    tally = real.run(campaign(40, 1, EXT4, sabotage))
    assert tally.problems
    assert sum(tally.cuts.values()) < 40


def test_the_table_says_what_was_done() -> None:
    tally = Tally()
    tally.cuts.update({("ext4", Moment.START): 1, ("ext4", Moment.LOAD): 2, ("xfs", Moment.STOP): 4})
    tally.counts["ext4"].update({"starts": 5, "entries": 1234, "fences": 6})
    tally.counts["xfs"].update({"starts": 1, "explicit LACs": 7, "collected ledgers": 8})
    page = document(tally, 1, ["btrfs"])
    assert "| ext4 | 1 | 2 | 0 | 5 | 1,234 | 0 | 6 | 0 |" in page
    assert "| xfs | 0 | 0 | 4 | 1 | 0 | 7 | 0 | 8 |" in page
    assert "| all | 1 | 2 | 4 | 6 | 1,234 | 7 | 6 | 8 |" in page
    assert "N=7" in page and "Wrong: none." in page and "No btrfs" in page
    tally.problems.append("entry 1 is gone")
    assert "Wrong: 1." in document(tally, 1, [])
