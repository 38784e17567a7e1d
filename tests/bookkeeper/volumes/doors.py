"""MappedVolumes over engines on a disk that remembers everything; workers work when told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.meta.records.disks import PlacementsEnd
from bookkeeper.storage.base.results import PackedEntries
from bookkeeper.storage.engine import Engine
from bookkeeper.testing.world import SimDisk
from bookkeeper.volumes import MappedVolumes, Volume
from bookkeeper.volumes.disks.volume_list import VolumeList, VolumeState, read_volumes, share_of
from bookkeeper.volumes.routing.ledger_moves import LedgerMove
from bookkeeper.volumes.start.placement_recall import open_mapped
from tests.bookkeeper.storage.recording_disk import QueueWorkers, RecordingDisk, crash_images
from tests.bookkeeper.storage.workload import CONFIG, KEY, make_entry

HOME = "/home"
NOTHING_YET = PlacementsEnd(0, 0)
"""Nothing of this file is published."""
Answers = list[BaseException | None]


def new_disk(*places: str) -> SimDisk:
    """A disk with the bookie's directory and these."""
    disk = SimDisk(Random(1))
    for place in (HOME, *places):
        disk.make_directories(place)
    return disk


class Door:
    """One life of the volumes in ``/d1``, ``/d2``, ...; those in ``without`` do not work any more."""

    def __init__(
        self,
        count: int = 2,
        files: dict[str, bytes] | None = None,
        *,
        without: Sequence[int] = (),
        published: PlacementsEnd | None = NOTHING_YET,
        boot: int = 1,
        publishes: bool = True,
        **settings: Any,
    ) -> None:
        self.before = dict(files or {})
        """The files before this life."""
        self.disk, self.workers = RecordingDisk(files), QueueWorkers()
        self._later: list[Callable[[], None]] = []
        listed = read_volumes(self.disk, HOME)
        if listed is None:
            listed = VolumeList(77)
            for number in range(1, count + 1):
                listed = listed.with_new(f"/d{number}", f"/d{number}")
        for number in without:
            listed = listed.with_state(number, VolumeState.LOST, "burnt")
        found = [
            Volume(each.number, share_of(CONFIG, each, 1), self.engine_at(each.ledger_dir, **settings))
            for each in listed.serving
        ]
        how = (self.workers.worker, self._call_later)
        self.volumes: MappedVolumes = open_mapped(self.disk, HOME, listed, found, *how, boot=boot, published=published)
        self.published: list[tuple[int, PlacementsEnd]] = []
        """Where the placements ended when that was published, and after how many operations of the disk."""
        if publishes:
            self.publish()
            self.volumes.placement_log.publish_with(self.publish)
        self.pump()
        self.begun = len(self.disk.ops)
        """Operations of the start."""

    def publish(self) -> None:
        """Publish at once."""
        log = self.volumes.placement_log
        self.published.append((len(self.disk.ops) + 1, log.end))
        log.published(log.end)

    def crash_images(self, rng: Random, per_point: int) -> Iterator[tuple[int, str, dict[str, bytes]]]:
        """What crashes after the start may leave."""
        found = crash_images(self.before, self.disk.ops, rng, per_point)
        return ((done, name, files) for done, name, files in found if done >= self.begun)

    def engine_at(self, place: str, **settings: Any) -> Engine:
        """Open what is in a directory."""
        entry = VolumeList(1).with_new(place, place).entries[0]
        self.disk.locks.clear()
        return Engine.open(share_of(CONFIG, entry, 1), self.disk, self.workers, **settings)

    def again(self, **how: Any) -> Door:
        """The next life, after the process was killed: everything that was written is there."""
        return Door(files=self.disk.files(), **how)

    def pump(self) -> None:
        """Let the workers and the loop do all that is to be done."""
        while self.workers.jobs or self._later:
            self.workers.pump()
            later, self._later = self._later, []
            for each in later:
                each()

    def engine(self, number: int) -> Engine:
        """The engine of a volume that serves."""
        return next(each.engine for each in self.volumes.serving if each.number == number)

    def volume(self, number: int) -> Volume:
        """A volume that serves."""
        return next(each for each in self.volumes.serving if each.number == number)

    def add(self, ledger: int, entry: int, *, recovery: bool = False) -> None:
        """One add, stored and not waited for."""
        self.volumes.append_entry(LedgerId(ledger), KEY, make_entry(ledger, entry), recovery=recovery)

    def acked(self, ledger: int, *entries: int, recovery: bool = False) -> None:
        """Adds that are answered."""
        answers: Answers = []
        for entry in entries:
            self.add(ledger, entry, recovery=recovery)
        self.volumes.when_durable(answers.append)
        self.pump()
        assert answers == [None]

    def done(self, begin: Callable[[Callable[[BaseException | None], None]], object]) -> BaseException | None:
        """Begin something, and how it ended."""
        answers: Answers = []
        begin(answers.append)
        self.pump()
        assert len(answers) == 1, "exactly one answer"
        return answers[0]

    def fenced(self, ledger: int) -> BaseException | None:
        """Fence a ledger."""
        return self.done(lambda done: self.volumes.fence(LedgerId(ledger), KEY, done))

    def read(self, ledger: int, entry: int) -> bytes | BaseException:
        """One read."""
        got: list[bytes | BaseException] = []
        self.volumes.read(LedgerId(ledger), EntryId(entry), got.append)
        self.pump()
        assert len(got) == 1, "exactly one reply"
        return got[0]

    def read_batch(self, ledger: int, first: int) -> PackedEntries | BaseException:
        """A read of all entries from one on."""
        got: list[PackedEntries | BaseException] = []
        self.volumes.read_batch(LedgerId(ledger), EntryId(first), 0, 1 << 20, got.append)
        self.pump()
        assert len(got) == 1, "exactly one reply"
        return got[0]

    def has(self, ledger: int, entry: int) -> bool:
        """Whether the entry is here, as it was added."""
        return self.read(ledger, entry) == make_entry(ledger, entry)

    def _call_later(self, _seconds: float, call: Callable[[], None]) -> None:
        self._later.append(call)


def moving(door: Door, ledger: int) -> LedgerMove:
    """A ledger that was copied to another volume; the move is not recorded yet."""
    source = door.volumes.placements.volume_of(ledger)
    target = door.volumes.best_target(source or 0)
    assert target is not None
    move = door.volumes.begin_move(LedgerId(ledger), target)
    for run in move.source.engine.entries(LedgerId(ledger)):
        for entry in range(run.first, run.first + run.count):
            target.engine.append_entry(LedgerId(ledger), KEY, make_entry(ledger, entry), recovery=True)
    assert door.done(lambda done: door.volumes.moves.wait_for_both(move, done)) is None
    return move
