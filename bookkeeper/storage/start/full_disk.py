"""A start on a full disk: what it gives up, step by step, until there is space for it (K26).

1. The reserve.
2. Spare journal files that were not written to their end, and all whole ones but one.
3. What entry logs and index segments hold beyond the mark. A start copies the journal anew, so those are second copies:
   they go once the journal was read from its beginning to its end, and nothing is missing or damaged. What is freed is
   as large as what a start writes, but for the groups that the journal has and no entry log.
4. Journal files: what they hold is covered by a checkpoint whose mark is in the newest of them, so that the others
   become spares, and the start needs no new file.

After damage or loss the last two are left out: any file may hold a last copy (G4). A crash anywhere in here leaves what
a start works from.
"""

from __future__ import annotations

from collections.abc import Callable

from bookkeeper.errors import DiskFullError, in_words
from bookkeeper.seams import Disk
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.base.dirty_marker import mark
from bookkeeper.storage.base.durable_file import NO_SPACE, close_all, file_size, remove_files, sync
from bookkeeper.storage.base.manifest import Manifest
from bookkeeper.storage.base.results import PublishedProgress
from bookkeeper.storage.disk_space import give_up_space
from bookkeeper.storage.entry_log.entry_log_file import log_ids, log_name
from bookkeeper.storage.index.index_segment import segment_ids, segment_name
from bookkeeper.storage.start.cover import StartCheckpoint
from bookkeeper.storage.start.inventory import Inventory
from bookkeeper.storage.start.replay import JournalReplay
from bookkeeper.storage.start.scan_files import scan_files
from bookkeeper.storage.start.start import ReplayedDisk, directories_of, lock_directories, release, start

Step = Callable[[StorageConfig, Disk, int, PublishedProgress], bool]
"""Returns whether it has freed anything."""


def start_with_room(config: StorageConfig, disk: Disk, boot: int, known: PublishedProgress) -> ReplayedDisk:
    """As :func:`~bookkeeper.storage.start.start.start`, and on a full disk with what it makes room for.

    Raises:
        DiskFullError: nothing is left that could be given up; nothing is lost. And as ``start``.
    """
    left: list[Step] = [free_copies, cover_in_place]
    while True:
        try:
            return start(config, disk, boot, known)
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
            if give_up_space(config, disk) or _any_of(left, config, disk, boot, known):
                continue
            raise DiskFullError(
                f"there is no space for a start: {in_words(error)}; nothing is lost; make room on the disk of "
                f"{' or '.join(directories_of(config))} (some {config.start_reserve_bytes} bytes), and start it again"
            ) from error


def _any_of(left: list[Step], config: StorageConfig, disk: Disk, boot: int, known: PublishedProgress) -> bool:
    """Take steps until one has freed something; each is taken once."""
    while left:
        try:
            if left.pop(0)(config, disk, boot, known):
                return True
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
    return False


def free_copies(config: StorageConfig, disk: Disk, boot: int, known: PublishedProgress) -> bool:
    """Step 3 of the module.

    Raises:
        as ``start``.
    """
    locks = lock_directories(config, disk)
    try:
        found, _ = _found(config, disk, boot, known, only_look=True)
        close_all(found.entry_logs.open_files())
        return _is_whole(found) and _remove_beyond(config, disk, found.manifest)
    finally:
        release(locks)


def cover_in_place(config: StorageConfig, disk: Disk, boot: int, known: PublishedProgress) -> bool:
    """Step 4 of the module.

    Raises:
        as ``start``.
    """
    locks = lock_directories(config, disk)
    try:
        mark(disk, directories_of(config), boot)
        found, replay = _found(config, disk, boot, known, only_look=False)
        checkpoint = StartCheckpoint(config, disk, boot, found)
        try:
            return _is_whole(found) and checkpoint.run_in_place(replay.groups.last)
        finally:
            close_all(found.entry_logs.open_files())
            if not checkpoint.published:
                remove_files(disk, config.ledger_dir, replay.made)
                checkpoint.take_back()
    finally:
        release(locks)


def _found(
    config: StorageConfig, disk: Disk, boot: int, known: PublishedProgress, *, only_look: bool
) -> tuple[Inventory, JournalReplay]:
    """What is on the disk, with what the journal holds."""
    found = scan_files(config, disk, directories_of(config), known.directory_id)
    replay = JournalReplay(config, disk, boot, found, only_look=only_look)
    try:
        replay.run(known)
    except BaseException:
        close_all(found.entry_logs.open_files())
        remove_files(disk, config.ledger_dir, replay.made)
        raise
    return found, replay


def _is_whole(found: Inventory) -> bool:
    """Nothing is missing or damaged, also not the manifest, and nobody doubts that."""
    return not found.report.rebuilt and not found.losses.keep_journals


def _remove_beyond(config: StorageConfig, disk: Disk, manifest: Manifest) -> bool:
    """Remove what no manifest names, also behind the ends that it gives. Returns whether that freed anything."""
    directory = config.ledger_dir
    unnamed = [log_name(key) for key in log_ids(disk, directory) if key not in manifest.logs]
    unnamed += [segment_name(key) for key in segment_ids(disk, directory) if key not in manifest.segments]
    freed = bool(unnamed)
    for log_id, entry in manifest.logs.items():
        path = f"{directory}/{log_name(log_id)}"
        if not entry.finished and file_size(disk, path) > entry.end:
            _truncate(disk, path, entry.end)
            freed = True
    remove_files(disk, directory, unnamed)
    return freed


def _truncate(disk: Disk, path: str, size: int) -> None:
    file = disk.open(path)
    try:
        file.truncate(size)
        sync(file)
    finally:
        file.close()
