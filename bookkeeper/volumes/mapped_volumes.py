"""Several volumes, and the map that says which of them has which ledger.

A call about a ledger goes to the volume that has it; what concerns all ledgers goes to all volumes, and has ended when
it has ended on all of them. The work is done by parts::

    routes          which volume has a ledger, which one gets a new one
    writes, reads   calls about one ledger
    all_volumes     calls about all ledgers
    suspects        ledgers of which entries may be missing
    members         which volumes serve: one is added, fails, is given up, is drained
    moves           ledgers that are being moved to another volume

**What differs from one volume**: :meth:`Volumes.when_durable` waits for what was handed in since its last call, not for
everything, so that a slow disk delays its own ledgers alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bookkeeper.errors import IllegalOperationError, NoSuchLedgerError
from bookkeeper.ids import LedgerId
from bookkeeper.seams import Disk, Worker
from bookkeeper.storage.base.disk_state import DiskState
from bookkeeper.volumes.calls.all_volumes import AllVolumes, merged_report
from bookkeeper.volumes.calls.reads import VolumeReads
from bookkeeper.volumes.calls.suspects import UnknownLedgers
from bookkeeper.volumes.calls.writes import VolumeWrites
from bookkeeper.volumes.disks.serving import ServingVolumes, Volume
from bookkeeper.volumes.disks.volume_list import VolumeList
from bookkeeper.volumes.disks.volume_list_file import VolumeListFile
from bookkeeper.volumes.map.ledger_map import Placements
from bookkeeper.volumes.map.placement_log import PlacementLog
from bookkeeper.volumes.map.stored_ledger_map import StoredLedgerMap
from bookkeeper.volumes.members.members import Members
from bookkeeper.volumes.members.volume_housekeeping import VolumeScrubbers
from bookkeeper.volumes.routing.ledger_moves import LedgerMove, LedgerMoves
from bookkeeper.volumes.routing.routes import Routes
from bookkeeper.volumes.volumes import Volumes


class MappedVolumes(Volumes):
    """Made by :mod:`bookkeeper.volumes.start.placement_recall`. Runs on the loop's thread."""

    def __init__(
        self,
        directory: str,
        disk: Disk,
        volumes: Iterable[Volume],
        listed: VolumeList,
        placements: Placements,
        placement_log: PlacementLog,
        list_worker: Worker,
        call_later: Callable[[float, Callable[[], None]], object],
    ) -> None:
        volumes = list(volumes)
        self._list = VolumeListFile(disk, directory, listed, list_worker)
        self._serving = serving = ServingVolumes()
        self._log = placement_log
        state, unknowns = DiskState(), UnknownLedgers(placements)
        places = StoredLedgerMap(placements, placement_log)
        self.moves: LedgerMoves = LedgerMoves(places)
        """The ledgers that are being moved."""
        scrubber = VolumeScrubbers(lambda: [each.scrubber for each in serving.engines])
        self._routes = routes = Routes(serving, self._list, places, state, unknowns)
        reads = VolumeReads(serving, routes, placements)
        self.members: Members = Members(serving, self._list, places, self.moves, state, unknowns, scrubber, call_later)
        """Changes which volumes serve."""
        all_volumes = AllVolumes(
            merged_report([each.engine.report for each in volumes]),
            serving,
            routes,
            places,
            reads,
            state,
            unknowns,
            self.members,
        )
        super().__init__(VolumeWrites(serving, routes, places, self.moves), reads, all_volumes, placements)
        self.share_dropped, self.best_target = all_volumes.share_dropped, routes.best_target
        self.members.begin(volumes)

    @property
    def volume_list(self) -> VolumeList:
        return self._list.now

    @property
    def serving(self) -> list[Volume]:
        return list(self._serving)

    @property
    def placement_log(self) -> PlacementLog:
        return self._log

    def volume_with(self, ledger_id: LedgerId) -> Volume | None:
        return self._routes.at(ledger_id)

    def ledger_count(self, number: int) -> int:
        return self.placements.count(number)

    def on_loss(self, callback: Callable[[str, str, int], None]) -> None:
        self.members.on_loss = callback

    def begin_move(self, ledger_id: LedgerId, target: Volume) -> LedgerMove:
        """From now on adds to a ledger go to another volume, too; :attr:`moves` goes on with it.

        Raises:
            NoSuchLedgerError: the ledger is not placed.
        """
        if (source := self.volume_with(ledger_id)) is None:
            raise NoSuchLedgerError(f"ledger {ledger_id} is not here")
        return self.moves.begin(ledger_id, source, target)


def changeable(volumes: Volumes) -> MappedVolumes:
    """The same, where volumes can be added and let go.

    Raises:
        IllegalOperationError: there is one, without a map.
    """
    if isinstance(volumes, MappedVolumes):
        return volumes
    raise IllegalOperationError(
        "this bookie has one ledger directory; to add others, stop it, and start it with ledger_dirs "
        "(bk bookie --ledger-dir, once for each), the present one among them"
    )
