"""What a start makes of several ledger directories: which volumes there are, and which can be opened.

A directory whose disk does not work is lost, and the bookie starts without it. One that is merely empty, where a volume
should be, ends the start: its file system is probably not mounted.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from bookkeeper.errors import CookieError, StorageError, in_words
from bookkeeper.seams import Disk
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.start.directory_id import is_unused
from bookkeeper.storage.start.start import LOCK
from bookkeeper.volumes.disks.volume_list import (
    VolumeEntry,
    VolumeList,
    VolumeState,
    matched,
    read_volumes,
    share_of,
    write_volumes,
)

log = logging.getLogger(__name__)

_DISK_FAILURES: Final = frozenset(
    {errno.EIO, errno.ENODEV, errno.ENXIO, errno.EROFS, errno.ESTALE, errno.ENOTCONN, errno.EREMOTEIO, errno.EUCLEAN}
)


def is_disk_failure(error: BaseException | None) -> bool:
    """Whether an error says that a disk does not work, rather than that something on it is not right."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _DISK_FAILURES:
            return True
        error = error.__cause__
    return False


def list_volumes(
    disk: Disk, directory: str, wanted: Sequence[tuple[str, str]], storage: StorageConfig, file_id: int
) -> VolumeList:
    """The volumes of a bookie that is configured with these (ledger directory, journal directory). Writes nothing.

    A bookie that had one directory before has its data in one of them: that is a volume in use.

    Args:
        file_id: the id of a list that is made now.

    Raises:
        CookieError: the directories do not fit to what was there before.
        CorruptionError, UnsupportedFormatError: the list cannot be read.
    """
    known = read_volumes(disk, directory)
    if known is not None:
        return without_forgotten(matched(known, wanted, directory), [place for place, _ in wanted])
    made = VolumeList(file_id)
    for ledger_dir, journal_dir in wanted:
        entry = VolumeEntry(number=0, ledger_dir=ledger_dir, journal_dir=journal_dir)
        there = disk.exists(ledger_dir) and disk.exists(journal_dir)
        used = there and not is_unused(disk, share_of(storage, entry, 1))
        made = made.with_new(ledger_dir, journal_dir, VolumeState.USED if used else VolumeState.NEW)
    return made


def without_forgotten(listed: VolumeList, wanted: Iterable[str]) -> VolumeList:
    """The list without drained volumes whose directories are not configured any more."""
    asked = set(wanted)
    kept = [each for each in listed if each.state is not VolumeState.DRAINED or each.ledger_dir in asked]
    return replace(listed, entries=tuple(kept))


def _mount_or_give_up(directory: str, entry: VolumeEntry) -> str:
    return (
        "mount its disk; or, if that is lost, give it up with "
        f"`bk bookie lose-directory --dir {directory} {entry.ledger_dir}`"
    )


def without_failed(disk: Disk, listed: VolumeList, directory: str) -> VolumeList:
    """The list, with those as lost whose directories cannot even be listed. Logs each.

    Raises:
        CookieError: something else stands where a directory should be.
        StorageError: none would be left.
    """
    for each in listed.serving:
        try:
            for path in dict.fromkeys((each.ledger_dir, each.journal_dir)):
                if each.state is not VolumeState.NEW or disk.exists(path):
                    disk.list(path)
        except NotADirectoryError as error:
            what = "choose a directory" if each.state is VolumeState.NEW else _mount_or_give_up(directory, each)
            raise CookieError(f"{path} is no directory: {what}") from error
        except OSError as error:
            if is_disk_failure(error):
                listed = lost(listed, each, error)
    return listed


def lost(listed: VolumeList, entry: VolumeEntry, error: BaseException) -> VolumeList:
    """The list with a volume lost, because its disk does not work. Logs it.

    Raises:
        StorageError: it was the last one, or is a new one: nothing is lost with it, and nobody need do without.
    """
    reason = in_words(error)
    if entry.state is VolumeState.NEW:
        raise StorageError(f"the new ledger directory {entry.ledger_dir} does not work: {reason}") from error
    if len(listed.serving) <= 1:
        raise StorageError(f"no ledger directory of this bookie works: {entry.ledger_dir}: {reason}") from error
    log.error(
        "the disk of ledger directory %s does not work (%s): the bookie starts without it. The ledgers on it are "
        "copied from other bookies. Empty the directory, on a disk that works, and add it again with "
        "`bk bookie add-directory`",
        entry.ledger_dir,
        reason,
    )
    return listed.with_state(entry.number, VolumeState.LOST, reason)


def refuse_emptied(disk: Disk, listed: VolumeList, storage: StorageConfig, directory: str) -> None:
    """
    Raises:
        CookieError: a directory that holds a volume is empty.
    """
    for each in listed.serving:
        if each.state is not VolumeState.NEW and is_unused(disk, share_of(storage, each, 1)):
            raise CookieError(
                f"{each.ledger_dir} is empty, but ledgers of this bookie were on it: "
                f"{_mount_or_give_up(directory, each)}"
            )


def _locked(disk: Disk, config: StorageConfig) -> str | None:
    """One of the directories that somebody has open; None: nobody has."""
    for place in (config.ledger_dir, config.journal_dir):
        if disk.exists(path := f"{place}/{LOCK}"):
            try:
                disk.lock(path).release()
            except BlockingIOError:
                return place
    return None


def refuse_filled(disk: Disk, config: StorageConfig) -> None:
    """
    Raises:
        CookieError: a directory for a new volume holds data.
    """
    if not is_unused(disk, config):
        if (place := _locked(disk, config)) is not None:
            raise CookieError(
                f"{place} is in use by a bookie, perhaps under another name (a link): give the bookie another directory"
            )
        raise CookieError(
            f"{config.ledger_dir} (journal in {config.journal_dir}) is not empty, and a new ledger directory must be: "
            "give the bookie an empty one; if this one was lost or drained before, empty it first"
        )


def lose_offline(disk: Disk, directory: str, ledger_dir: str) -> VolumeEntry:
    """Give a volume of a bookie up that does not run. The next start treats its ledgers as lost.

    Raises:
        CookieError: there is no such volume, or it is the last one.
    """
    listed = read_volumes(disk, directory)
    entry = listed.at(ledger_dir) if listed is not None else None
    if listed is None or entry is None or not entry.state.serves:
        raise CookieError(f"{ledger_dir} is no ledger directory in use of the bookie in {directory}")
    if len(listed.serving) == 1:
        raise CookieError(
            f"{ledger_dir} is the last ledger directory of the bookie in {directory}: if it is lost, the bookie is; "
            "join with empty directories under another --bookie-id"
        )
    write_volumes(disk, directory, listed.with_state(entry.number, VolumeState.LOST, "it was given up"))
    return entry
