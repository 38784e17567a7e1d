"""Starting a bookie's disk: lock, scan, replay, cover.

1. The directories are locked, and files of other directories refused (``directory_id``).
2. :mod:`~bookkeeper.storage.start.scan_files`: manifest, index, entry logs; nothing is written. Then the dirty markers
   are made, durably, before anything else is written.
3. :mod:`~bookkeeper.storage.start.replay`: the journal behind the mark goes into a new entry log.
4. :mod:`~bookkeeper.storage.start.cover`: a new journal file and a checkpoint; only then may anything go.

A crash anywhere in here leaves a state from which the same start works again. What becomes of a start that finds no
space says :mod:`~bookkeeper.storage.start.full_disk`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bookkeeper.errors import DirectoryLockedError
from bookkeeper.seams import Disk, Lock
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.base.dirty_marker import mark
from bookkeeper.storage.base.durable_file import close_all, remove_files
from bookkeeper.storage.base.manifest import Manifest
from bookkeeper.storage.base.results import OpenReport, PublishedProgress
from bookkeeper.storage.entry_log.entry_logs import EntryLogs
from bookkeeper.storage.journal.group_writer import GroupWriter
from bookkeeper.storage.ledgers.known_ledgers import KnownLedgers
from bookkeeper.storage.start.cover import StartCheckpoint
from bookkeeper.storage.start.directory_id import directory_id_of, refuse_foreign
from bookkeeper.storage.start.replay import JournalReplay
from bookkeeper.storage.start.scan_files import scan_files

LOCK = "lock"


@dataclass(slots=True)
class ReplayedDisk:
    """What the engine begins with."""

    manifest: Manifest
    entry_logs: EntryLogs
    journal: GroupWriter
    locks: list[Lock]
    ledgers: KnownLedgers
    spares: list[str]
    report: OpenReport


def start(config: StorageConfig, disk: Disk, boot: int, known: PublishedProgress) -> ReplayedDisk:
    """See the module; blocks.

    Raises:
        DirectoryLockedError, ForeignDirectoryError, UnsupportedFormatError, StorageError, OSError
    """
    locks = lock_directories(config, disk)
    try:
        if expected := known.directory_id or directory_id_of(disk, config):
            refuse_foreign(disk, config, expected)
        return _start(config, disk, directories_of(config), boot, known, locks)
    except BaseException:
        release(locks)
        raise


def directories_of(config: StorageConfig) -> list[str]:
    """The ledger directory and the journal's, which may be the same."""
    return list(dict.fromkeys((config.ledger_dir, config.journal_dir)))


def lock_directories(config: StorageConfig, disk: Disk) -> list[Lock]:
    """Make the directories if need be, and lock them. Raises: DirectoryLockedError, OSError."""
    directories = directories_of(config)
    for directory in directories:
        disk.make_directories(directory)
    locks: list[Lock] = []
    try:
        for directory in directories:
            locks.append(_lock(disk, directory))
    except BaseException:
        release(locks)
        raise
    return locks


def release(locks: Sequence[Lock]) -> None:
    """Undo :func:`lock_directories`."""
    for lock in locks:
        lock.release()


def _lock(disk: Disk, directory: str) -> Lock:
    try:
        return disk.lock(f"{directory}/{LOCK}")
    except BlockingIOError as error:
        raise DirectoryLockedError(f"{directory} is in use by another process") from error


def _start(
    config: StorageConfig,
    disk: Disk,
    directories: Sequence[str],
    boot: int,
    known: PublishedProgress,
    locks: list[Lock],
) -> ReplayedDisk:
    found = scan_files(config, disk, directories, known.directory_id)
    replay, checkpoint = JournalReplay(config, disk, boot, found), StartCheckpoint(config, disk, boot, found)
    try:
        mark(disk, directories, boot)
        replay.run(known)
        broken = found.losses.journal_broken
        if found.losses.damaged:
            replay.take_in_orphans()
        covered = checkpoint.run(replay.groups.last, known.file_id, broken)
    except BaseException as error:
        close_all(found.entry_logs.open_files())
        if isinstance(error, OSError) and not checkpoint.published:  # a full disk: the next try needs the space
            remove_files(disk, config.ledger_dir, replay.made)
            checkpoint.take_back()
        raise
    report = found.report
    report.limbo_reason, report.torn_tail = covered.manifest.limbo, replay.groups.torn
    report.quarantined = found.losses.quarantined
    return ReplayedDisk(
        covered.manifest,
        found.entry_logs,
        covered.journal,
        locks,
        found.ledgers.states,
        covered.spares,
        report,
    )
