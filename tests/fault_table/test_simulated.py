"""A part of the table in every run, and planted bugs that it has to notice; ``make fault-table`` makes all of it."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

import pytest

from bookkeeper.storage.base import durable_file
from bookkeeper.storage.journal import group_commit
from bookkeeper.testing.world import SimFile
from tests.fault_table.simulated import PER_LEDGER, Trial, try_cell
from tests.fault_table.table import CALLS, PLACES, Cell, Result, When, cells
from tests.simulation.bugs.bugs import BUGS


def some_cells() -> list[Cell]:
    """Each call of each kind of file, in each phase; errors and numbers take turns."""
    chosen: dict[tuple[object, ...], list[Cell]] = {}
    for cell in cells((When.FIRST, When.ALL)):
        chosen.setdefault((cell.place, cell.call, cell.starting), []).append(cell)
    return [row[at % len(row)] for at, row in enumerate(chosen.values())]


@pytest.mark.rule("K5", "K6", "K7", "K23", "K24", "K25", "K26", "K27", "K28")
def test_each_call_may_fail() -> None:
    trials = [try_cell(cell) for cell in some_cells()]
    assert [str(trial) for trial in trials if not trial.is_good] == []
    assert sum(trial.met for trial in trials) > 50, "the faults are met"
    assert {trial.result for trial in trials} == set(Result)


@pytest.mark.rule("K5", "K7", "K23", "K26", "K28", "K33", "K34")
def test_each_call_may_fail_with_a_log_per_ledger() -> None:
    trials = [try_cell(cell, settings=PER_LEDGER) for cell in some_cells() if cell.place in ("log", "ledger directory")]
    assert [str(trial) for trial in trials if not trial.is_good] == []
    assert sum(trial.met for trial in trials) > 10, "the faults are met"


def test_the_table_has_every_call_of_every_kind_of_file() -> None:
    every = list(cells())
    assert len(every) == len(set(every)) > 1000
    assert {cell.call for cell in every} == set(CALLS) and {cell.place for cell in every} == set(PLACES)


# -- planted bugs ---------------------------------------------------------------------------------------------


def a_failed_sync_is_tried_again(patch: pytest.MonkeyPatch) -> None:
    def twice(file: SimFile) -> None:
        try:
            file.sync()
        except OSError:
            file.sync()

    for module in ("base.durable_file", "journal.group_writer", "checkpoint.checkpoint", "entry_log.entry_log_file"):
        patch.setattr(f"bookkeeper.storage.{module}.sync", twice, raising=False)
    patch.setattr(durable_file, "sync", twice)


def a_full_disk_is_a_broken_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(group_commit, "TRANSIENT", frozenset[int]())


def a_short_write_is_a_whole_one(patch: pytest.MonkeyPatch) -> None:
    original = SimFile.pwrite

    def lenient(self: SimFile, data: Any, offset: int) -> None:
        try:
            original(self, data, offset)
        except OSError:
            if ".journal" not in self.path:
                raise

    patch.setattr(SimFile, "pwrite", lenient)


def what_cannot_be_read_is_denied(patch: pytest.MonkeyPatch) -> None:
    BUGS["damage-is-denied"].plant(patch.setattr)


PLANTED: dict[Callable[[pytest.MonkeyPatch], None], list[Cell]] = {
    a_failed_sync_is_tried_again: [Cell("journal", "sync", errno.EIO, When.FIRST, False)],
    a_full_disk_is_a_broken_one: [Cell("journal", "pwrite", errno.ENOSPC, When.FIRST, False)],
    a_short_write_is_a_whole_one: [Cell("journal", "short pwrite", errno.EIO, When.FIRST, False)],
    what_cannot_be_read_is_denied: [Cell("log", "pread", errno.EIO, When.ALL, False)],
}


@pytest.mark.parametrize("plant", list(PLANTED), ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_found(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(try_cell(cell).is_good for cell in PLANTED[plant])
    plant(monkeypatch)
    found: list[Trial] = [try_cell(cell) for cell in PLANTED[plant]]
    assert not all(trial.is_good for trial in found), [str(trial) for trial in found]
