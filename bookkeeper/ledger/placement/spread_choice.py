"""Chooses bookies so that the copies of each entry stand in as many racks, or regions, as there are (Q6).

First it looks for an ensemble in which every write set has Qw racks, then Qw - 1, and so on; with regions, it first
looks for the most regions, and then for the most racks. What it looks for among bookies that are not in quarantine is
preferred, unless only one that is brings a write set to the least number of racks. Where the least number is *enforced*
and cannot be had, nothing is chosen, and the error says what lacks; otherwise what comes closest is.

What the best is that a whole cluster can have is remembered until its bookies or their places change. The first few
candidates mostly have it already, and then no others are looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, Protocol

from bookkeeper.amounts import counted
from bookkeeper.errors import NotEnoughBookiesError
from bookkeeper.ids import BookieId
from bookkeeper.ledger.location import Location
from bookkeeper.ledger.placement.arrangement import Slots, Windows, arrange
from bookkeeper.ledger.placement.candidates import Candidates
from bookkeeper.ledger.placement.policy import WhenShort
from bookkeeper.ledger.placement.random_choice import RandomChoice, by_preference
from bookkeeper.ledger.quorum import QuorumSpec

FIRST: Final = (2, 8)
"""Of so many candidates for each position an ensemble is tried, one after the other, before all are looked at."""


class Places(Protocol):
    """Knows where bookies stand."""

    @property
    def version(self) -> int:
        """Another number after every change of a place."""

    def of(self, bookie: BookieId) -> Location:
        """The place of a bookie, also of one that is gone."""


class SpreadChoice:
    """The policy that knows where bookies stand."""

    def __init__(self, places: Places, *, racks_min: int, enforced: bool = False, by_region: bool = False) -> None:
        """Args:
        places: where bookies stand.
        racks_min: the racks that every write set is to have, as far as its copies go.
        enforced: choose nothing that has fewer.
        by_region: the most regions first, and then the most racks.
        """
        self._location_of = places.of
        self._places = places
        self._racks_min = racks_min
        self._enforced = enforced
        self._by_region = by_region
        self._known: dict[QuorumSpec, tuple[tuple[BookieId, ...], int, Windows]] = {}
        """The best that the bookies of a pool can have, and the version of the places of which that is true."""

    def new_ensemble(
        self,
        spec: QuorumSpec,
        candidates: Sequence[BookieId],
        *,
        excluded: Collection[BookieId] = (),
        avoided: Collection[BookieId] = (),
        known_absent: Sequence[BookieId] = (),
        when_short: WhenShort = WhenShort.FAIL,
    ) -> tuple[BookieId, ...]:
        """See :class:`bookkeeper.ledger.placement.policy.PlacementPolicy`.

        Raises:
            NotEnoughBookiesError: there are too few bookies, or, where that is enforced, too few racks.
        """
        quick = self._quick(spec, candidates, {*excluded, *avoided})
        if quick is not None:
            return quick
        usable = by_preference(candidates, set(excluded), avoided)
        found: tuple[BookieId, ...] | None
        if len(usable) < spec.ensemble_size:  # there is no choice but for absent ones, or an error
            found = RandomChoice().new_ensemble(
                spec, usable, excluded=excluded, known_absent=known_absent, when_short=when_short
            )
        else:
            found = self._best(spec, [None] * spec.ensemble_size, usable, set(avoided))
        if found is None or (self._enforced and self._too_near(spec, found)):
            raise NotEnoughBookiesError(f"a ledger with {spec} {self._what_lacks(spec, usable)}")
        if isinstance(candidates, Candidates) and not excluded:
            self._known[spec] = (candidates.pool, self._places.version, self._reached(spec, found))
        return found

    def _quick(
        self, spec: QuorumSpec, candidates: Sequence[BookieId], left_out: Collection[BookieId]
    ) -> tuple[BookieId, ...] | None:
        """An ensemble of the first candidates, if it is as good as any of all of them."""
        copies = spec.write_quorum
        best = Windows(copies, copies, copies if self._by_region else 1)
        if isinstance(candidates, Candidates) and (known := self._known.get(spec)) is not None:
            pool, version, reached = known
            if pool is candidates.pool and version == self._places.version:
                best = reached
        size = spec.ensemble_size
        for each_position in FIRST:
            some = islice((each for each in candidates if each not in left_out), each_position * size)
            first = list(dict.fromkeys(some))
            if len(first) < size:
                return None
            where = {each: self._location_of(each) for each in first}
            found = arrange([None] * size, first, where, best)
            if found is not None:
                return found
        return None

    def _reached(self, spec: QuorumSpec, ensemble: Sequence[BookieId]) -> Windows:
        """What every write set of an ensemble has."""
        sets = [[self._location_of(each) for each in spec.write_set(at, ensemble)] for at in range(len(ensemble))]
        racks = min(len(set(places)) for places in sets)
        regions = min(len({place.region for place in places}) for places in sets)
        return Windows(spec.write_quorum, racks, regions if self._by_region else 1)

    def replace(
        self,
        spec: QuorumSpec,
        ensemble: Sequence[BookieId],
        failed: Collection[BookieId],
        candidates: Sequence[BookieId],
        *,
        avoided: Collection[BookieId] = (),
    ) -> Mapping[BookieId, BookieId]:
        """See :class:`bookkeeper.ledger.placement.policy.PlacementPolicy`. Where racks are enforced, there is no
        stand-in that would leave a write set with fewer than the least number."""
        assert len(ensemble) == spec.ensemble_size
        spares = by_preference(candidates, {*ensemble, *failed}, avoided)
        gone = [bookie for bookie in ensemble if bookie in failed]
        replaced = set(gone[: len(spares)])
        slots = [None if bookie in replaced else bookie for bookie in ensemble]
        found = self._best(spec, slots, spares, set(avoided)) if replaced else None
        if found is None or (self._enforced and self._too_near(spec, found)):
            return {}
        return {old: new for old, new in zip(ensemble, found, strict=True) if old != new}

    def shortfall(self, spec: QuorumSpec, ensemble: Sequence[BookieId]) -> str | None:
        """What this ensemble lacks of the least number of racks, in words; None if nothing."""
        near = self._too_near(spec, ensemble)
        if near is None:
            return None
        racks = sorted({str(self._location_of(bookie)) for bookie in near})
        least = min(self._racks_min, spec.write_quorum)
        stands = f"{'rack' if len(racks) == 1 else 'racks'} {', '.join(racks)}"
        return (
            f"all copies of some entries ({', '.join(near)}) stand in {stands}, and "
            f"{counted(least, 'rack', 'is', 'are')} wanted"
        )

    def move(
        self,
        spec: QuorumSpec,
        ensemble: Sequence[BookieId],
        candidates: Sequence[BookieId],
        *,
        avoided: Collection[BookieId] = (),
    ) -> tuple[BookieId, BookieId] | None:
        """See :class:`bookkeeper.ledger.placement.policy.PlacementPolicy`: the exchange after which the fewest write
        sets have too few racks."""
        least = len(self._near_sets(spec, ensemble))
        found: tuple[BookieId, BookieId] | None = None
        for member in dict.fromkeys(each for members in self._near_sets(spec, ensemble) for each in members):
            spares = by_preference(candidates, set(ensemble), avoided)
            slots = [None if bookie == member else bookie for bookie in ensemble]
            after = self._best(spec, slots, spares, set(avoided)) if spares else None
            if after is not None and (left := len(self._near_sets(spec, after))) < least:
                least, found = left, (member, after[slots.index(None)])
        return found

    def _best(
        self, spec: QuorumSpec, slots: Slots, usable: Sequence[BookieId], avoided: Collection[BookieId]
    ) -> tuple[BookieId, ...] | None:
        where = {each: self._location_of(each) for each in (*usable, *(b for b in slots if b is not None))}
        healthy = [bookie for bookie in usable if bookie not in avoided]
        first = self._most(spec, slots, healthy, where) if len(healthy) >= slots.count(None) else None
        if len(healthy) == len(usable) or (first is not None and not self._too_near(spec, first)):
            return first
        second = self._most(spec, slots, usable, where)
        if first is not None and (second is None or self._too_near(spec, second)):
            return first
        return second

    def _most(
        self, spec: QuorumSpec, slots: Slots, usable: Sequence[BookieId], where: Mapping[BookieId, Location]
    ) -> tuple[BookieId, ...] | None:
        for wanted in self._wanted(spec, {where[each] for each in (*usable, *(b for b in slots if b is not None))}):
            found = arrange(slots, usable, where, wanted)
            if found is not None:
                return found
        return None

    def _wanted(self, spec: QuorumSpec, places: Collection[Location]) -> Iterator[Windows]:
        copies = spec.write_quorum
        racks = min(copies, len(places))
        regions = min(copies, len({place.region for place in places})) if self._by_region else 1
        for region_count in range(regions, 0, -1):
            for rack_count in range(racks, region_count - 1, -1):
                yield Windows(copies, rack_count, region_count)

    def _too_near(self, spec: QuorumSpec, ensemble: Sequence[BookieId]) -> tuple[BookieId, ...] | None:
        """A write set with fewer racks than wanted."""
        return next(iter(self._near_sets(spec, ensemble)), None)

    def _near_sets(self, spec: QuorumSpec, ensemble: Sequence[BookieId]) -> list[tuple[BookieId, ...]]:
        """The write sets with fewer racks than wanted."""
        least = min(self._racks_min, spec.write_quorum)
        sets = [spec.write_set(entry_id, ensemble) for entry_id in range(len(ensemble))]
        return [members for members in sets if len({self._location_of(bookie) for bookie in members}) < least]

    def _what_lacks(self, spec: QuorumSpec, usable: Sequence[BookieId]) -> str:
        racks: dict[str, list[BookieId]] = {}
        for bookie in usable:
            racks.setdefault(str(self._location_of(bookie)), []).append(bookie)
        there = "; ".join(f"{rack} has {', '.join(sorted(racks[rack]))}" for rack in sorted(racks))
        return (
            f"needs {counted(spec.ensemble_size, 'bookie')} of which every {spec.write_quorum} "
            "neighbours stand in at least "
            f"{counted(min(self._racks_min, spec.write_quorum), 'rack')}; that cannot be had of those "
            "that can be used: "
            f"{there or 'none'}. Start bookies in another rack, or do not enforce racks"
        )
