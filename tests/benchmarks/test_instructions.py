"""The counts of instructions hold their budgets, and the harness counts what it says."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import pytest

from benchmarks.instructions import ROWS, SIMULATED_ROWS, CountedWork, Counts, count_simulated, missing
from bookkeeper.codec import IMPLEMENTATION

WHERE: Final = (3, 11)
"""The version of CPython whose instructions the budgets count."""


def _why_not() -> str:
    if sys.version_info[:2] != WHERE or sys.implementation.name != "cpython":
        return "the budgets are for CPython 3.11"
    if IMPLEMENTATION != "native":
        return "the budgets are for the compiled codec"
    return missing("valgrind", "vgdb")


@pytest.mark.integration
@pytest.mark.skipif(bool(_why_not()), reason=_why_not() or "not skipped")
def test_adds_in_a_simulated_cluster_take_no_more_instructions_than_their_budget(tmp_path: Path) -> None:
    counted = count_simulated([row for row, _ in SIMULATED_ROWS], tmp_path)
    for (row, budget), seen in zip(SIMULATED_ROWS, counted, strict=True):
        assert 0.8 * budget < seen <= budget, f"{row.name}: {seen:,.0f} instructions an add, {budget:,} are its budget"


def test_each_row_has_budgets_of_client_and_bookies_and_one_name() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert all(row.client > 0 and row.bookies > 0 and row.count > 0 for row in ROWS)


def test_a_row_is_over_its_budget_when_either_side_is() -> None:
    row = CountedWork("a", {}, 1, client=100, bookies=200)
    assert Counts(row, 100, 200).within()
    assert not Counts(row, 101, 200).within()
    assert not Counts(row, 100, 201).within()
