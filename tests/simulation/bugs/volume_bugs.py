"""Bugs where a bookie has several ledger directories; a part of :data:`tests.simulation.bugs.bugs.BUGS`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import bookkeeper.volumes.map.placement_log as placement_log
from bookkeeper.errors import NoSuchLedgerError
from bookkeeper.ids import LedgerId
from bookkeeper.seams import File
from bookkeeper.storage.engine import Engine
from bookkeeper.testing.patches import Patch
from bookkeeper.volumes.disks.serving import Volume
from bookkeeper.volumes.map.ledger_map import PlacementKind, PlacementRecord, Placements
from bookkeeper.volumes.map.placement_log import PlacementLog
from bookkeeper.volumes.map.stored_ledger_map import StoredLedgerMap
from bookkeeper.volumes.routing.ledger_moves import LedgerMove
from bookkeeper.volumes.routing.routes import Routes
from bookkeeper.volumes.volume_drain import VolumeDrain
from tests.simulation.bugs.bug import Bug, Plant, bug_into
from tests.simulation.plan import FIRST_WITH_VOLUMES

VOLUME_BUGS: Final[dict[str, Bug]] = {}
"""By name, in the order of this file."""


def _bug(name: str, breaks: str, within: int) -> Callable[[Plant], Plant]:
    return bug_into(VOLUME_BUGS, name, breaks, within, FIRST_WITH_VOLUMES)


@_bug("place-not-waited-for", "K35", 20)
def _place_not_waited_for(patch: Patch) -> None:
    """Entries of a new ledger are acknowledged before it is durable on which disk the ledger lies."""
    patch(StoredLedgerMap, "any_fresh", lambda self, ledger_ids: False)


@_bug("place-not-synced", "K35", 20)
def _place_not_synced(patch: Patch) -> None:
    """On which disk a ledger lies is written and not synced."""

    def unsynced(file: File) -> None:
        pass

    patch(placement_log, "sync", unsynced)


@_bug("place-not-published", "K35", 20)
def _place_not_published(patch: Patch) -> None:
    """Entries of a new ledger are acknowledged before it is published where the file ends that has its place."""

    def at_once(self: PlacementLog, ask: Callable[[], None]) -> None:
        self._ask = lambda: self.published(self.end)
        self._advance()

    patch(PlacementLog, "publish_with", at_once)


@_bug("fence-not-moved", "B3", 60)
def _fence_not_moved(patch: Patch) -> None:
    """A ledger is moved to another disk without its fence."""
    copy = VolumeDrain._copy

    async def unfenced(self: VolumeDrain, ledger_id: LedgerId, key: bytes, source: Engine, move: LedgerMove) -> None:
        is_fenced: Any = source.is_fenced
        source.is_fenced = lambda ledger_id: False  # type: ignore[method-assign]
        try:
            await copy(self, ledger_id, key, source, move)
        finally:
            source.is_fenced = is_fenced  # type: ignore[method-assign]

    patch(VolumeDrain, "_copy", unfenced)
    patch(VolumeDrain, "_compare", lambda self, ledger_id, source, move: None)


@_bug("lost-ledger-takes-adds", "B12", 40)
def _lost_ledger_takes_adds(patch: Patch) -> None:
    """Regular adds to a ledger whose disk has failed are taken, on another disk."""
    taker = Routes.taker

    def any_add(self: Routes, ledger_id: int, recovery: bool) -> Volume:
        return taker(self, ledger_id, True)

    patch(Routes, "taker", any_add)


@_bug("lost-ledger-is-denied", "B12 B5", 40)
def _lost_ledger_is_denied(patch: Patch) -> None:
    """A ledger whose disk has failed is not there."""

    def engine_of(self: Routes, ledger_id: LedgerId) -> Engine:
        if (volume := self.at(ledger_id)) is None:
            raise NoSuchLedgerError(f"ledger {ledger_id} is not here")
        return volume.engine

    patch(Routes, "engine_of", engine_of)


@_bug("lost-ledger-is-unfenced", "B12 B3", 40)
def _lost_ledger_is_unfenced(patch: Patch) -> None:
    """A ledger whose disk has failed counts as fenced only if somebody has fenced it since."""

    def is_fenced(self: Routes, ledger_id: LedgerId) -> bool:
        volume = self.at(ledger_id)
        return volume is not None and volume.engine.is_fenced(ledger_id)

    patch(Routes, "is_fenced", is_fenced)


@_bug("whole-ledger-is-not-retired", "B12 B3", 60)
def _whole_ledger_is_not_retired(patch: Patch) -> None:
    """A ledger that was lost is like any other when it is whole again."""
    take = Placements.take

    def forgetful(self: Placements, record: PlacementRecord) -> None:
        take(self, record)
        if record.kind is PlacementKind.WHOLE:
            self._retired.discard(record.ledger_id)

    patch(Placements, "take", forgetful)


@_bug("loss-forgotten", "B12 B5", 60)
def _loss_forgotten(patch: Patch) -> None:
    """What was on a disk that failed is deleted, as far as the bookie knows."""
    take = Placements.take

    def forgetful(self: Placements, record: PlacementRecord) -> None:
        before = set(self._lost)
        take(self, record)
        if record.kind is PlacementKind.VOLUME_LOST:
            self._lost = {ledger: number for ledger, number in self._lost.items() if ledger in before}

    patch(Placements, "take", forgetful)
