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
