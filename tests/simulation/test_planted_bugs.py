"""The simulator finds planted bugs; docs/faultlog.md says at which seed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation import run_seed
from tests.simulation.bugs.bugs import BUGS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "faultlog.md"
CLUSTERS, _, _ = PAGE.read_text().partition("\n## Without a planted bug")
ROWS = {
    cells[0].strip("` "): cells[4].strip()
    for line in CLUSTERS.splitlines()
    if line.startswith("| `") and len(cells := line.strip("| ").split("|")) >= 5
}
FAST = [name for name, seed in ROWS.items() if seed.isdigit() and int(seed) <= 1][:8]


def test_the_page_names_every_planted_bug_and_all_were_found() -> None:
    assert list(ROWS) == list(BUGS)
    assert [name for name, seed in ROWS.items() if not seed.isdigit()] == []


@pytest.mark.parametrize("name", FAST)
def test_fast_ones_are_found(name: str) -> None:
    assert any(run_seed(seed, name).problems for seed in range(int(ROWS[name]), int(ROWS[name]) + 10))
