"""A life with everything in it, cut short; and what it left."""

from __future__ import annotations

from bookkeeper.storage.base.manifest import Manifest, read_manifest
from bookkeeper.storage.journal.journal_format import JournalGroup, read_groups
from tests.bookkeeper.storage.recording_disk import RecordingDisk
from tests.bookkeeper.storage.workload import Life, State, everything


def a_life() -> tuple[dict[str, bytes], State]:
    """Everything there is: entries in logs and in the journal, fences, an explicit LAC, a dropped ledger; a crash."""
    disk = RecordingDisk()
    life = Life(disk)
    for entry_id in range(4):
        life.add(1, entry_id)
        life.add(2, entry_id, size=900)
        life.pump()
    life.fence(9)
    life.checkpoint()
    life.pump()
    life.collect(1)
    life.pump()
    life.add(2, 4, 5, 6, size=900)
    life.add(3, 0, 7)
    life.pump()
    life.explicit_lac(2, 5)
    life.fence(3)
    life.pump()
    return disk.files(), everything(life.engine, life.workers)


def manifest_of(disk: RecordingDisk) -> Manifest:
    found = read_manifest(disk, "/ledgers")
    assert found is not None
    return found


def groups_of(disk: RecordingDisk) -> list[tuple[str, JournalGroup]]:
    """The groups in the journal, each with its file's name, in order."""
    found: list[tuple[str, JournalGroup]] = []
    for name in sorted(name for name in disk.files() if name.endswith(".journal")):
        items = read_groups(disk.open(name, write=False), int(name[9:-8], 16))
        found += [(name, item) for item in items if isinstance(item, JournalGroup)]
    return found
