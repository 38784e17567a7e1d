"""Bookies in random order, of which only those that are looked at are drawn.

To choose three bookies of five hundred, three or a few more have to be drawn; to shuffle all of them costs more than
the choice. Small clusters are shuffled whole.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableSequence, Sequence
from typing import Any, Final, Protocol, overload

from bookkeeper.ids import BookieId

EAGER_MAX: Final = 32
"""Of so many bookies all are drawn at once."""


class Chance(Protocol):
    """The part of a source of chance that is used."""

    def randrange(self, start: int, stop: int) -> int: ...
    def shuffle(self, x: MutableSequence[Any]) -> None: ...


class Candidates(Sequence[BookieId]):
    """``pool`` in random order, and ``last`` in random order behind it."""

    def __init__(self, pool: tuple[BookieId, ...], last: Sequence[BookieId], chance: Chance) -> None:
        self.pool = pool
        """All but the last ones, as they were given: the same object as long as they are the same."""
        self._last = list(last)
        self._chance = chance
        self._drawn: list[BookieId] = []
        self._moved: dict[int, BookieId] = {}
        """Positions of the pool that hold another bookie since theirs was drawn."""
        if len(pool) <= EAGER_MAX:
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
            other = self._chance.randrange(at, len(pool))
            self._drawn.append(moved.pop(other, pool[other]) if other == at else moved.get(other, pool[other]))
            if other != at:
                moved[other] = moved.pop(at, pool[at])
