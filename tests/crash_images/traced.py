"""A simulated disk that writes down what was done to it, and how the metadata were at each moment."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from bookkeeper.errors import BookKeeperError
from bookkeeper.meta.stores.memory import MemoryCluster, MemorySnapshot
from bookkeeper.seams import Buffer
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.testing.world import SimDisk, SimFile
from tests.bookkeeper.storage.recording_disk import Op, RecordingDisk, crash_images
from tests.bookkeeper.storage.workload import Truth, everything, open_engine, violations

Files = dict[str, bytes]


class TracedFile(SimFile):
    """Notes what has succeeded."""

    disk: TracedDisk
    number: int

    def pwrite(self, data: Buffer, offset: int) -> None:
        super().pwrite(data, offset)
        self.disk.note_op(Op("write", self.path, self.number, offset, bytes(data), through=self.direct))

    def sync(self) -> None:
        super().sync()
        self.disk.note_op(Op("sync", self.path, self.number))

    def truncate(self, size: int) -> None:
        super().truncate(size)
        self.disk.note_op(Op("truncate", self.path, self.number, size))


class TracedDisk(SimDisk):
    def __init__(self, metadata: MemoryCluster) -> None:
        super().__init__(Random(1))
        self.ops: list[Op] = []
        self.direct = False  # a crash may leave more of writes that are not durable at once
        self._metadata, self._transaction = metadata, -1
        self._inodes: dict[int, int] = {}
        self.views: list[tuple[int, MemorySnapshot]] = []
        """The metadata as they were from so many operations on."""

    def note_op(self, op: Op) -> None:
        self.ops.append(op)
        self.look()

    def look(self) -> None:
        """Note how the metadata are now."""
        if self._metadata.transaction != self._transaction:
            self._transaction = self._metadata.transaction
            self.views.append((len(self.ops), self._metadata.snapshot()))

    def metadata_at(self, done: int) -> MemorySnapshot:
        """What the metadata were when so many operations were done."""
        return self.views[max(bisect_right([each for each, _ in self.views], done) - 1, 0)][1]

    def _number(self, path: str) -> int:
        directory, name = self._place(path)
        inode = directory.names[name]
        return self._inodes.setdefault(id(inode), len(self._inodes) + 1)

    def open(self, path: str, *, create: bool = False, write: bool = True, direct: bool = False) -> SimFile:
        opened = super().open(path, create=create, write=write, direct=direct)
        file = TracedFile(self, path, opened._inode, opened.direct, write)
        file.disk, file.number = self, self._number(path)
        if create:
            self.note_op(Op("create", path, file.number))
        return file

    def rename(self, source: str, target: str) -> None:
        number = self._number(source)
        super().rename(source, target)
        self.note_op(Op("rename", source, number, target=target))

    def unlink(self, path: str) -> None:
        number = self._number(path)
        super().unlink(path)
        self.note_op(Op("unlink", path, number))

    def sync_directory(self, path: str) -> None:
        super().sync_directory(path)
        self.note_op(Op("sync_directory", path))


@dataclass
class Lived:
    """A life that is over, and what must be true at each moment of it."""

    disk: TracedDisk
    config: StorageConfig
    truth: Truth = field(default_factory=Truth)

    def owed(self, metadata: MemorySnapshot) -> dict[tuple[int, int], bytes]:
        """Which entries the bookie has to have, because the metadata say so."""
        return {}


def wrong_images(
    lived: Lived, seed: int, per_point: int, begin: int = 0, *, every: int = 1
) -> Iterator[tuple[str, list[str]]]:
    """Images from operation ``begin`` on, all or one of ``every``, and what was wrong with each."""
    rng = Random(seed)
    for number, (at, kept, files) in enumerate(crash_images({}, lived.disk.ops, rng, per_point)):
        if at < begin or number % every:
            continue
        where = f"after {at} operations ({lived.disk.ops[at - 1].kind} {lived.disk.ops[at - 1].path}), kept {kept}"
        yield where, _look(lived, at, files)


def _look(lived: Lived, at: int, files: Files) -> list[str]:
    try:
        disk = RecordingDisk(files)
        engine, workers = open_engine(disk, lived.config)
        bad = violations(lived.truth, at, engine, workers)
        found = everything(engine, workers)
        for (ledger_id, entry_id), entry in lived.owed(lived.disk.metadata_at(at)).items():
            if found.get(ledger_id, ({},))[0].get(entry_id) != entry:
                bad.append(f"the metadata count on entry {entry_id} of ledger {ledger_id}")
        again, workers = open_engine(RecordingDisk(disk.files()), lived.config)
        if everything(again, workers) != found:
            bad.append("the second start gives another state")
    except (BookKeeperError, OSError, AssertionError) as error:
        bad = [f"{type(error).__name__}: {error}"]
    return bad
