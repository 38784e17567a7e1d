"""The ledger map, in memory and in the file: :class:`Placements` with the log that stores them."""

from __future__ import annotations

from collections.abc import Iterable

from bookkeeper.ids import LedgerId
from bookkeeper.storage.base.results import Done, ignore
from bookkeeper.volumes.map.ledger_map import PlacementKind, PlacementRecord, Placements
from bookkeeper.volumes.map.placement_log import PlacementLog


class StoredLedgerMap:
    """Owned by the loop's thread."""

    def __init__(self, placements: Placements, log: PlacementLog) -> None:
        self.placements = placements
        """Changed by this class alone."""
        self.log = log
        self._fresh: set[int] = set()

    def record(self, kind: PlacementKind, ledger_id: int = -1, volume: int = 0) -> None:
        """A change, at once in memory, and durable soon."""
        self.note(kind, ledger_id, volume)
        self.log.when_durable(ignore)

    def note(self, kind: PlacementKind, ledger_id: int = -1, volume: int = 0) -> None:
        """The same, durable with the next change that is."""
        change = PlacementRecord(kind, ledger_id, volume)
        self.placements.take(change)
        self.log.append(change)

    def place(self, ledger_id: int, volume: int) -> None:
        """The ledger lies on a volume. Nothing about it is answered until :meth:`when_placed` has called back (K35)."""
        self.note(PlacementKind.PLACED, ledger_id, volume)
        self._fresh.add(ledger_id)

    def any_fresh(self, ledger_ids: Iterable[int]) -> bool:
        """Whether the place of any of these ledgers is not durable yet."""
        return bool(self._fresh) and not self._fresh.isdisjoint(ledger_ids)

    def when_placed(self, callback: Done) -> None:
        """``callback(None)`` when every place so far is durable."""
        waited = set(self._fresh)

        def durable(error: BaseException | None) -> None:
            if error is None:
                self._fresh -= waited
            callback(error)

        self.log.when_durable(durable)

    def write(self) -> None:
        """See to it that places which nobody waits for become durable soon."""
        self.log.catch_up()
        if self._fresh or not self.log.is_durable:
            self.when_placed(ignore)

    def forget_empty(self, volume: int) -> None:
        """What is still placed on a volume, and of which nothing is stored there, is nowhere. A lost ledger stays lost,
        a retired one retired."""
        for ledger_id in self.placements.ledgers_on(volume):
            retired, lost = ledger_id in self.placements.retired, ledger_id in self.placements.lost
            self.note(PlacementKind.GONE, ledger_id)
            if retired:
                self.note(PlacementKind.WHOLE, ledger_id)
            if lost:
                self.note(PlacementKind.LOST, ledger_id)
        self.log.when_durable(ignore)

    def forget(self, ledger_ids: Iterable[LedgerId], callback: Done) -> None:
        """Ledgers were deleted; ``callback`` when that is durable. One that is lost stays so until it is known to be
        deleted everywhere."""
        for ledger_id in ledger_ids:
            if ledger_id not in self.placements.lost:
                self.note(PlacementKind.GONE, ledger_id)
        self.log.when_durable(callback)
