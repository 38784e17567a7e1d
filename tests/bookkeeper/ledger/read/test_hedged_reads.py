"""When a second bookie is asked too."""

from __future__ import annotations

from random import Random

import pytest

from bookkeeper.ledger.read.hedged_reads import HedgedReads
from tests.bookkeeper.validated import validated

Hedged = validated(HedgedReads)


def test_what_is_not_answered_in_time_is_late_once() -> None:
    hedged: HedgedReads[str] = Hedged(500)
    assert hedged.on_asked("a", 1.0)
    assert hedged.wake_at == 1.5
    assert not hedged.on_asked("b", 1.2), "one timer is enough"
    assert hedged.on_tick(1.5) == ["a"]
    assert hedged.wake_at == 1.7
    assert hedged.on_tick(1.7) == ["b"]
    assert hedged.on_tick(9.0) == []
    assert hedged.wake_at is None


def test_what_is_answered_is_never_late() -> None:
    hedged: HedgedReads[str] = Hedged(500)
    hedged.on_asked("a", 1.0)
    hedged.on_asked("b", 1.2)
    hedged.on_ended("a")
    hedged.on_ended("a")
    assert hedged.wake_at == 1.5, "the timer that runs is good enough"
    assert hedged.on_tick(1.5) == []
    assert hedged.wake_at == 1.7
    hedged.on_ended("b")
    assert hedged.on_tick(1.7) == []
    assert hedged.on_asked("c", 2.0), "a new timer"


@pytest.mark.parametrize("seed", range(10))
def test_everything_is_answered_or_late_at_its_time(seed: int) -> None:
    rng, now, count = Random(seed), 0.0, 0
    hedged: HedgedReads[int] = Hedged(500)
    asked: dict[int, float] = {}
    for _ in range(300):
        step = rng.random() / 4
        if hedged.wake_at is not None and hedged.wake_at <= now + step:
            now = hedged.wake_at
            for one in hedged.on_tick(now):
                assert now == pytest.approx(asked.pop(one) + 0.5)
        else:
            now += step
        if rng.random() < 0.5:
            hedged.on_asked(count, now)
            asked[count] = now
            count += 1
        elif asked:
            one = rng.choice(list(asked))
            hedged.on_ended(one)
            del asked[one]
        assert all(now <= at + 0.5 for at in asked.values()), "one of them was forgotten"
