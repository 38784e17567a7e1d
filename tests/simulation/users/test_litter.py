"""Litter: work for compaction, and what must be true of it."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from bookkeeper.ids import LedgerId
from tests.bookkeeper.storage.recording_disk import RecordingDisk
from tests.bookkeeper.storage.workload import open_engine
from tests.simulation import run_seed
from tests.simulation.plan import FIRST_WITH_COMPACTION, plan
from tests.simulation.users.litter import LITTER, Litter, make_litter


def litter_on(disk: RecordingDisk) -> tuple[Any, Any, Litter, list[str]]:
    engine, workers = open_engine(disk)
    problems: list[str] = []
    return (
        engine,
        workers,
        Litter(engine, Random(1), lambda rule, what: problems.append(rule), lambda what: None),
        problems,
    )


def test_ledgers_come_and_go_and_nothing_is_wrong_with_them() -> None:
    engine, workers, litter, problems = litter_on(RecordingDisk())
    for _ in range(200):
        litter._one_round()
        workers.pump()
        litter._check()
        workers.pump()
    assert not problems and engine.stats.dropped_ledgers > 10
    assert all(ledger >= LITTER for ledger in engine.ledgers())


@pytest.mark.rule("G3", "M6")
def test_an_older_entry_and_a_ledger_that_is_back_are_problems() -> None:
    _, workers, litter, problems = litter_on(RecordingDisk())
    litter._one_round()
    workers.pump()
    ((ledger, entries),) = litter._living.items()
    kept, entries[0] = entries[0], make_litter(ledger, 0, 5)
    litter._check()
    workers.pump()
    entries[0] = kept
    litter._collected.add(LedgerId(ledger))
    litter._check()
    assert problems == ["G3", "M6"]


def test_a_new_life_goes_on_with_new_ledgers_and_collects_the_old_ones() -> None:
    disk = RecordingDisk()
    _, workers, litter, _ = litter_on(disk)
    for _ in range(20):
        litter._one_round()
        workers.pump()
    engine, workers, again, problems = litter_on(RecordingDisk(disk.files()))
    assert again._next > max(engine.ledgers())
    for _ in range(40):
        again._one_round()
        again._check()
        workers.pump()
    assert not problems and min(engine.ledgers()) > litter._next - 1


@pytest.mark.rule("G3", "G5")
def test_a_world_with_compactions_is_without_fault() -> None:
    assert plan(FIRST_WITH_COMPACTION).litter and not plan(FIRST_WITH_COMPACTION - 1).litter
    result = run_seed(FIRST_WITH_COMPACTION)
    assert not result.problems, result.report()
    assert result.counts["compactions"] > 20


@pytest.mark.rule("G3", "M6")
@pytest.mark.parametrize(("bug", "world"), [("compaction-moves-what-has-changed", 6), ("compaction-brings-back", 6)])
def test_a_planted_bug_is_found(bug: str, world: int) -> None:
    """In the world in which it was found last, or in one of the next: another order of writes moves it a little."""
    first = FIRST_WITH_COMPACTION + world
    assert any(run_seed(seed, bug).problems for seed in range(first, first + 6))
