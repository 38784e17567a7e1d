"""What a bookie stores ledgers in: one volume, or several behind the same interface.

The interface is that of :class:`~bookkeeper.storage.engine.Engine`. One volume needs no map of which volume has which
ledger (:class:`OneVolume`): its engine itself answers every call, and nothing is
written beside it. Several need one (:class:`~bookkeeper.volumes.mapped_volumes.MappedVolumes`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Sequence
from typing import TYPE_CHECKING

from bookkeeper.codec import Answers, Reads
from bookkeeper.errors import IllegalOperationError
from bookkeeper.ids import EntryId, IdRanges, LedgerId
from bookkeeper.seams import Buffer, Space
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.base.results import AvailabilityRun, Done, EngineState, EngineStats, OpenReport, PackedEntries
from bookkeeper.storage.compaction.compactor import Compactor
from bookkeeper.storage.engine import Engine
from bookkeeper.storage.scrub.scrubber import Scrubber
from bookkeeper.storage.updates.record_runs import EntryRecords, RecordRun
from bookkeeper.volumes.calls.all_volumes import AllVolumes
from bookkeeper.volumes.calls.reads import VolumeReads
from bookkeeper.volumes.calls.writes import VolumeWrites
from bookkeeper.volumes.disks.volume import Volume
from bookkeeper.volumes.disks.volume_list import ONLY, VolumeList
from bookkeeper.volumes.map.ledger_map import Placements
from bookkeeper.volumes.map.placement_log import PlacementLog
from bookkeeper.volumes.members.volume_housekeeping import VolumeCompactors, VolumeScrubbers

if TYPE_CHECKING:
    from bookkeeper.volumes.mapped_volumes import MappedVolumes


class Volumes(ABC):
    """The volumes of one bookie. Runs on the loop's thread."""

    def __init__(
        self,
        writes: Engine | VolumeWrites,
        reads: Engine | VolumeReads,
        all_volumes: Engine | AllVolumes,
        placements: Placements,
    ) -> None:
        self._writes, self._reads, self._all = writes, reads, all_volumes
        self.report: OpenReport = all_volumes.report
        self.scrubber: Scrubber | VolumeScrubbers = all_volumes.scrubber
        """Reads and checks every stored byte of every volume."""
        self.compactor: Compactor | VolumeCompactors = all_volumes.compactor
        """Compacts every volume."""
        self.placements: Placements = placements
        """Which volume has which ledger; empty with one volume, which has them all. Not to be changed."""

    # -- the volumes --------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def volume_list(self) -> VolumeList:
        """The volumes and what has become of them, also of those that do not serve."""

    @property
    @abstractmethod
    def serving(self) -> Sequence[Volume]:
        """The volumes that serve."""

    @property
    @abstractmethod
    def placement_log(self) -> PlacementLog | None:
        """The file that says which volume has which ledger; for whoever publishes where it ends. None: there is no
        map."""

    @abstractmethod
    def volume_with(self, ledger_id: LedgerId) -> Volume | None:
        """The volume that has a ledger; None: none that serves has it."""

    @abstractmethod
    def ledger_count(self, number: int) -> int:
        """How many ledgers a volume has."""

    @abstractmethod
    def on_loss(self, callback: Callable[[str, str, int], None]) -> None:
        """Called when a volume has left: its directory, why, and how many ledgers were on it. The only volume never
        leaves: the bookie fails with it."""

    @property
    @abstractmethod
    def changeable(self) -> MappedVolumes:
        """The same, where volumes can be added and let go. Raises: IllegalOperationError: there is one, without a
        map."""

    @property
    def positions(self) -> dict[int, tuple[int, int]]:
        """For each volume that serves :attr:`Engine.durable_position`."""
        return {each.number: each.engine.durable_position for each in self.serving}

    @property
    def state(self) -> EngineState:
        """Writable while any volume takes new ledgers; failed when none is left."""
        return self._all.state

    def on_state(self, callback: Callable[[EngineState, str], None]) -> None:
        """See :meth:`Engine.on_state`; :attr:`state` says what counts."""
        self._all.on_state(callback)

    def on_pressure(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        """See :meth:`Engine.on_pressure`: while any volume has too much to write."""
        self._all.on_pressure(pause, resume)

    def on_new_journal_file(self, callback: Callable[[], None]) -> None:
        """See :meth:`Engine.on_new_journal_file`."""
        self._all.on_new_journal_file(callback)

    def check_space(self) -> None:
        """See :meth:`Engine.check_space`. A volume that cannot even be asked is lost."""
        self._all.check_space()

    def sentences(self) -> tuple[str, ...]:
        """See :meth:`Engine.sentences`."""
        return self._all.sentences()

    def close(self, callback: Done) -> None:
        """See :meth:`Engine.close`."""
        self._all.close(callback)

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
        self._writes.ledger_closed(ledger_id)

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
        """Fenced, deleted, or unknown."""
        return self._reads.is_fenced(ledger_id)

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
        self._all.checkpoint(callback)

    def collect(
        self,
        dead: Container[LedgerId] | Callable[[LedgerId], bool],
        callback: Done,
        *,
        never_again: Iterable[tuple[int, int]] = (),
    ) -> None:
        """See :meth:`Engine.collect`. Every volume remembers every ledger that was dropped."""
        self._all.collect(dead, callback, never_again=never_again)

    @property
    def dropped(self) -> IdRanges:
        """See :attr:`Engine.dropped`."""
        return self._all.dropped

    def compact(self, callback: Done, *, major: bool = False) -> None:
        """See :meth:`Engine.compact`: all volumes at the same time."""
        self._all.compact(callback, major=major)

    def finish_logs(self) -> None:
        """See :meth:`Engine.finish_logs`."""
        self._all.finish_logs()

    @property
    def stats(self) -> EngineStats:
        """The sums over the volumes that serve."""
        return self._all.stats

    @property
    def journal_bytes_in_flight(self) -> int:
        """Bytes accepted and not yet durable, of all volumes."""
        return self._all.journal_bytes_in_flight

    def space(self) -> Space:
        """Bytes of the file systems of all volumes; two volumes on one file system count it twice."""
        return self._all.space()

    # -- what may be missing ------------------------------------------------------------------------------

    @property
    def in_limbo(self) -> bool:
        """See :attr:`Engine.in_limbo`: a volume is."""
        return self._all.in_limbo

    @property
    def takes_new_ledgers(self) -> bool:
        """See :attr:`Engine.takes_new_ledgers`: a volume does."""
        return self._all.takes_new_ledgers

    def narrow_limbo(self, ledgers: Iterable[LedgerId]) -> None:
        """See :meth:`Engine.narrow_limbo`."""
        self._all.narrow_limbo(ledgers)

    def end_limbo(self, ledger_id: LedgerId | None = None) -> None:
        """See :meth:`Engine.end_limbo`."""
        self._all.end_limbo(ledger_id)

    def doubt(self, ledgers: Container[int]) -> None:
        """See :meth:`Engine.doubt`."""
        self._all.doubt(ledgers)

    @property
    def suspects(self) -> frozenset[int]:
        """See :attr:`Engine.suspects`; lost ledgers are among them."""
        return self._all.suspects

    def suspicion(self, ledger_id: LedgerId) -> int:
        """See :meth:`Engine.suspicion`."""
        return self._all.suspicion(ledger_id)

    def end_suspicion(self, ledger_id: LedgerId, suspicion: int) -> bool:
        """See :meth:`Engine.end_suspicion`."""
        return self._all.end_suspicion(ledger_id, suspicion)


class OneVolume(Volumes):
    """The ledger directory of a bookie that was never given a second one; it has no number. The engine itself answers
    every call, so that an entry costs no more work than the engine's."""

    placement_log: None = None

    def __init__(self, engine: Engine, config: StorageConfig) -> None:
        super().__init__(engine, engine, engine, Placements())
        self._only = Volume(ONLY, config, engine)

    @property
    def volume_list(self) -> VolumeList:
        return VolumeList.of_one(self._only.config.ledger_dir, self._only.config.journal_dir)

    @property
    def serving(self) -> Sequence[Volume]:
        return (self._only,)

    def volume_with(self, ledger_id: LedgerId) -> Volume:
        return self._only  # whether it has the ledger or not

    def ledger_count(self, number: int) -> int:
        return len(list(self._only.engine.ledgers()))

    def on_loss(self, callback: Callable[[str, str, int], None]) -> None:
        pass

    @property
    def changeable(self) -> MappedVolumes:
        raise IllegalOperationError(
            "this bookie has one ledger directory; to add others, stop it, and start it with ledger_dirs "
            "(bk bookie --ledger-dir, once for each), the present one among them"
        )
