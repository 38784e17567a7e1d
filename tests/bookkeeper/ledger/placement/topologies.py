"""Small topologies, and what is possible in them, by trying everything."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import permutations

from bookkeeper.ids import BookieId
from bookkeeper.ledger.location import Location
from bookkeeper.ledger.quorum import QuorumSpec


def topology(racks: Mapping[str, str]) -> dict[BookieId, Location]:
    """Bookies by rack: ``{"/r1": "a b"}``."""
    return {BookieId(name): Location.parse(rack) for rack, names in racks.items() for name in names.split()}


def racks_in_worst_window(
    spec: QuorumSpec, ensemble: Sequence[BookieId], where: Mapping[BookieId, Location]
) -> tuple[int, int]:
    """(regions, racks): the fewest of any write set."""
    sets = [spec.write_set(entry, ensemble) for entry in range(len(ensemble))]
    return (
        min(len({where[bookie].region for bookie in members}) for members in sets),
        min(len({where[bookie] for bookie in members}) for members in sets),
    )


def most_racks(spec: QuorumSpec, where: Mapping[BookieId, Location], kept: Mapping[int, BookieId]) -> int:
    """The racks that the worst write set of the best ensemble has, by trying all; 0 without any ensemble."""
    best = 0
    for ensemble in permutations(sorted(where), spec.ensemble_size):
        if all(ensemble[at] == bookie for at, bookie in kept.items()):
            best = max(best, racks_in_worst_window(spec, ensemble, where)[1])
    return best


def without(where: Mapping[BookieId, Location], gone: Collection[str]) -> dict[BookieId, Location]:
    """The topology without some bookies."""
    return {bookie: place for bookie, place in where.items() if bookie not in gone}
