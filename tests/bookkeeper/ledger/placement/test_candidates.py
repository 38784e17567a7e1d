"""Bookies in random order, drawn as far as they are looked at."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from bookkeeper.ids import BookieId
from bookkeeper.ledger.placement.candidates import EAGER_MAX, Candidates


def _pool(count: int) -> tuple[BookieId, ...]:
    return tuple(BookieId(f"b{number}") for number in range(count))


@pytest.mark.parametrize("count", [0, 1, EAGER_MAX, EAGER_MAX + 1, 200])
def test_each_is_there_once_and_the_last_ones_are_last(count: int) -> None:
    pool, last = _pool(count), (BookieId("x"), BookieId("y"))
    found = Candidates(pool, last, random.Random(1))
    assert len(found) == count + 2
    assert sorted(list(found)[:count]) == sorted(pool)
    assert sorted(list(found)[count:]) == ["x", "y"]
    assert list(found) == list(found) == [found[at] for at in range(len(found))]
    assert found[-1] == list(found)[-1]
    assert found[1:3] == list(found)[1:3]


def test_every_bookie_of_a_large_pool_comes_first_and_third_equally_often() -> None:
    pool, chance = _pool(40), random.Random(7)
    firsts: Counter[BookieId] = Counter()
    thirds: Counter[BookieId] = Counter()
    for _ in range(8_000):
        found = Candidates(pool, (), chance)
        firsts[found[0]] += 1
        thirds[found[2]] += 1
    for counts in (firsts, thirds):
        assert set(counts) == set(pool)
        assert max(counts.values()) < 2 * min(counts.values()), "200 each are expected"


def test_only_what_is_looked_at_is_drawn() -> None:
    class Counting(random.Random):
        draws = 0

        def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
            self.draws += 1
            return super().randrange(start, stop, step)

    chance = Counting(3)
    found = Candidates(_pool(500), (), chance)
    assert len({found[at] for at in range(5)}) == 5
    assert chance.draws == 5


def test_beyond_the_end_is_an_index_error() -> None:
    with pytest.raises(IndexError):
        Candidates(_pool(2), (), random.Random(1))[2]


@pytest.mark.rule("Q6")
@pytest.mark.parametrize("count", [9, EAGER_MAX + 8])
def test_a_heavier_bookie_comes_first_more_often_up_to_three_medians(count: int) -> None:
    pool, chance = _pool(count), random.Random(11)
    weights = {**dict.fromkeys(pool, 10.0), pool[0]: 20.0, pool[1]: 1_000.0, pool[2]: 0.0}
    del weights[pool[3]]
    firsts = Counter(Candidates(pool, (), chance, weights)[0] for _ in range(20_000))
    usual = 20_000 * 10 / (10 * (count - 3) + 20 + 30)
    assert 1.6 < firsts[pool[0]] / usual < 2.4
    assert 2.4 < firsts[pool[1]] / usual < 3.6, "a hundred medians count as three"
    assert firsts[pool[2]] < usual / 4, "a full one is the last resort"
    assert 0.7 < firsts[pool[3]] / usual < 1.3, "one that has not answered is as the median"
    assert sorted(Candidates(pool, (), chance, weights)) == sorted(pool)


def test_without_any_weight_above_zero_all_are_equal() -> None:
    pool = _pool(4)
    chance = random.Random(3)
    firsts = Counter(Candidates(pool, (), chance, dict.fromkeys(pool, 0.0))[0] for _ in range(400))
    assert set(firsts) == set(pool)


def test_the_last_ones_come_in_any_order() -> None:
    pool, last, chance = _pool(2), tuple(map(BookieId, "xyz")), random.Random(2)
    assert len({tuple(Candidates(pool, last, chance))[2:] for _ in range(60)}) == 6
