"""What a bookie stores ledgers in: one volume, or several behind the same interface.

The interface is that of :class:`~bookkeeper.storage.engine.Engine`. One volume needs no map of which volume has which
ledger (:class:`OneVolume`): its engine itself answers every call, and nothing is
written beside it. Several need one (:class:`~bookkeeper.volumes.mapped_volumes.MappedVolumes`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from bookkeeper.ids import IdRanges, LedgerId
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.base.results import EngineState, EngineStats, OpenReport
from bookkeeper.storage.compaction.compactor import Compactor
from bookkeeper.storage.engine import Engine
from bookkeeper.storage.scrub.scrubber import Scrubber
from bookkeeper.volumes.calls.all_volumes import AllVolumes
from bookkeeper.volumes.calls.reads import VolumeReads
from bookkeeper.volumes.calls.writes import VolumeWrites
from bookkeeper.volumes.disks.serving import Volume
from bookkeeper.volumes.disks.volume_list import ONLY, VolumeList
from bookkeeper.volumes.map.ledger_map import Placements
from bookkeeper.volumes.map.placement_log import PlacementLog
from bookkeeper.volumes.members.volume_housekeeping import VolumeCompactors, VolumeScrubbers


class Volumes(ABC):
    """The volumes of one bookie. Runs on the loop's thread."""

    def __init__(
        self,
        writes: Engine | VolumeWrites,
        reads: Engine | VolumeReads,
        all_volumes: Engine | AllVolumes,
        placements: Placements,
    ) -> None:
        self._all = all_volumes
        self.report: OpenReport = all_volumes.report
        self.scrubber: Scrubber | VolumeScrubbers = all_volumes.scrubber
        """Reads and checks every stored byte of every volume."""
        self.compactor: Compactor | VolumeCompactors = all_volumes.compactor
        """Compacts every volume."""
        self.placements: Placements = placements
        """Which volume has which ledger; empty with one volume, which has them all. Not to be changed."""
        self.landing, self.append, self.append_entry = writes.landing, writes.append, writes.append_entry
        self.when_durable, self.start_writing = writes.when_durable, writes.start_writing
        self.fence, self.set_explicit_lac = writes.fence, writes.set_explicit_lac
        self.force, self.ledger_closed = writes.force, writes.ledger_closed
        self.read, self.read_batch, self.try_read_cached = reads.read, reads.read_batch, reads.try_read_cached
        self.lac, self.explicit_lac, self.on_lac = reads.lac, reads.explicit_lac, reads.on_lac
        self.last_entry, self.entries, self.ledgers = reads.last_entry, reads.entries, reads.ledgers
        self.has, self.is_fenced, self.is_strange = reads.has, reads.is_fenced, reads.is_strange
        self.on_state, self.on_pressure = all_volumes.on_state, all_volumes.on_pressure
        self.on_new_journal_file, self.check_space = all_volumes.on_new_journal_file, all_volumes.check_space
        self.refusals = all_volumes.refusals
        self.sentences, self.space, self.close = all_volumes.sentences, all_volumes.space, all_volumes.close
        self.checkpoint, self.collect = all_volumes.checkpoint, all_volumes.collect
        self.compact, self.finish_logs = all_volumes.compact, all_volumes.finish_logs
        self.narrow_limbo, self.end_limbo = all_volumes.narrow_limbo, all_volumes.end_limbo
        self.doubt, self.suspicion = all_volumes.doubt, all_volumes.suspicion
        self.end_suspicion = all_volumes.end_suspicion

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
    def positions(self) -> dict[int, tuple[int, int]]:
        """For each volume that serves :attr:`Engine.durable_position`."""
        return {each.number: each.engine.durable_position for each in self.serving}

    @property
    def state(self) -> EngineState:
        """Writable while any volume takes new ledgers; failed when none is left."""
        return self._all.state

    @property
    def dropped(self) -> IdRanges:
        """See :attr:`Engine.dropped`."""
        return self._all.dropped

    @property
    def stats(self) -> EngineStats:
        """The sums over the volumes that serve."""
        return self._all.stats

    @property
    def journal_bytes_in_flight(self) -> int:
        """Bytes accepted and not yet durable, of all volumes."""
        return self._all.journal_bytes_in_flight

    @property
    def in_limbo(self) -> bool:
        """See :attr:`Engine.in_limbo`: a volume is."""
        return self._all.in_limbo

    @property
    def takes_new_ledgers(self) -> bool:
        """See :attr:`Engine.takes_new_ledgers`: a volume does."""
        return self._all.takes_new_ledgers

    @property
    def suspects(self) -> frozenset[int]:
        """See :attr:`Engine.suspects`; lost ledgers are among them."""
        return self._all.suspects


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
