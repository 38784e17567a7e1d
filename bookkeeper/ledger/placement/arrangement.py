"""Arranges bookies so that the copies of each entry stand apart. Pure; a search that finds what there is.

An ensemble takes turns: every run of Qw neighbours, around the end, is the write set of some entries. What counts is
therefore in how many places the bookies of each such *window* stand, not those of the whole ensemble: with six bookies
in two racks, three and three next to each other would keep all copies of some entries in one rack.

Bookies of one place are interchangeable here, so the search goes over places: position by position, the place whose
next bookie comes first among the candidates, places that the window does not have yet before the others; it goes back
when a window cannot reach its number. Two untouched places with equally many bookies are equal, and one of them is
tried.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from bookkeeper.ids import BookieId
from bookkeeper.ledger.location import Location

STEPS_MAX: Final = 20_000
"""Positions that one search tries at most. Searches of usual ensembles need a few dozen."""

Slots = Sequence[BookieId | None]
"""The bookie of each position of an ensemble; None where one is to be chosen."""


class Windows:
    """What every window of an ensemble has to reach: a number of racks, and a number of regions."""

    def __init__(self, size: int, racks: int, regions: int) -> None:
        """``size``: the write quorum."""
        self.size, self.racks, self.regions = size, racks, regions

    def reached(self, places: Sequence[Location | None]) -> bool:
        """Whether a window with these places, of which None are still free, has or can still have enough."""
        free = sum(place is None for place in places)
        known = [place for place in places if place is not None]
        return len(set(known)) + free >= self.racks and len({place.region for place in known}) + free >= self.regions


def arrange(
    slots: Slots, candidates: Sequence[BookieId], where: Mapping[BookieId, Location], wanted: Windows
) -> tuple[BookieId, ...] | None:
    """Fill the free slots with distinct candidates so that every window reaches what is wanted; None if that cannot be.

    Args:
        candidates: distinct, none of them in ``slots``; the first ones are preferred.
        where: the place of every bookie in ``slots`` and ``candidates``.
    """
    if (quick := _one_of_each_place(slots, candidates, where, wanted)) is not None:
        return quick
    search = _Search(slots, candidates, where, wanted)
    return tuple(search.chosen) if search.run(0) else None  # type: ignore[arg-type]


def _one_of_each_place(
    slots: Slots, candidates: Sequence[BookieId], where: Mapping[BookieId, Location], wanted: Windows
) -> tuple[BookieId, ...] | None:
    """The first candidates that all stand in different places, if that is enough, or the first of all where there is
    only one place and one is enough: mostly no search is needed."""
    if any(slots):
        return None
    chosen: dict[Location, BookieId] = {}
    for bookie in candidates:
        if chosen.setdefault(where[bookie], bookie) is bookie and len(chosen) == len(slots):
            break
    places, size = list(chosen), wanted.size
    if len(places) < len(slots):
        enough = len(places) == 1 == wanted.racks == wanted.regions and len(candidates) >= len(slots)
        return tuple(candidates[: len(slots)]) if enough else None
    starts = range(len(places) if wanted.regions > 1 and size < len(places) else 1)
    if wanted.regions > 1 and any(not wanted.reached((places + places)[at : at + size]) for at in starts):
        return None
    return tuple(chosen.values())


class _Search:
    def __init__(
        self, slots: Slots, candidates: Sequence[BookieId], where: Mapping[BookieId, Location], wanted: Windows
    ) -> None:
        self.chosen: list[BookieId | None] = list(slots)
        self._places = [None if bookie is None else where[bookie] for bookie in slots]
        self._free = [at for at, bookie in enumerate(slots) if bookie is None]
        self._wanted = wanted
        self._steps = 0
        self._groups: dict[Location, list[BookieId]] = {}
        self._rank: dict[BookieId, int] = {}
        for rank, bookie in enumerate(candidates):
            self._groups.setdefault(where[bookie], []).append(bookie)
            self._rank[bookie] = rank
        self._taken = dict.fromkeys(self._groups, 0)

    def run(self, index: int) -> bool:
        """Fill the free slots from the one with this index on."""
        if index == len(self._free):
            return all(self._window_reaches(at) for at in range(len(self.chosen)))
        at = self._free[index]
        for place in self._order(at):
            self._steps += 1
            if self._steps > STEPS_MAX:
                return False
            taken = self._taken[place]
            self.chosen[at], self._places[at] = self._groups[place][taken], place
            self._taken[place] = taken + 1
            if self._windows_reach(at) and self.run(index + 1):
                return True
            self._taken[place] = taken
            self.chosen[at] = self._places[at] = None
        return False

    def _order(self, at: int) -> list[Location]:
        """The places to try at a position, the best first; of untouched places of one size in one region the first."""
        near = self._near(at)
        regions = {place.region for place in near}
        found: list[tuple[bool, bool, int, Location]] = []
        seen: set[tuple[str, int, bool]] = set()
        for place, bookies in self._groups.items():
            taken = self._taken[place]
            if taken == len(bookies):
                continue
            found.append((place.region in regions, place in near, self._rank[bookies[taken]], place))
        found.sort()
        order: list[Location] = []
        for _, _, _, place in found:
            if not self._taken[place] and place not in near:
                kind = (self._kind(place), len(self._groups[place]), place in self._places)
                if kind in seen:
                    continue
                seen.add(kind)
            order.append(place)
        return order

    def _kind(self, place: Location) -> str:
        return place.region if self._wanted.regions > 1 else ""

    def _near(self, at: int) -> set[Location]:
        """The places of all windows that a position is in."""
        reach, count = self._wanted.size - 1, len(self.chosen)
        around = range(at - min(reach, count - 1), at + min(reach, count - 1) + 1)
        return {place for i in around if (place := self._places[i % count]) is not None}

    def _windows_reach(self, at: int) -> bool:
        return all(self._window_reaches(at - back) for back in range(self._wanted.size))

    def _window_reaches(self, start: int) -> bool:
        count = len(self.chosen)
        return self._wanted.reached([self._places[(start + i) % count] for i in range(self._wanted.size)])
