"""Two cells in real processes; ``make fault-table`` makes the rest."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from tests.fault_table import real
from tests.fault_table.table import Cell, Result, When

pytestmark = [pytest.mark.integration, pytest.mark.skipif(real.why_not() is not None, reason=str(real.why_not()))]


@pytest.mark.rule("K23", "K26")
@pytest.mark.parametrize(
    ("cell", "result"),
    [
        (Cell("log", "sync", errno.EIO, When.FIRST, False), Result.FAILS),
        (Cell("journal", "pwrite", errno.ENOSPC, When.FIRST, False), Result.REFUSES),
    ],
    ids=["a failed sync", "a full disk"],
)
def test_a_real_process_meets_a_fault(cell: Cell, result: Result, tmp_path: Path) -> None:
    with real.Processes(real.build(tmp_path)) as processes:
        trial = real.try_cell(cell, processes)
    assert trial.met and trial.is_good and trial.result is result, str(trial)
