"""Suspect ledgers: those that were on a lost volume, and those that a volume itself suspects.

Whoever repairs what a scrub has found damaged repairs lost ledgers, too
(:mod:`bookkeeper.bookie.identity.suspect_repairs`). A *suspicion* is a number that rises whenever a ledger becomes
suspect anew: proof that was begun before a second loss does not end it.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from bookkeeper.ids import LedgerId
from bookkeeper.volumes.disks.serving import ServingVolumes
from bookkeeper.volumes.map.ledger_map import PlacementKind, Placements
from bookkeeper.volumes.map.stored_ledger_map import StoredLedgerMap
from bookkeeper.volumes.routing.routes import Routes

_DAMAGE_BITS: Final = 32


class UnknownLedgers:
    """Ledgers of which a missing entry is answered "unknown": lost ones, and those in doubt."""

    def __init__(self, placements: Placements) -> None:
        self._lost = placements.lost
        self.doubted: Container[int] = frozenset()

    def __contains__(self, ledger_id: object) -> bool:
        return ledger_id in self._lost or ledger_id in self.doubted


class Suspects:
    """Of several volumes; the same interface as :class:`Engine`. Runs on the loop's thread."""

    def __init__(self, serving: ServingVolumes, routes: Routes, places: StoredLedgerMap) -> None:
        self._serving, self._routes, self._places = serving, routes, places
        self._lost = places.placements.lost

    @property
    def ledgers(self) -> frozenset[int]:
        """See :attr:`Engine.suspects`; lost ledgers are among them."""
        where = self._places.placements.volume_of
        damaged = [ledger for each in self._serving for ledger in each.engine.suspects if where(ledger) == each.number]
        return frozenset([*self._lost, *damaged])

    def suspicion(self, ledger_id: LedgerId) -> int:
        """See :meth:`Engine.suspicion`."""
        volume = self._routes.at(ledger_id)
        damaged = volume.engine.suspicion(ledger_id) if volume is not None else 0
        return self._lost.get(ledger_id, 0) << _DAMAGE_BITS | damaged

    def end(self, ledger_id: LedgerId, suspicion: int) -> bool:
        """See :meth:`Engine.end_suspicion`."""
        loss, damage = suspicion >> _DAMAGE_BITS, suspicion & (1 << _DAMAGE_BITS) - 1
        if self._lost.get(ledger_id, 0) > loss:
            return False
        volume = self._routes.at(ledger_id)
        if volume is not None and not volume.engine.end_suspicion(ledger_id, damage):
            return False
        if loss:
            self._places.record(PlacementKind.WHOLE, ledger_id)
        return True
