"""Whole clusters by seed: nothing is found, and a seed is a seed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation import run_seed
from tests.simulation.plan import (
    FIRST_OF_LATER,
    FIRST_WITH_COLLECTION,
    FIRST_WITH_DAMAGE,
    FIRST_WITH_ENCRYPTION,
    FIRST_WITH_ENDED_WRITES,
    FIRST_WITH_HEALERS,
    FIRST_WITH_LEDGER_LOGS,
    FIRST_WITH_RACKS,
    FIRST_WITH_REPAIRERS,
    FIRST_WITH_ROLLBACK,
    FIRST_WITH_SCRUB,
    FIRST_WITH_UNDELETION,
    FIRST_WITH_VOLUMES,
)

CHUNK = 4
SEEDS = 64
KEPT = [
    int(line.split("#")[0])
    for line in (Path(__file__).parent / "seeds.txt").read_text().splitlines()
    if line.split("#")[0].strip()
]


@pytest.mark.rule("W1", "W2", "W3", "W4", "W5", "W6", "W9", "R2", "R3", "R4", "R5", "R9", "R10", "R11", "R12", "R15")
@pytest.mark.rule("L1", "L2", "L3", "M2", "M3", "M4", "M5", "B1", "B2", "B3", "B5", "K7", "K9", "K17")
@pytest.mark.rule("V1", "V2", "V5", "V7", "A1", "A2", "A3", "A5", "B9", "K18", "K19", "K32", "Z6")
@pytest.mark.rule("F1", "F2", "F3", "F4", "F5", "F6", "F8", "F9")
@pytest.mark.parametrize(
    "first",
    [
        *range(0, SEEDS, CHUNK),
        *(FIRST_OF_LATER, FIRST_OF_LATER + CHUNK, FIRST_WITH_REPAIRERS),
        *range(FIRST_WITH_DAMAGE, FIRST_WITH_DAMAGE + 4 * CHUNK, CHUNK),
    ],
)
def test_nothing_is_found(first: int) -> None:
    for seed in range(first, first + CHUNK):
        result = run_seed(seed)
        assert not result.problems, result.report()


@pytest.mark.rule("M10", "M6", "G1", "F10")
@pytest.mark.parametrize("first", range(FIRST_WITH_ROLLBACK, FIRST_WITH_ROLLBACK + 16, CHUNK))
def test_nothing_is_found_where_metadata_are_put_back(first: int) -> None:
    for seed in range(first, first + CHUNK, 2):
        result = run_seed(seed)
        assert result.counts["metadata put back"] == 1
        assert not result.problems, result.report()


@pytest.mark.rule("B1", "K5", "K9", "K33", "K34")
@pytest.mark.parametrize("seed", range(FIRST_WITH_LEDGER_LOGS, FIRST_WITH_LEDGER_LOGS + 6))
def test_nothing_is_found_with_a_log_per_ledger(seed: int) -> None:
    result = run_seed(seed)
    assert not result.problems, result.report()


@pytest.mark.rule("G1", "Z6", "B5")
@pytest.mark.parametrize("seed", range(FIRST_WITH_COLLECTION, FIRST_WITH_COLLECTION + 6))
def test_what_a_follower_does_not_show_is_not_collected(seed: int) -> None:
    result = run_seed(seed)
    assert not result.problems, result.report()


@pytest.mark.rule("A5", "A7", "A8", "A9", "V3")
@pytest.mark.parametrize("seed", range(FIRST_WITH_HEALERS, FIRST_WITH_HEALERS + 8))
def test_where_autorecovery_runs_every_ledger_becomes_whole(seed: int) -> None:
    result = run_seed(seed)
    assert not result.problems, result.report()


@pytest.mark.rule("K30", "B5", "B9", "V3")
@pytest.mark.parametrize("seed", range(FIRST_WITH_SCRUB, FIRST_WITH_SCRUB + 8))
def test_what_rots_is_found_and_repaired(seed: int) -> None:
    result = run_seed(seed)
    assert not result.problems, result.report()


@pytest.mark.rule("B12", "K35", "B3", "B5", "V3")
@pytest.mark.parametrize("seed", range(FIRST_WITH_VOLUMES, FIRST_WITH_VOLUMES + 2))
def test_ledger_directories_fail_are_drained_and_come_back(seed: int) -> None:
    result = run_seed(seed)
    assert not result.problems, result.report()


@pytest.mark.rule("G8", "M2", "L1")
@pytest.mark.parametrize("seed", range(FIRST_WITH_UNDELETION, FIRST_WITH_UNDELETION + 4))
def test_ledgers_that_are_brought_back_are_whole(seed: int) -> None:
    result = run_seed(seed)
    assert result.counts["ledgers brought back"] and not result.problems, result.report()


@pytest.mark.parametrize("seed", [seed for seed in KEPT if seed >= SEEDS] or [KEPT[-1]])
def test_seeds_that_once_found_something(seed: int) -> None:
    result = run_seed(seed)
    assert not result.problems, result.report()


def test_the_same_seed_is_the_same_world_in_every_process() -> None:
    here = run_seed(50).digest
    assert run_seed(50).digest == here
    script = "from tests.simulation import run_seed; print(run_seed(50).digest)"
    environment = {**os.environ, "PYTHONHASHSEED": "4711"}
    out = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert out.stdout.strip() == here
    assert run_seed(52).digest != here


@pytest.mark.rule("X24")
@pytest.mark.parametrize("seed", range(FIRST_WITH_ENCRYPTION, FIRST_WITH_ENCRYPTION + 8))
def test_nothing_is_sealed_twice_whatever_becomes_of_appends_and_metadata(seed: int) -> None:
    """Writers choose ids, lose their patience and try other bytes; in every second world metadata are put back."""
    result = run_seed(seed)
    assert not result.problems, result.report()
    assert result.counts["entries sealed"] > 0
    assert result.counts.get("metadata put back", 0) == 1 - seed % 2


@pytest.mark.rule("Q6", "A5", "V3")
@pytest.mark.parametrize("seed", range(FIRST_WITH_RACKS, FIRST_WITH_RACKS + 8))
def test_copies_stay_in_different_racks_whatever_is_lost(seed: int) -> None:
    """Every second world enforces it, and then no ensemble lacks it; elsewhere most ensembles have it."""
    result = run_seed(seed)
    assert not result.problems, result.report()
    assert result.counts["ensembles_apart"] > 3 * result.counts.get("ensembles_together", 0)


@pytest.mark.rule("M8", "Z1", "A7", "G8")
@pytest.mark.parametrize("seed", range(FIRST_WITH_ENDED_WRITES, FIRST_WITH_ENDED_WRITES + 4))
def test_a_write_that_was_done_when_its_session_ended_does_no_harm(seed: int) -> None:
    result = run_seed(seed)
    assert not result.problems, result.report()
