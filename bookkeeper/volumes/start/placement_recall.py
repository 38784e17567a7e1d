"""Which volume has which ledger, as a start finds it; then the volumes behind one interface.

The volumes themselves say what is on them; the file of placements says what was on one that is lost, and which of two
copies counts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bookkeeper.errors import CorruptionError
from bookkeeper.ids import LedgerId
from bookkeeper.meta.records.disks import PlacementsEnd
from bookkeeper.seams import Disk, Worker
from bookkeeper.storage.base.results import ignore
from bookkeeper.storage.engine import Engine
from bookkeeper.volumes.disks.serving import Volume
from bookkeeper.volumes.disks.volume_list import (
    VolumeList,
    VolumeState,
    write_volumes,
)
from bookkeeper.volumes.map.ledger_map import PlacementKind, PlacementRecord, Placements
from bookkeeper.volumes.map.placement_file import NAME, ReadPlacements, decode_placements, judged
from bookkeeper.volumes.map.placement_log import PlacementLog, write_again, write_placements
from bookkeeper.volumes.mapped_volumes import MappedVolumes

log = logging.getLogger(__name__)

_SPARE_RECORDS: Final = 1000
"""Records more than twice the fewest that a file of placements may have before a start writes it anew."""


@dataclass(frozen=True, slots=True)
class PlacementRecall:
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
) -> PlacementRecall:
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
    if data is None or not read.tidy or read.damage is not None or needless or not _is_current(read, placements):
        end = write_placements(disk, directory, listed.file_id, boot, placements.records())
    else:
        write_again(disk, directory, data)
        end = read.end
    return PlacementRecall(placements, end, read.damage is not None)


def _read(data: bytes | None, file_id: int, published: PlacementsEnd | None, path: str) -> ReadPlacements:
    if data is None:
        return ReadPlacements([], PlacementsEnd(0, 0), f"{path} is missing")
    try:
        return judged(decode_placements(data, file_id, path), published, path)
    except CorruptionError as error:
        return ReadPlacements([], PlacementsEnd(0, 0), str(error))


def _is_current(read: ReadPlacements, placements: Placements) -> bool:
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


def open_mapped(
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
    """Write down which volumes are in use, recall what is on them, and make one interface for all. Blocks.

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
    placement_log = PlacementLog(disk, directory, listed.file_id, recalled.end, worker("placements"), ignore)
    return MappedVolumes(directory, disk, volumes, listed, placements, placement_log, worker("volumes"), call_later)
