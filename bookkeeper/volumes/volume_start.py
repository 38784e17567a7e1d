"""What a start makes of several ledger directories: which volumes there are, which can be opened, what is on each.

A directory whose disk does not work is lost, and the bookie starts without it. One that is merely empty, where a volume
should be, ends the start: its file system is probably not mounted.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from bookkeeper.errors import CookieError, CorruptionError, StorageError, in_words
from bookkeeper.ids import LedgerId
from bookkeeper.meta.records.disks import PlacementsEnd
from bookkeeper.seams import Disk, Worker
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.engine import Engine
from bookkeeper.storage.start.directory_id import is_unused
from bookkeeper.storage.start.start import LOCK
from bookkeeper.volumes.ledger_map import PlacementKind, PlacementRecord, Placements
from bookkeeper.volumes.mapped_volumes import MappedVolumes
from bookkeeper.volumes.placement_file import NAME, ReadPlacements, decode_placements, judged
from bookkeeper.volumes.placement_log import PlacementLog, write_again, write_placements
from bookkeeper.volumes.volume import Volume
from bookkeeper.volumes.volume_list import (
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
_SPARE_RECORDS: Final = 1000
"""Records more than twice the fewest that a file of placements may have before a start writes it anew."""


def is_disk_failure(error: BaseException | None) -> bool:
    """Whether an error says that a disk does not work, rather than that something on it is not right."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _DISK_FAILURES:
            return True
        error = error.__cause__
    return False


# -- which volumes there are ------------------------------------------------------------------------------


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


# -- what is on each --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Recalled:
    """What a start knows of where ledgers are."""

    placements: Placements
    end: PlacementsEnd
    """Where the file ends that says so, durably."""
    doubted: bool
    """Whether the file had lost records."""


def recall_placements(
    disk: Disk,
    directory: str,
    listed: VolumeList,
    engines: Mapping[int, Engine],
    *,
    boot: int,
    published: PlacementsEnd | None,
) -> Recalled:
    """Which volume has which ledger. Blocks; part of the start.

    The volumes themselves say what is on them; the file says what was on one that is lost, and which of two copies
    counts. A file that ends before what was published of it has lost records, however good it looks.

    Args:
        boot: the number of this start; a file that is written anew gets it.
        published: where the file ended when that was last published; None: nothing was.

    Raises:
        CorruptionError: the file is damaged, cut or missing, and a volume is lost: which ledgers were on it cannot be
            told.
    """
    path = f"{directory}/{NAME}"
    data = disk.read_file(path) if disk.exists(path) else None
    read = _read(data, listed.file_id, published, path)
    gone = [f"{each.ledger_dir} is lost" for each in listed if each.state is VolumeState.LOST]
    gone += [f"ledger directory number {number} was lost" for number in listed.replaced]
    if read.damage is not None and gone:
        raise CorruptionError(
            f"{read.damage}, and {gone[0]}: which ledgers were on it cannot be told. Put {path} back as it was when "
            "the bookie stopped last, if you have that (older copies are refused); or give the bookie up, and join "
            "with empty directories under another --bookie-id"
        )
    if data is not None and read.damage is not None:
        log.error("%s: every ledger directory says itself which ledgers it has", read.damage)
    placements = Placements(read.records)
    for number in sorted(placements.volumes - engines.keys()):
        if read.damage is None:
            placements.take(PlacementRecord(PlacementKind.VOLUME_LOST, volume=number))
        else:  # nothing was on it when it was let go of: what the file says is older than that
            for ledger in placements.ledgers_on(number):
                placements.take(PlacementRecord(PlacementKind.GONE, ledger))
    _reconcile(placements, engines, damaged=read.damage is not None)
    if read.damage is not None and listed.mended:
        _doubt_all(placements, read.damage)
    needless = len(read.records) > 2 * len(placements) + _SPARE_RECORDS
    if data is None or not read.tidy or read.damage is not None or needless or not _says(read, placements):
        end = write_placements(disk, directory, listed.file_id, boot, placements.records())
    else:
        write_again(disk, directory, data)
        end = read.end
    return Recalled(placements, end, read.damage is not None)


def _read(data: bytes | None, file_id: int, published: PlacementsEnd | None, path: str) -> ReadPlacements:
    if data is None:
        return ReadPlacements([], PlacementsEnd(0, 0), f"{path} is missing")
    try:
        return judged(decode_placements(data, file_id, path), published, path)
    except CorruptionError as error:
        return ReadPlacements([], PlacementsEnd(0, 0), str(error))


def _says(read: ReadPlacements, placements: Placements) -> bool:
    """Whether the file says what is known now."""
    return set(Placements(read.records).records()) == set(placements.records())


def _reconcile(placements: Placements, engines: Mapping[int, Engine], *, damaged: bool) -> None:
    """Bring placements in line with what the volumes have. Copies that a move has left, or not finished, are stale:
    where the ledger is placed says which copy counts."""
    seen: dict[LedgerId, int] = {}
    for number, engine in engines.items():
        for ledger in engine.ledgers():
            if damaged and ledger in seen:
                placements.take(PlacementRecord(PlacementKind.LOST, ledger))  # which copy counts cannot be told
            elif placements.volume_of(ledger) is None and ledger not in placements.lost:
                placements.take(PlacementRecord(PlacementKind.PLACED, ledger, number))
            seen[ledger] = number
    for number, engine in engines.items():
        if engine.report.limbo_reason is None and not engine.report.rebuilt:
            for ledger in placements.ledgers_on(number):
                if ledger not in placements.lost and ledger not in placements.retired and not engine.has(ledger):
                    placements.take(PlacementRecord(PlacementKind.GONE, ledger))  # placed, and nothing was stored


def _doubt_all(placements: Placements, damage: str) -> None:
    """Which ledgers are retired cannot be told: any of those that are here may be, and its fence may be gone."""
    log.error(
        "%s, and ledgers that were once on a lost disk are here: which ones cannot be told. So the bookie refuses adds "
        "to every ledger that it has, and answers 'unknown', until the ledger is closed and was read here as a whole",
        damage,
    )
    for ledger in [record.ledger_id for record in placements.records() if record.kind is PlacementKind.PLACED]:
        placements.take(PlacementRecord(PlacementKind.LOST, ledger))


def open_door(
    disk: Disk,
    directory: str,
    listed: VolumeList,
    volumes: Sequence[Volume],
    worker: Callable[[str], Worker],
    call_later: Callable[[float, Callable[[], None]], object],
    *,
    boot: int,
    published: PlacementsEnd | None,
) -> MappedVolumes:
    """Write down which volumes are in use, recall what is on them, and put the door before them. Blocks.

    Args:
        boot, published: as for :func:`recall_placements`.

    Raises:
        CorruptionError: as :func:`recall_placements`.
        OSError: the bookie's directory cannot be written.
    """
    for each in volumes:
        if any(entry.number == each.number and entry.state is VolumeState.NEW for entry in listed):
            listed = listed.with_state(each.number, VolumeState.USED)
    engines = {each.number: each.engine for each in volumes}
    recalled = recall_placements(disk, directory, listed, engines, boot=boot, published=published)
    placements = recalled.placements
    if not placements.lost:
        listed = listed.with_whole(any_retired=bool(placements.retired))
    elif recalled.doubted:
        listed = listed.with_doubt()
    write_volumes(disk, directory, listed)  # after the placements: a loss that it notes is in them
    placement_log = PlacementLog(disk, directory, listed.file_id, recalled.end, worker("placements"), _nobody)
    return MappedVolumes(directory, disk, volumes, listed, placements, placement_log, worker("volumes"), call_later)


def _nobody(_error: BaseException) -> None:
    pass
