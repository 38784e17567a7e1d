"""Bookies in random order, of which only those that are looked at are drawn.

With *weights* a bookie of twice the weight comes first twice as often. Weights above :data:`WEIGHT_MAX` medians count
as so many, since a bookie that is new and empty must not get all new ledgers at once; one without a weight has the
median.

To choose three bookies of five hundred, three or a few more have to be drawn; to shuffle all of them costs more than
the choice. Small clusters are shuffled whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableSequence, Sequence
from statistics import median
from typing import Any, Final, Protocol, overload

from bookkeeper.ids import BookieId

EAGER_MAX: Final = 32
"""Of so many bookies all are drawn at once."""

WEIGHT_MAX: Final = 3.0
"""The greatest weight that counts, in medians of all."""

TRIES_MAX: Final = 32
"""How often a draw is repeated because the bookie's weight is low, before it counts."""


class Chance(Protocol):
    """The part of a source of chance that is used."""

    def random(self) -> float: ...
    def randrange(self, start: int, stop: int) -> int: ...
    def shuffle(self, x: MutableSequence[Any]) -> None: ...


class Candidates(Sequence[BookieId]):
    """``pool`` in random order, and ``last`` in random order behind it."""

    def __init__(
        self,
        pool: tuple[BookieId, ...],
        last: Sequence[BookieId],
        chance: Chance,
        weights: Mapping[BookieId, float] | None = None,
    ) -> None:
        self.pool = pool
        """All but the last ones, as they were given: the same object as long as they are the same."""
        self._last = list(last)
        self._chance = chance
        self._drawn: list[BookieId] = []
        self._moved: dict[int, BookieId] = {}
        """Positions of the pool that hold another bookie since theirs was drawn."""
        self._weights, self._median = weights, median(weights.values()) if weights else 0.0
        if self._median <= 0:
            self._weights = None
        if len(pool) <= EAGER_MAX and self._weights is None:
            self._drawn = list(pool)
            chance.shuffle(self._drawn)
        chance.shuffle(self._last)

    def __len__(self) -> int:
        return len(self.pool) + len(self._last)

    @overload
    def __getitem__(self, index: int) -> BookieId: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[BookieId]: ...
    def __getitem__(self, index: int | slice) -> BookieId | Sequence[BookieId]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        at = index + len(self) if index < 0 else index
        if not 0 <= at < len(self):
            raise IndexError(index)
        self._draw_up_to(min(at + 1, len(self.pool)))
        return self._drawn[at] if at < len(self.pool) else self._last[at - len(self.pool)]

    def __iter__(self) -> Iterator[BookieId]:
        for at in range(len(self.pool)):
            self._draw_up_to(at + 1)
            yield self._drawn[at]
        yield from self._last

    def _draw_up_to(self, count: int) -> None:
        """Draw the next ones, each of those that are left with the same chance."""
        pool, moved = self.pool, self._moved
        for at in range(len(self._drawn), count):
            other = self._choose(at)
            self._drawn.append(moved.pop(other, pool[other]) if other == at else moved.get(other, pool[other]))
            if other != at:
                moved[other] = moved.pop(at, pool[at])

    def _choose(self, at: int) -> int:
        """A position from ``at`` on, at random, by weight if there are weights."""
        weights, chance, end = self._weights, self._chance, len(self.pool)
        other = chance.randrange(at, end)
        if weights is None:
            return other
        most = WEIGHT_MAX * self._median
        for _ in range(TRIES_MAX):
            bookie = self._moved.get(other, self.pool[other])
            if chance.random() * most < weights.get(bookie, self._median):
                break
            other = chance.randrange(at, end)
        return other
