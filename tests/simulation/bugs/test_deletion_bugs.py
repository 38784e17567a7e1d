"""Bugs of deletions are planted where they work, and are gone afterwards."""

from __future__ import annotations

import pytest

from bookkeeper.meta.records.deleted_ledgers import DeletedLedgers
from bookkeeper.testing.patches import patches
from tests.simulation.bugs.bugs import BUGS
from tests.simulation.bugs.deletion_bugs import DELETION_BUGS
from tests.simulation.plan import FIRST_WITH_UNDELETION


def test_they_are_bugs_like_the_others() -> None:
    assert DELETION_BUGS
    for name, bug in DELETION_BUGS.items():
        assert BUGS[name] is bug and bug.first == FIRST_WITH_UNDELETION and "G8" in bug.breaks


@pytest.mark.parametrize("name", list(DELETION_BUGS))
def test_a_planted_bug_is_gone_afterwards(name: str) -> None:
    before = dict(vars(DeletedLedgers))
    with patches() as patch:
        DELETION_BUGS[name].plant(patch)
        assert dict(vars(DeletedLedgers)) != before
    assert dict(vars(DeletedLedgers)) == before
