"""To which volume a call goes: that of the ledger; for a ledger that is new, one that is chosen now.

A ledger that is new is placed on the volume with the fewest ledgers for its free space. To a ledger that is lost
regular adds are refused as failed, so that writers go to other bookies, and a negative about it is unknown; a recovery
add is taken, and places it anew.
"""

from __future__ import annotations

from collections.abc import Container

from bookkeeper.errors import BookieFailedError, DataUnknownError, LedgerFencedError, NoSuchLedgerError
from bookkeeper.ids import LedgerId
from bookkeeper.storage.base.disk_state import DiskState
from bookkeeper.storage.engine import Engine, EngineState
from bookkeeper.volumes.disks.serving import ServingVolumes, Volume
from bookkeeper.volumes.disks.volume_list_file import VolumeListFile
from bookkeeper.volumes.map.ledger_map import least_used
from bookkeeper.volumes.map.stored_ledger_map import StoredLedgerMap


class Routes:
    """Runs on the loop's thread. Stateless: asks placements, volumes and their list."""

    def __init__(
        self,
        serving: ServingVolumes,
        list_file: VolumeListFile,
        places: StoredLedgerMap,
        state: DiskState,
        unknowns: Container[int],
    ) -> None:
        """
        Args:
            state: whether anything is taken.
            unknowns: ledgers of which a missing entry is answered "unknown".
        """
        self._serving, self._list, self._places = serving, list_file, places
        self._state, self._unknowns = state, unknowns
        self._placements = places.placements
        self._volumes, self._where = serving.by_number, places.placements.volume_of

    def at(self, ledger_id: int) -> Volume | None:
        """The volume that has the ledger; None: none that serves has it."""
        number = self._where(ledger_id)
        return self._volumes.get(number) if number is not None else None

    def engine_of(self, ledger_id: LedgerId) -> Engine:
        """The engine that answers questions about a ledger.

        Raises:
            NoSuchLedgerError, DataUnknownError: no volume has it.
        """
        if (volume := self.at(ledger_id)) is not None:
            return volume.engine
        if ledger_id not in self._placements.lost and (
            ledger_id not in self._unknowns or self._serving.has_dropped(ledger_id)
        ):
            raise NoSuchLedgerError(f"ledger {ledger_id} is not here")
        raise DataUnknownError(f"whether ledger {ledger_id} was here is not known")

    def is_fenced(self, ledger_id: LedgerId) -> bool:
        """See :meth:`Engine.is_fenced`; a ledger that was ever lost counts as fenced (B3)."""
        if ledger_id in self._placements.lost or ledger_id in self._placements.retired:
            return True
        if (volume := self.at(ledger_id)) is not None:
            return volume.engine.is_fenced(ledger_id)
        return self._serving.has_dropped(ledger_id)

    def taker(self, ledger_id: int, recovery: bool) -> Volume:
        """The volume that takes a ledger's adds; a ledger that is nowhere is placed.

        Raises:
            BookieFailedError: the ledger is lost, and this is no recovery; or the bookie has failed.
            LedgerFencedError: it was deleted, or is retired.
            DiskFullError, TooManyRequestsError: where the ledger is cannot be written down, or published, for now. A
                recovery is tried: there is room for it (K26).
        """
        if not recovery and (ledger_id in self._placements.lost or ledger_id in self._placements.retired):
            if ledger_id in self._placements.lost:
                raise lost_error(ledger_id)
            raise LedgerFencedError(f"ledger {ledger_id} is closed, and was on a disk that was lost")
        if (volume := self.at(ledger_id)) is not None:
            return volume
        self._state.refuse_if_stopped()
        if self._serving.has_dropped(ledger_id):
            raise LedgerFencedError(f"ledger {ledger_id} was deleted")
        self._places.log.refuse_if_behind(recovery)
        volume = self._chosen()
        self._places.place(ledger_id, volume.number)
        return volume

    def best_target(self, leaving: int) -> Volume | None:
        """The volume to which a ledger should be moved from another one; None: none can take it."""
        good = [
            each
            for each in self._serving
            if each.number != leaving and self._list.is_used(each.number) and each.engine.state is EngineState.WRITABLE
        ]
        return self._least_used(good) if good else None

    def _chosen(self) -> Volume:
        """The volume for a new ledger; one that is full only if all are."""
        used = [each for each in self._serving if self._list.is_used(each.number)]
        good = [each for each in used if each.engine.state is EngineState.WRITABLE and each.engine.takes_new_ledgers]
        return self._least_used(good or used or list(self._serving))

    def _least_used(self, volumes: list[Volume]) -> Volume:
        counts = {each.number: self._placements.count(each.number) for each in volumes}
        return self._volumes[least_used(counts, self._serving.free_bytes)]


def lost_error(ledger_id: int) -> BookieFailedError:
    """What is answered about a ledger that is lost."""
    return BookieFailedError(f"the disk with ledger {ledger_id} has failed")
