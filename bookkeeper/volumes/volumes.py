"""A bookie's volumes behind one door, which has the face of an engine.

Each call goes to the volume that has the ledger; what concerns all ledgers goes to all volumes, and has ended when it
has ended on all of them. Everything here runs on the loop's thread. The door does nothing itself::

    routes          which volume has a ledger, which one gets a new one
    writes, reads   calls about one ledger
    joint_work      calls about all ledgers
    suspects        ledgers of which entries may be missing
    members         which volumes serve: one is added, fails, is given up, is drained
    moves           ledgers that are being moved to another volume

**What differs from an engine**: :meth:`Volumes.when_durable` waits for what was handed in since its last call, not for
everything, so that a slow disk delays its own ledgers alone.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from typing import TypeAlias

from bookkeeper.codec import Answers, Reads
from bookkeeper.errors import NoSuchLedgerError
from bookkeeper.ids import EntryId, IdRanges, LedgerId
from bookkeeper.seams import Buffer, Disk, Space, Worker
from bookkeeper.storage.base.disk_state import DiskState
from bookkeeper.storage.base.results import AvailabilityRun, Done, EngineState, EngineStats, OpenReport, PackedEntries
from bookkeeper.storage.engine import Engine
from bookkeeper.storage.updates.record_runs import EntryRecords, RecordRun
from bookkeeper.volumes.joint_work import JointWork
from bookkeeper.volumes.kept_list import KeptList
from bookkeeper.volumes.ledger_moves import LedgerMove, LedgerMoves
from bookkeeper.volumes.ledger_places import LedgerPlaces
from bookkeeper.volumes.members import Members
from bookkeeper.volumes.merged import merged_report
from bookkeeper.volumes.placement import Placements
from bookkeeper.volumes.placement_log import PlacementLog
from bookkeeper.volumes.reads import VolumeReads
from bookkeeper.volumes.routes import Routes
from bookkeeper.volumes.serving import ServingVolumes
from bookkeeper.volumes.suspects import Doubts, Suspects
from bookkeeper.volumes.volume import Volume
from bookkeeper.volumes.volume_housekeeping import VolumeCompactors, VolumeScrubbers
from bookkeeper.volumes.volume_list import VolumeList, VolumeState
from bookkeeper.volumes.writes import VolumeWrites


class Volumes:
    """The volumes of one bookie. Made by :mod:`bookkeeper.volumes.volume_start`."""

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
        self.report: OpenReport = merged_report([each.engine.report for each in volumes])
        self.placements: Placements = placements
        """Which volume has which ledger. Not to be changed."""
        self.placement_log: PlacementLog = placement_log
        """The file that says so; for whoever publishes where it ends."""
        self._list = KeptList(disk, directory, listed, list_worker)
        self._serving = serving = ServingVolumes()
        self._state, self._doubts = DiskState(), Doubts(placements)
        places = LedgerPlaces(placements, placement_log)
        self.moves: LedgerMoves = LedgerMoves(places)
        """The ledgers that are being moved."""
        self.scrubber = VolumeScrubbers(lambda: [each.scrubber for each in serving.engines])
        """Reads and checks every stored byte of every volume."""
        self.compactor = VolumeCompactors(lambda: {each.number: each.engine.compactor for each in serving})
        """Compacts every volume."""
        self._routes = routes = Routes(serving, self._list, places, self._state, self._doubts)
        self._writes = VolumeWrites(serving, routes, places, self.moves)
        self._reads = VolumeReads(serving, routes, placements)
        self._suspects = Suspects(serving, routes, places)
        self._joint_work = JointWork(serving, routes, places, self._reads)
        self.members: Members = Members(
            serving, self._list, places, self.moves, self._state, self._doubts, self.scrubber, call_later
        )
        """Changes which volumes serve."""
        self.members.begin(volumes)

    # -- the volumes --------------------------------------------------------------------------------------

    @property
    def volume_list(self) -> VolumeList:
        """The volumes and what has become of them, also of those that do not serve."""
        return self._list.now

    @property
    def serving(self) -> list[Volume]:
        """The volumes that serve."""
        return list(self._serving)

    @property
    def positions(self) -> dict[int, tuple[int, int]]:
        """For each volume :attr:`Engine.durable_position`."""
        return {each.number: each.engine.durable_position for each in self._serving}

    @property
    def state(self) -> EngineState:
        """Writable while any volume takes new ledgers; failed when none is left."""
        return self._state.now

    def on_state(self, callback: Callable[[EngineState, str], None]) -> None:
        """See :meth:`Engine.on_state`; :attr:`state` says what counts."""
        self._state.on_change(callback)

    def on_pressure(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        """See :meth:`Engine.on_pressure`: while any volume has too much to write."""
        self.members.pressure.on_change(pause, resume)

    def on_new_journal_file(self, callback: Callable[[], None]) -> None:
        """See :meth:`Engine.on_new_journal_file`."""
        self.members.on_new_journal_file(callback)

    def on_loss(self, callback: Callable[[str, str, int], None]) -> None:
        """Called when a volume has left: its directory, why, and how many ledgers were on it."""
        self.members.on_loss = callback

    def add(self, volume: Volume, listed: VolumeList, callback: Done) -> None:
        """See :meth:`Members.add`."""
        self.members.add(volume, listed, callback)

    def set_state(self, number: int, state: VolumeState, callback: Done) -> None:
        """See :meth:`Members.set_state`."""
        self.members.set_state(number, state, callback)

    def lose(self, number: int, reason: str) -> None:
        """See :meth:`Members.lose`."""
        self.members.lose(number, reason)

    def is_last(self, number: int) -> bool:
        """Whether there is no other volume that gets new ledgers."""
        return self.members.is_last(number)

    def check_space(self) -> None:
        """See :meth:`Members.check_space`."""
        self.members.check_space()

    def sentences(self) -> tuple[str, ...]:
        """See :meth:`Engine.sentences`."""
        return tuple(said for each in self._serving.engines for said in each.sentences())

    def close(self, callback: Done) -> None:
        """See :meth:`Engine.close`."""
        self.members.close(callback)

    # -- writing ------------------------------------------------------------------------------------------

    def append(self, run: RecordRun, batch: EntryRecords, *, recovery: bool = False) -> None:
        """See :meth:`Engine.append`. BookieFailedError: the ledger's volume was lost."""
        self._writes.append(run, batch, recovery=recovery)

    def append_entry(self, ledger_id: LedgerId, master_key: bytes, entry: Buffer, *, recovery: bool = False) -> None:
        """See :meth:`Engine.append_entry`."""
        self._writes.append_entry(ledger_id, master_key, entry, recovery=recovery)

    def when_durable(self, callback: Done) -> None:
        """See :meth:`VolumeWrites.when_durable`."""
        self._writes.when_durable(callback)

    def start_writing(self) -> None:
        """See :meth:`Engine.start_writing`."""
        self._writes.start_writing()

    def fence(self, ledger_id: LedgerId, master_key: bytes, callback: Done) -> None:
        """See :meth:`Engine.fence`."""
        self._writes.fence(ledger_id, master_key, callback)

    def set_explicit_lac(self, ledger_id: LedgerId, master_key: bytes, lac: int, blob: Buffer, callback: Done) -> None:
        """See :meth:`Engine.set_explicit_lac`."""
        self._writes.set_explicit_lac(ledger_id, master_key, lac, blob, callback)

    def force(self, ledger_id: LedgerId, callback: Done) -> None:
        """See :meth:`VolumeWrites.force`."""
        self._writes.force(ledger_id, callback)

    def ledger_closed(self, ledger_id: LedgerId) -> None:
        """See :meth:`Engine.ledger_closed`."""
        if (volume := self.volume_with(ledger_id)) is not None:
            volume.engine.ledger_closed(ledger_id)

    # -- reading ------------------------------------------------------------------------------------------

    def read(self, ledger_id: LedgerId, entry_id: EntryId, reply: Callable[[bytes | BaseException], None]) -> None:
        """See :meth:`Engine.read`."""
        self._reads.read(ledger_id, entry_id, reply)

    def try_read_cached(self, reads: Reads, i0: int, frame_max: int) -> Answers | None:
        """See :meth:`Engine.try_read_cached`."""
        return self._reads.try_read_cached(reads, i0, frame_max)

    def read_batch(
        self,
        ledger_id: LedgerId,
        first: EntryId,
        count_max: int,
        size_max: int,
        reply: Callable[[PackedEntries | BaseException], None],
    ) -> None:
        """See :meth:`Engine.read_batch`."""
        self._reads.read_batch(ledger_id, first, count_max, size_max, reply)

    def lac(self, ledger_id: LedgerId) -> int:
        """See :meth:`Engine.lac`."""
        return self._reads.lac(ledger_id)

    def explicit_lac(self, ledger_id: LedgerId) -> tuple[int, bytes] | None:
        """See :meth:`Engine.explicit_lac`."""
        return self._reads.explicit_lac(ledger_id)

    def last_entry(self, ledger_id: LedgerId) -> EntryId:
        """See :meth:`Engine.last_entry`."""
        return self._reads.last_entry(ledger_id)

    def entries(self, ledger_id: LedgerId) -> Sequence[AvailabilityRun]:
        """See :meth:`Engine.entries`."""
        return self._reads.entries(ledger_id)

    def is_fenced(self, ledger_id: LedgerId) -> bool:
        """See :meth:`Routes.is_fenced`."""
        return self._routes.is_fenced(ledger_id)

    def on_lac(self, ledger_id: LedgerId, callback: Callable[[int], None]) -> Callable[[], None]:
        """See :meth:`VolumeReads.on_lac`."""
        return self._reads.on_lac(ledger_id, callback)

    def has(self, ledger_id: LedgerId) -> bool:
        """See :meth:`Engine.has`."""
        return self._reads.has(ledger_id)

    def is_strange(self, ledger_id: LedgerId) -> bool:
        """See :meth:`Engine.is_strange`."""
        return self._reads.is_strange(ledger_id)

    def ledgers(self) -> Iterable[LedgerId]:
        """Every ledger with anything here, a snapshot."""
        return self._reads.ledgers()

    # -- keeping house ------------------------------------------------------------------------------------

    def checkpoint(self, callback: Done) -> None:
        """See :meth:`Engine.checkpoint`."""
        self._joint_work.checkpoint(callback)

    def collect(
        self,
        dead: Container[LedgerId] | Callable[[LedgerId], bool],
        callback: Done,
        *,
        never_again: Iterable[tuple[int, int]] = (),
    ) -> None:
        """See :meth:`Engine.collect`. Every volume remembers every ledger that was dropped."""
        self._joint_work.collect(dead, callback, never_again)

    def share_dropped(self, callback: Done) -> None:
        """See :meth:`JointWork.share_dropped`."""
        self._joint_work.share_dropped(callback)

    @property
    def dropped(self) -> IdRanges:
        """See :attr:`Engine.dropped`; a copy."""
        return self._serving.dropped

    def compact(self, callback: Done, *, major: bool = False) -> None:
        """See :meth:`Engine.compact`: all volumes at the same time."""
        self._joint_work.compact(callback, major)

    def finish_logs(self) -> None:
        """See :meth:`Engine.finish_logs`."""
        self._joint_work.finish_logs()

    @property
    def stats(self) -> EngineStats:
        """The sums over the volumes that serve."""
        return self._joint_work.stats

    @property
    def journal_bytes_in_flight(self) -> int:
        """Bytes accepted and not yet durable, of all volumes."""
        return self._joint_work.journal_bytes_in_flight

    def space(self) -> Space:
        """See :meth:`JointWork.space`."""
        return self._joint_work.space()

    # -- what may be missing ------------------------------------------------------------------------------

    @property
    def in_limbo(self) -> bool:
        """See :attr:`Engine.in_limbo`: a volume is."""
        return self._joint_work.in_limbo

    @property
    def takes_new_ledgers(self) -> bool:
        """See :attr:`Engine.takes_new_ledgers`: a volume does."""
        return self._joint_work.takes_new_ledgers

    def narrow_limbo(self, suspects: Iterable[LedgerId]) -> None:
        """See :meth:`Engine.narrow_limbo`."""
        self._joint_work.narrow_limbo(suspects)

    def end_limbo(self, ledger_id: LedgerId | None = None) -> None:
        """See :meth:`Engine.end_limbo`."""
        self._joint_work.end_limbo(ledger_id)

    def doubt(self, ledgers: Container[int]) -> None:
        """See :meth:`Engine.doubt`."""
        self._doubts.by_bookie = ledgers

    @property
    def suspects(self) -> frozenset[int]:
        """See :attr:`Engine.suspects`; lost ledgers are among them."""
        return self._suspects.ledgers

    def suspicion(self, ledger_id: LedgerId) -> int:
        """See :meth:`Engine.suspicion`."""
        return self._suspects.suspicion(ledger_id)

    def end_suspicion(self, ledger_id: LedgerId, suspicion: int) -> bool:
        """See :meth:`Engine.end_suspicion`."""
        return self._suspects.end(ledger_id, suspicion)

    # -- moving a ledger ----------------------------------------------------------------------------------

    def volume_with(self, ledger_id: LedgerId) -> Volume | None:
        """The volume that has a ledger; None: none that serves has it."""
        return self._routes.at(ledger_id)

    def best_target(self, leaving: int) -> Volume | None:
        """The volume to which a ledger should be moved from another one; None: none can take it."""
        return self._routes.best_target(leaving)

    def begin_move(self, ledger_id: LedgerId, target: Volume) -> LedgerMove:
        """From now on adds to a ledger go to another volume, too; :attr:`moves` goes on with it.

        Raises:
            NoSuchLedgerError: the ledger is not placed.
        """
        if (source := self.volume_with(ledger_id)) is None:
            raise NoSuchLedgerError(f"ledger {ledger_id} is not here")
        return self.moves.begin(ledger_id, source, target)


BookieStorage: TypeAlias = Engine | Volumes
"""What a bookie stores ledgers in: one disk, or several."""
