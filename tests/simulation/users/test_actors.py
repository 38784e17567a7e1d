"""The users of a simulated cluster do all that users do."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.simulation import run_seed
from tests.simulation.plan import FIRST_WITH_REPAIRERS, plan
from tests.simulation.users.actors import MAKERS, AppendingWriter, Healer, Recoverer, Repairer, Tailer


def test_a_few_worlds_hold_every_kind_of_event() -> None:
    counts: Counter[str] = Counter()
    for seed in range(20, 26):
        counts.update(run_seed(seed).counts)
    for what in ("acks", "closes", "creates", "recoveries", "recovery_adds", "ensemble_changes", "tails_to_the_end"):
        assert counts[what] > 5, what
    assert counts["concurrent_recoveries"] > 0


@pytest.mark.rule("A1", "A2", "A3")
def test_repairers_bring_copies_elsewhere_while_everything_else_goes_on() -> None:
    counts: Counter[str] = Counter()
    seeds = [seed for seed in range(FIRST_WITH_REPAIRERS, FIRST_WITH_REPAIRERS + 30) if plan(seed).repairers][:4]
    for seed in seeds:
        result = run_seed(seed)
        assert not result.problems, result.report()
        counts.update(result.counts)
    for what in ("repair_swaps", "repairs swapped", "repairs ended by LedgerFencedError"):
        assert counts[what] > 0, what


def test_a_node_s_name_says_who_runs_on_it() -> None:
    assert {"w": AppendingWriter, "r": Recoverer, "t": Tailer, "d": Repairer, "h": Healer} == MAKERS
