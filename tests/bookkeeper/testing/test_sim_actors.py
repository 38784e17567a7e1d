"""The users of a simulated cluster do all that users do."""

from __future__ import annotations

from collections import Counter

from bookkeeper.testing.sim import run_seed
from bookkeeper.testing.sim_actors import MAKERS, Recoverer, Tailer, Writer


def test_a_few_worlds_hold_every_kind_of_event() -> None:
    counts: Counter[str] = Counter()
    for seed in range(20, 26):
        counts.update(run_seed(seed).counts)
    for what in ("acks", "closes", "creates", "recoveries", "recovery_adds", "ensemble_changes", "tails_to_the_end"):
        assert counts[what] > 5, what
    assert counts["concurrent_recoveries"] > 0


def test_a_node_s_name_says_who_runs_on_it() -> None:
    assert {"w": Writer, "r": Recoverer, "t": Tailer} == MAKERS
