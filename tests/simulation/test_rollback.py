"""Worlds whose metadata are put back to an older state: who goes on believing them is found."""

from __future__ import annotations

import pytest

from tests.simulation import run_seed
from tests.simulation.faultlog import find
from tests.simulation.plan import FIRST_WITH_ROLLBACK

WITH_SURVIVORS = FIRST_WITH_ROLLBACK + 8
"""A world in which older metadata show some ledgers as they are, and a writer is at work."""


@pytest.mark.rule("M10", "F10")
def test_everybody_ends_nothing_is_dropped_and_after_acceptance_survivors_are_read() -> None:
    """No world put metadata back: that writers, readers and collectors notice it was only told in single stories."""
    result = run_seed(WITH_SURVIVORS)
    assert not result.problems, result.report()
    plan, counts = result.plan, result.counts
    people = plan.writers + plan.recoverers + plan.tailers + plan.repairers
    assert counts["clients ended by MetadataRolledBackError"] == people
    assert counts["writers of before ended by MetadataRolledBackError"] > 0
    assert counts["garbage passes ended by MetadataRolledBackError"] > plan.bookies
    assert counts["ledgers that were put back as they were"] > 0


@pytest.mark.rule("M10")
@pytest.mark.parametrize(
    ("bug", "says"),
    [
        ("rollback-ignored-by-writers", "is open 10 s after"),
        ("rollback-ignored-by-readers", "is open 10 s after"),
        ("rollback-ignored-by-collector", "has dropped ledgers"),
        ("rollback-ignored-at-start", "has started with older metadata"),
        ("rollback-accepted-and-collected", "has dropped ledgers"),
    ],
)
def test_who_ignores_it_is_found(bug: str, says: str) -> None:
    result = find(bug)
    assert result is not None, "not within its number of seeds"
    assert result.problems[0].startswith("M10: ")
    assert says in result.problems[0]
