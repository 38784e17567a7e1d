"""Which marked ledger is next."""

from __future__ import annotations

from random import Random

import pytest

from bookkeeper.autorecovery.repair_queue import RepairQueue
from bookkeeper.errors import InvariantError
from bookkeeper.ids import LedgerId

ONE, TWO, THREE = (LedgerId(i) for i in (1, 2, 3))


def queue(*ledgers: LedgerId, seed: int = 1) -> RepairQueue:
    made = RepairQueue(backoff_s=5.0, backoff_max_s=60.0, rng=Random(seed))
    made.on_listed(ledgers, 0.0)
    return made


def drained(made: RepairQueue, now: float) -> list[LedgerId]:
    found = []
    while (ledger := made.take(now)) is not None:
        found.append(ledger)
    return found


def test_every_ledger_is_given_out_once() -> None:
    made = queue(ONE, TWO, THREE)
    assert sorted(drained(made, 0.0)) == [ONE, TWO, THREE]
    made.on_listed([ONE, TWO, THREE], 1.0)
    assert made.take(1.0) is None, "they are being repaired"
    made.validate_state()


def test_several_workers_begin_at_different_ends() -> None:
    ledgers = [LedgerId(i) for i in range(50)]
    orders = [drained(queue(*ledgers, seed=seed), 0.0) for seed in range(5)]
    assert len({order[0] for order in orders}) >= 4


@pytest.mark.rule("A8")
def test_a_failure_waits_longer_each_time_and_the_others_are_not_delayed() -> None:
    made = queue(ONE, TWO)
    now, pauses = 0.0, []
    for _ in range(6):
        ledgers = drained(made, now)
        assert ONE in ledgers
        made.on_failed(ONE, "no bookie can take it", now)
        due = made.next_due()
        assert due is not None
        pauses.append(due - now)
        now = due
    assert pauses == [5, 10, 20, 40, 60, 60]
    ((ledger, stuck),) = made.stuck()
    assert (ledger, stuck.reason, stuck.tries, stuck.since) == (ONE, "no bookie can take it", 6, 0.0)


def test_a_reason_that_ends_at_a_known_time_is_waited_for_and_counts_as_no_failure() -> None:
    made = queue(ONE)
    made.take(0.0)
    made.on_failed(ONE, "its grace period", 0.0, until=30.0)
    assert made.take(29.9) is None and made.next_due() == 30.0
    assert made.take(30.0) == ONE
    made.on_failed(ONE, "no bookie", 30.0)
    assert made.next_due() == 35.0, "the first failure"


def test_what_another_worker_repairs_is_looked_at_again_soon() -> None:
    made = queue(ONE)
    made.take(0.0)
    made.on_busy(ONE, "worker-2", 0.0)
    assert made.next_due() == 5.0 and [each.reason for _, each in made.stuck()] == [
        "worker-2 repairs it now and holds its lock"
    ]


@pytest.mark.rule("A9")
def test_what_is_no_longer_marked_is_forgotten_and_comes_back_fresh() -> None:
    made = queue(ONE, TWO)
    made.take(0.0)
    made.take(0.0)
    made.on_failed(ONE, "no bookie", 0.0)
    made.on_repaired(TWO)
    made.on_listed([], 1.0)
    assert made.next_due() is None
    made.on_listed([ONE], 2.0)
    assert made.take(2.0) == ONE and list(made.stuck()) == []


def test_who_waits_is_tried_at_once_when_that_is_asked_for() -> None:
    made = queue(ONE)
    made.take(0.0)
    made.on_failed(ONE, "no bookie", 0.0)
    made.retry_now(1.0)
    assert made.take(1.0) == ONE


def test_a_ledger_in_two_places_is_noticed() -> None:
    made = queue(ONE)
    made.taken[ONE] = made.waiting[ONE]
    with pytest.raises(InvariantError, match="A8"):
        made.validate_state()
