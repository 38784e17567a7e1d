"""After a loss: what entry logs hold beyond what the manifest says of them.

Each group is written to the journal and then, unsynced, to an entry log; a checkpoint names what the logs hold. When
groups of the journal are damaged or missing, the logs may hold their last local copy: in files that no manifest names
yet, and behind the end that it gives for the others. A start that has found a loss therefore

    scans those stretches, and takes in every record that verifies
    overwrites none of those files, finishes (cuts) none of them, and removes none
    puts the journal files that the mark has passed aside, under ``*.lost``, instead of recycling them

Files put aside stay as long as anything may be missing: the first checkpoint after limbo has ended removes them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bookkeeper.codec.shapes import Scan
from bookkeeper.seams import Buffer, Disk, File
from bookkeeper.storage.entry_log.entry_log_file import QuarantinedStretch, Usage, log_name, scan_log, usage_of
from bookkeeper.storage.journal.group_writer import LOST, journal_ids, journal_name

Found = Callable[[Buffer, int, Scan], None]
"""(bytes, where in the log they begin, the records in them)."""


@dataclass(slots=True)
class OrphanRecords:
    """What lies at or behind the known end of a log."""

    file: File
    """Open for writing: it must be synced before a manifest names the new end."""
    end: int
    """Behind the last valid record."""
    usage: Usage
    """Whose records they are."""
    bad: list[QuarantinedStretch]
    """Stretches that hold no valid record although valid ones follow."""


def take_in(disk: Disk, directory: str, log_id: int, known: int, found: Found) -> OrphanRecords:
    """Hand every valid record of a log at or behind ``known`` to ``found``."""
    file = disk.open(f"{directory}/{log_name(log_id)}", write=True)
    taken = OrphanRecords(file, known, {}, [])

    def each(data: Buffer, at: int, scan: Scan) -> None:
        news = behind(scan, known - at)
        if news.offsets:
            usage_of(news, taken.usage)
            found(data, at, news)
            taken.end = max(taken.end, at + scan.next)

    try:
        taken.bad = scan_log(file, file.size(), each, tail_may_be_torn=True)
    except BaseException:
        file.close()
        raise
    return taken


def behind(scan: Scan, offset: int) -> Scan:
    """The records of a scan that begin at ``offset`` or later."""
    at = next((i for i, begin in enumerate(scan.offsets) if begin >= offset), len(scan.offsets))
    if not at:
        return scan
    return scan._replace(
        offsets=scan.offsets[at:],
        ledger_ids=scan.ledger_ids[at:],
        entry_ids=scan.entry_ids[at:],
        lacs=scan.lacs[at:],
        sizes=scan.sizes[at:],
    )


def put_journals_aside(disk: Disk, directory: str, before: int) -> None:
    """Rename the journal files below ``before``: they are not replayed again, and not recycled."""
    passed = [file_id for file_id in journal_ids(disk, directory) if file_id < before]
    for file_id in passed:
        name = f"{directory}/{journal_name(file_id)}"
        disk.rename(name, name + LOST)
    if passed:
        disk.sync_directory(directory)
