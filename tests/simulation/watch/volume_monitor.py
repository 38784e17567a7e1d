"""What must hold where bookies have several ledger directories, watched from outside.

    B12  a ledger that was on a disk that failed takes no regular add any more, and no disk leaves that did not fail
    K35  where a ledger lies is durable when anything about it is answered: a power cut at that moment leaves it where
         its entries are; and what was published of the file that says so reaches as far

What a volume that is lost held is taken out of what the bookie is known to have; what a repair brings back counts.
What the bookie does not admit to have lost must be there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from bookkeeper.codec import scan_records
from bookkeeper.ids import LedgerId
from bookkeeper.meta.records.disks import PlacementsEnd
from bookkeeper.seams import Disk
from bookkeeper.storage.base.results import Done
from bookkeeper.storage.engine import Engine
from bookkeeper.storage.index.ledger_descriptor import StateRecordKind
from bookkeeper.testing.world import SimDisk
from bookkeeper.volumes import MappedVolumes, Volume, Volumes
from bookkeeper.volumes.after_all import concerns
from bookkeeper.volumes.map.ledger_map import PlacementKind, PlacementRecord, Placements
from bookkeeper.volumes.map.placement_file import NAME, ReadPlacements, decode_placements
from tests.simulation.users.volume_operator import HOME

if TYPE_CHECKING:
    from tests.simulation.watch.monitor import Monitor


def engine_with(storage: Volumes, ledger: int) -> Engine | None:
    """The engine on which a ledger lies."""
    volume = storage.volume_with(LedgerId(ledger))
    return volume.engine if volume is not None else None


def is_lost(storage: Volumes, ledger: int) -> bool:
    """Whether the bookie says that the ledger was on a disk that failed, and is not whole yet."""
    return ledger in storage.placements.lost


class VolumeMonitor:
    """A part of :class:`tests.simulation.watch.monitor.Monitor`."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self.broken: set[tuple[str, str]] = set()
        """Bookies and places whose disks have failed."""
        self.forsaken: dict[str, set[int]] = defaultdict(set)
        """Bookie -> ledgers that were on disks that failed."""
        self.gone: dict[str, set[tuple[int, int]]] = defaultdict(set)
        """Bookie -> entries that were on disks that failed."""
        self._entries: dict[str, dict[int, set[tuple[int, int]]]] = defaultdict(dict)
        """Bookie -> volume -> what is durable on it."""
        self._fences: dict[str, dict[int, set[int]]] = defaultdict(dict)
        self._where: dict[str, dict[int, int]] = defaultdict(dict)
        """Bookie -> ledger -> the volume on which it lies."""
        self._places: dict[str, dict[int, str]] = defaultdict(dict)
        """Bookie -> the directory of every volume that ever served."""
        self._placed: dict[str, set[int]] = defaultdict(set)
        """Bookie -> ledgers whose place is durable."""
        self._handed_in: dict[str, set[int]] = defaultdict(set)
        """Bookie -> ledgers of the adds for which nobody waits yet."""

    def watch(self, name: str, volumes: MappedVolumes, disk: Disk) -> None:
        """From a bookie's start on."""
        assert isinstance(disk, SimDisk)
        monitor, placements = self._monitor, volumes.placements
        monitor.deferred[name].clear()
        self._placed[name].clear()
        self._handed_in[name].clear()
        serving = {each.number for each in volumes.serving}
        for number in sorted(self._entries[name].keys() - serving):
            on_it = [ledger for ledger, where in self._where[name].items() if where == number]
            lost = [ledger for ledger in on_it if ledger in placements.lost]
            if lost:
                self._lost(name, number, lost)
            del self._entries[name][number], self._fences[name][number]
        monitor.check_memory(name, volumes)
        self._where[name] = {ledger: each for each in serving for ledger in placements.ledgers_on(each)}
        for each in volumes.serving:
            self._admit(name, volumes, each)
        self._watch_placements(name, volumes)
        self._watch_adds(name, volumes)
        self._watch_answers(name, volumes, disk)

    # -- what is where ------------------------------------------------------------------------------------

    def _admit(self, name: str, volumes: MappedVolumes, volume: Volume) -> None:
        number, engine = volume.number, volume.engine
        self._places[name][number] = volume.config.ledger_dir
        self._entries[name][number] = {
            (ledger, entry)
            for ledger in engine.ledgers()
            for run in engine._reader.places.entries(engine._ledgers.ledgers[ledger])
            for entry in range(run.first, run.first + run.count)
        }
        self._fences[name][number] = {ledger for ledger in engine.ledgers() if engine.is_fenced(ledger)}
        journal: Any = engine._commit.journal
        make_durable = journal.make_durable

        def watched(group: Any, durable_below: int) -> None:
            make_durable(group, durable_below)
            scan = scan_records(group.data, 0, len(group.data), len(group.data))
            for ledger, entry in zip(scan.ledger_ids, scan.entry_ids, strict=True):
                at_home = volumes.placements.volume_of(ledger) == number
                if entry >= 0:
                    self._entries[name][number].add((ledger, entry))
                    if at_home:
                        self._monitor.durable[name].add((ledger, entry))
                elif entry == StateRecordKind.FENCED:
                    self._fences[name][number].add(ledger)
                    if at_home:
                        self._monitor.fences[name].add(ledger)
                        self._monitor.count("fences")

        journal.make_durable = watched

    def _watch_placements(self, name: str, volumes: MappedVolumes) -> None:
        placements: Any = volumes.placements
        members: Any = volumes.members
        take, lose, admit = placements.take, members.lose, members.admit

        def watched_take(record: PlacementRecord) -> None:
            if record.kind is PlacementKind.VOLUME_LOST:
                self._lost(name, record.volume, placements.ledgers_on(record.volume))
            take(record)
            self._placed[name].discard(record.ledger_id)
            if record.kind is PlacementKind.PLACED:
                self._where[name][record.ledger_id] = record.volume
                here = self._entries[name].get(record.volume, set())
                self._monitor.durable[name] |= {each for each in here if each[0] == record.ledger_id}
                if record.ledger_id in self._fences[name].get(record.volume, ()):
                    self._monitor.fences[name].add(record.ledger_id)
                self._monitor.count("ledgers placed on a directory")

        def watched_lose(number: int, reason: str) -> None:
            place = self._places[name].get(number, "")
            if any(each.number == number for each in volumes.serving) and (name, place) not in self.broken:
                self._monitor.problem("B12", f"{name} gives {place} up, whose disk works: {reason}")
            lose(number, reason)

        def watched_admit(volume: Volume) -> None:
            admit(volume)
            self._admit(name, volumes, volume)

        placements.take, members.lose, members.admit = watched_take, watched_lose, watched_admit

    def _lost(self, name: str, number: int, ledgers: Iterable[int]) -> None:
        monitor, gone = self._monitor, set(ledgers)
        place = self._places[name].get(number, "")
        if (name, place) not in self.broken:
            monitor.problem("B12", f"{name} has lost {place}, whose disk works")
        self.forsaken[name] |= gone
        entries = {each for each in monitor.durable[name] if each[0] in gone}
        monitor.durable[name] -= entries
        self.gone[name] |= entries
        for ledger in gone:
            self._where[name].pop(ledger, None)
        monitor.count("ledger directories lost")
        monitor.count("ledgers on lost directories", len(gone))

    # -- what is taken and answered -----------------------------------------------------------------------

    def _watch_adds(self, name: str, volumes: MappedVolumes) -> None:
        door: Any = volumes
        append, append_entry = door.append, door.append_entry

        def watched_append(run: Any, batch: Any, *, recovery: bool = False) -> None:
            append(run, batch, recovery=recovery)
            self._taken(name, run.ledger_id, recovery)
            if getattr(run, "deferred", False):  # the reply follows in this turn
                self._monitor.deferred[name].update(
                    (run.ledger_id, entry) for entry in batch.entry_ids[run.i0 : run.i1]
                )

        def watched_append_entry(ledger_id: LedgerId, key: bytes, entry: Any, *, recovery: bool = False) -> None:
            append_entry(ledger_id, key, entry, recovery=recovery)
            self._taken(name, ledger_id, recovery)

        door.append, door.append_entry = watched_append, watched_append_entry

    def _taken(self, name: str, ledger: int, recovery: bool) -> None:
        self._handed_in[name].add(ledger)
        if recovery:
            return
        if ledger in self.forsaken[name]:
            self._monitor.problem("B12", f"{name} takes a regular add to ledger {ledger}, which was on a lost disk")
        if ledger in self._monitor.fences[name]:
            self._monitor.problem("B3", f"{name} takes a regular add to ledger {ledger}, which it had fenced durably")

    def _watch_answers(self, name: str, volumes: MappedVolumes, disk: SimDisk) -> None:
        door: Any = volumes
        when_durable, start_writing, fence, force = door.when_durable, door.start_writing, door.fence, door.force

        def watched_when_durable(callback: Done) -> None:
            ledgers = sorted(self._handed_in.pop(name, ()))

            def durable(error: BaseException | None) -> None:
                self._judge_places(name, volumes, disk, [each for each in ledgers if concerns(error, each) is None])
                callback(error)

            when_durable(durable)

        def watched_start_writing() -> None:
            self._handed_in.pop(name, None)
            start_writing()

        def judged(ledger: int, callback: Done) -> Done:
            def answered(error: BaseException | None) -> None:
                if error is None and volumes.placements.volume_of(ledger) is not None:
                    self._judge_places(name, volumes, disk, [ledger])
                callback(error)

            return answered

        def watched_fence(ledger_id: LedgerId, key: bytes, callback: Done) -> None:
            fence(ledger_id, key, judged(ledger_id, callback))

        def watched_force(ledger_id: LedgerId, callback: Done) -> None:
            force(ledger_id, judged(ledger_id, callback))

        door.when_durable, door.start_writing = watched_when_durable, watched_start_writing
        door.fence, door.force = watched_fence, watched_force

    def _judge_places(self, name: str, volumes: MappedVolumes, disk: SimDisk, ledgers: Iterable[int]) -> None:
        """K35: a power cut now leaves these ledgers where what is durable of them is."""
        if not (asked := [each for each in ledgers if each not in self._placed[name]]):
            return
        found = self._after_a_power_cut(volumes, disk)
        after, published = Placements(found.records), Placements(found.records[: self._published(name, found)])
        for ledger in asked:
            here, there = volumes.placements.volume_of(ledger), after.volume_of(ledger)
            had = {each for each in self._monitor.durable[name] if each[0] == ledger}
            if there is None or (there != here and not had <= self._entries[name].get(there, set())):
                self._monitor.problem("K35", f"{name} answers for ledger {ledger} on {here}, its notes have {there}")
            elif there == here and published.volume_of(ledger) != here:
                self._monitor.problem("K35", f"{name} answers for ledger {ledger}, whose place is not published")
            elif there == here:
                self._placed[name].add(ledger)

    def _published(self, name: str, found: ReadPlacements) -> int:
        """How many of these records would be missed if they were gone."""
        record = self._monitor.disk_record_of(name)
        if record is None or record.placements is None:
            return len(found.records)
        return record.placements.count if record.placements.generation == found.end.generation else 0

    def _after_a_power_cut(self, volumes: MappedVolumes, disk: SimDisk) -> ReadPlacements:
        path = f"{HOME}/{NAME}"
        data = disk.surviving(path)
        if data is None:
            return ReadPlacements([], PlacementsEnd(0, 0), f"{path} is missing")
        return decode_placements(data, volumes.volume_list.file_id, path)
