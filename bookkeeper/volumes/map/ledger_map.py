"""Which volume has which ledger. Pure: no I/O.

A ledger is *placed* on one volume when it is first met, and stays there. When a volume is lost, its ledgers are placed
nowhere, and they are *lost* until their copies are whole: what this bookie had of them is unknown, and no regular add
is taken (B3, B9). What a repair brings back is placed on another volume; the ledger stays lost until somebody has read
all of it there, and then it is *retired*: it is closed, its fence may have been lost with the volume, and so no regular
add is ever taken again.

Every change is a record. :meth:`Placements.take` of all records, in their order, gives the same placements again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from enum import IntEnum

from bookkeeper.errors import check
from bookkeeper.ids import LedgerId


class PlacementKind(IntEnum):
    """What a record says. The numbers are stored."""

    PLACED = 1
    """The ledger is on the volume from now on."""
    LOST = 2
    """What was here of the ledger is unknown."""
    WHOLE = 3
    """The ledger is closed and lost no more: it is retired."""
    GONE = 4
    """The ledger was deleted."""
    VOLUME_LOST = 5
    """Every ledger on the volume is lost."""


@dataclass(frozen=True, slots=True)
class PlacementRecord:
    """One change. A record about a ledger alone has volume 0, one about a volume alone has ledger -1."""

    kind: PlacementKind
    ledger_id: int = -1
    volume: int = 0


class Placements:
    """The placements of one bookie. Owned by the loop's thread."""

    def __init__(self, records: Iterable[PlacementRecord] = ()) -> None:
        self._volumes: dict[int, int] = {}
        self._counts: dict[int, int] = {}
        self._lost: dict[int, int] = {}
        self._retired: set[int] = set()
        self._losses = 0
        for record in records:
            self.take(record)

    # -- what is known ------------------------------------------------------------------------------------

    @property
    def lost(self) -> Mapping[int, int]:
        """Lost ledgers, each with the number of its newest loss (from 1 on, counted since the start)."""
        return self._lost

    @property
    def retired(self) -> Set[int]:
        """Ledgers that were lost once: they take no regular add any more."""
        return self._retired

    def volume_of(self, ledger_id: int) -> int | None:
        """The volume on which a ledger is placed; None: on none."""
        return self._volumes.get(ledger_id)

    def count(self, volume: int) -> int:
        """How many ledgers are placed on a volume."""
        return self._counts.get(volume, 0)

    @property
    def volumes(self) -> set[int]:
        """The volumes on which anything is placed."""
        return {number for number, count in self._counts.items() if count}

    def ledgers_on(self, volume: int) -> list[LedgerId]:
        """The ledgers on a volume, ascending."""
        return sorted(LedgerId(ledger) for ledger, where in self._volumes.items() if where == volume)

    def placed(self) -> Iterator[tuple[LedgerId, int]]:
        """Every ledger that is placed, and its volume, in no order."""
        return ((LedgerId(ledger), volume) for ledger, volume in self._volumes.items())

    def records(self) -> Iterator[PlacementRecord]:
        """The fewest records that say what is known now."""
        for ledger_id, volume in self._volumes.items():
            yield PlacementRecord(PlacementKind.PLACED, ledger_id, volume)
        for ledger_id in self._retired:
            yield PlacementRecord(PlacementKind.WHOLE, ledger_id)
        for ledger_id in self._lost:
            yield PlacementRecord(PlacementKind.LOST, ledger_id)

    def __len__(self) -> int:
        return len(self._volumes) + len(self._retired) + len(self._lost)

    # -- what happens -------------------------------------------------------------------------------------

    def take(self, record: PlacementRecord) -> None:
        """Carry one change out."""
        ledger_id = record.ledger_id
        match record.kind:
            case PlacementKind.PLACED:
                self._leave(ledger_id)
                self._volumes[ledger_id] = record.volume
                self._counts[record.volume] = self._counts.get(record.volume, 0) + 1
            case PlacementKind.LOST:
                self._losses += 1
                self._lost[ledger_id] = self._losses
            case PlacementKind.WHOLE:
                self._lost.pop(ledger_id, None)
                self._retired.add(ledger_id)
            case PlacementKind.GONE:
                self._leave(ledger_id)
                self._lost.pop(ledger_id, None)
                self._retired.discard(ledger_id)
            case PlacementKind.VOLUME_LOST:
                self._losses += 1
                for each in self.ledgers_on(record.volume):
                    self._leave(each)
                    self._lost[each] = self._losses

    def _leave(self, ledger_id: int) -> None:
        before = self._volumes.pop(ledger_id, None)
        if before is not None:
            self._counts[before] -= 1
            check(self._counts[before] >= 0, "B12", "more ledgers left a volume than were on it")


def least_used(placed: Mapping[int, int], free_bytes: Mapping[int, int]) -> int:
    """The volume for a new ledger: that with the fewest ledgers for its free space; of equals the lowest number.

    Args:
        placed: how many ledgers each volume has, of those that may get one; at least one.
        free_bytes: the free space of the same volumes.
    """
    return min(placed, key=lambda number: ((placed[number] + 1) / max(free_bytes.get(number, 0), 1), number))
