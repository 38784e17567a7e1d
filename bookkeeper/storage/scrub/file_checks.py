"""Checks the files of a bookie's storage, each by its own codec, a piece at a time.

A check is an iterator: of how many bytes were read since the last step, and of what is damaged, in the order of the
file. Whoever runs it decides when the next piece is read. A step reads at most a few megabytes, and memory does not
grow with the file. Nothing is written.

What a check says of ledgers: the map of an entry log counts the records of each ledger. A ledger of which fewer
records were read than the map counts has lost some; if there is no map to compare with, nobody can tell.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Final

from bookkeeper.errors import CorruptionError, UnsupportedFormatError, in_words
from bookkeeper.seams import Disk, File
from bookkeeper.storage.checkpoint.manifest import NAME, Manifest, ManifestLog, read_manifest
from bookkeeper.storage.durable_file import BLOCK, TRANSIENT
from bookkeeper.storage.entry_log.entry_log_file import (
    QuarantinedStretch,
    Usage,
    check_header,
    log_name,
    read_map,
    scan_pieces,
    usage_of,
)
from bookkeeper.storage.index.index_segment import decode_page, read_segment, segment_name
from bookkeeper.storage.journal.group_writer import journal_ids, journal_name
from bookkeeper.storage.journal.journal_format import (
    CLEAN_STOP,
    DamagedStretch,
    FileHeader,
    JournalGroup,
    read_groups,
)
from bookkeeper.storage.journal.torn_tail import rot_in
from bookkeeper.storage.scrub.damage import CheckedFile, DamagedPlace, FileKind

Check = Iterator["int | DamagedPlace"]
"""Bytes that were read since the last step, and what is damaged."""

_PAGES_A_STEP: Final = 64


def check_manifest(disk: Disk, directory: str) -> Check:
    """The manifest; that there is none is damage, too."""
    path = f"{directory}/{NAME}"
    try:
        if read_manifest(disk, directory) is None:
            yield DamagedPlace(FileKind.MANIFEST, 0, path, 0, 0, "it is missing", None)
        yield BLOCK
    except (CorruptionError, UnsupportedFormatError) as error:
        yield DamagedPlace(FileKind.MANIFEST, 0, path, 0, 0, _without(path, error), None)
    except OSError as error:
        yield _unreadable(error, FileKind.MANIFEST, 0, path, 0, None)


# -- entry logs -------------------------------------------------------------------------------------------


def check_log(
    disk: Disk,
    directory: str,
    log_id: int,
    entry: ManifestLog,
    dropped: Container[int] = (),
    *,
    records: bool = True,
) -> Check:
    """One entry log, as the manifest knows it: header, records, map and footer.

    Args:
        dropped: ledgers that are deleted: nothing of them is missed.
        records: without it the records are not read.

    Raises:
        OSError: the disk has a passing problem.
    """
    path = f"{directory}/{log_name(log_id)}"
    alive = None if entry.finished else frozenset(owner for owner in entry.usage if owner not in dropped)
    try:
        if not disk.exists(path):
            yield DamagedPlace(FileKind.LOG, log_id, path, 0, 0, "it is missing", alive)
            return
        file = disk.open(path, write=False)
    except OSError as error:
        yield _unreadable(error, FileKind.LOG, log_id, path, 0, alive)
        return
    try:
        yield from _LogCheck(file, log_id, entry, dropped).run(records=records)
    finally:
        file.close()


class _LogCheck:
    def __init__(self, file: File, log_id: int, entry: ManifestLog, dropped: Container[int]) -> None:
        self.file, self.log_id, self.entry, self.dropped = file, log_id, entry, dropped
        self.known: Usage | None = None if entry.finished else entry.usage
        self.seen: Usage = {}

    def run(self, *, records: bool) -> Check:
        bad: list[DamagedPlace] = []
        try:
            yield from self._frame()
            size = self.file.size()
            if size < self.entry.end:
                what = f"it ends at byte {size}, and {self.entry.end} bytes were synced"
                bad.append(self._damage(size, self.entry.end - size, what))
            if records:
                yield from self._records(min(self.entry.end, size), bad)
        except OSError as error:
            bad.append(_unreadable(error, FileKind.LOG, self.log_id, self.file.path, 0, frozenset()))
        lost = self._lost() if records or bad else frozenset()
        if records and not bad and lost:
            bad.append(self._damage(0, 0, "its map counts records that are not in it"))
        for each in bad:
            yield DamagedPlace(each.kind, each.number, each.path, each.offset, each.size, each.what, lost)

    def _frame(self) -> Check:
        """Header, map and footer. What they say can be found in the records, too."""
        try:
            check_header(self.file, self.log_id)
        except (CorruptionError, UnsupportedFormatError) as error:
            yield self._damage(0, BLOCK, _without(self.file.path, error))
        if not self.entry.finished:
            return
        try:
            _, self.known = read_map(self.file, self.log_id)
        except (CorruptionError, UnsupportedFormatError) as error:
            yield self._damage(self.entry.end, 0, _without(self.file.path, error))
        yield BLOCK

    def _records(self, end: int, bad: list[DamagedPlace]) -> Check:
        for piece in scan_pieces(self.file, end):
            if isinstance(piece, QuarantinedStretch):
                size = piece.end - piece.offset
                bad.append(self._damage(piece.offset, size, f"{size} bytes hold no valid record"))
                yield size
            else:
                usage_of(piece.scan, self.seen)
                self.file.forget(piece.at, piece.scan.next)
                yield piece.scan.next

    def _damage(self, offset: int, size: int, what: str) -> DamagedPlace:
        return DamagedPlace(FileKind.LOG, self.log_id, self.file.path, offset, size, what)

    def _lost(self) -> frozenset[int] | None:
        """The ledgers of which fewer records were read than there were."""
        if self.known is None:
            return None
        return frozenset(
            owner
            for owner, (_, records) in self.known.items()
            if owner not in self.dropped and self.seen.get(owner, [0, 0])[1] < records
        )


# -- the index --------------------------------------------------------------------------------------------


def check_segment(disk: Disk, directory: str, segment_id: int, *, pages: bool = True) -> Check:
    """One index segment: header, table, states, footer, and the pages.

    Raises:
        OSError: the disk has a passing problem.
    """
    path = f"{directory}/{segment_name(segment_id)}"

    def damage(offset: int, size: int, what: str) -> DamagedPlace:
        return DamagedPlace(FileKind.INDEX, segment_id, path, offset, size, what)

    try:
        if not disk.exists(path):
            yield damage(0, 0, "it is missing")
            return
        file = disk.open(path, write=False)
    except OSError as error:
        yield _unreadable(error, FileKind.INDEX, segment_id, path, 0, frozenset())
        return
    try:
        segment = read_segment(file, segment_id)
        yield BLOCK + 44 * len(segment.extents)
        count = read = 0
        for extent in segment.extents if pages else ():
            data = file.pread(8 * extent.count, extent.offset)
            try:
                decode_page(data, extent, path)
            except CorruptionError:
                what = f"the index page of ledger {extent.ledger_id} fails its checksum"
                yield damage(extent.offset, 8 * extent.count, what)
            count, read = count + 1, read + len(data)
            if count % _PAGES_A_STEP == 0:
                yield read
                read = 0
        file.forget(0, file.size())
        yield read
    except (CorruptionError, UnsupportedFormatError) as error:
        yield damage(0, 0, _without(path, error))
    except OSError as error:
        yield _unreadable(error, FileKind.INDEX, segment_id, path, 0, frozenset())
    finally:
        file.close()


# -- the journal ------------------------------------------------------------------------------------------


def check_journal(disk: Disk, directory: str, file_id: int, last: int | None = None) -> Check:
    """The groups of one journal file.

    Args:
        last: the last group that is known to be durable: nothing behind it is looked at. None: all of the file; what
            may be the unfinished last group of a crash is no damage.

    Raises:
        OSError: the disk has a passing problem.
    """
    path = f"{directory}/{journal_name(file_id)}"
    try:
        if not disk.exists(path):
            yield DamagedPlace(FileKind.JOURNAL, file_id, path, 0, 0, "it is missing", None)
            return
        file = disk.open(path, write=False)
    except OSError as error:
        yield _unreadable(error, FileKind.JOURNAL, file_id, path, 0, None)
        return
    try:
        yield from _groups(file, file_id, last)
    except OSError as error:
        yield _unreadable(error, FileKind.JOURNAL, file_id, path, 0, None)
    finally:
        file.close()


def _groups(file: File, file_id: int, last: int | None) -> Check:
    following = 0
    try:
        following = FileHeader.decode(file.pread(BLOCK, 0), file.path).first_sequence
    except (CorruptionError, UnsupportedFormatError) as error:
        yield DamagedPlace(FileKind.JOURNAL, file_id, file.path, 0, BLOCK, _without(file.path, error), None)
    yield BLOCK
    if last is not None and following > last:
        return
    for item in read_groups(file, file_id):
        if isinstance(item, JournalGroup):
            yield item.header.padded
            following = item.header.sequence + 1
            if last is not None and following > last:
                return
            if item.header.flags & CLEAN_STOP:
                return
            continue
        yield item.end - item.offset
        if (what := _of_stretch(file, file_id, item, following, last)) is not None:
            size = item.end - item.offset
            yield DamagedPlace(FileKind.JOURNAL, file_id, file.path, item.offset, size, what, None)


def _of_stretch(file: File, file_id: int, bad: DamagedStretch, following: int, last: int | None) -> str | None:
    """What is wrong where there is no valid group; None: it may be the end."""
    if not bad.last:
        return f"group {following} is damaged: later groups are there"
    if last is not None or bad.claims >= following:
        return f"group {following} is damaged: it had been durable"
    if (proof := rot_in(file, file_id, bad.offset, following)) is not None:
        return f"group {following} is damaged: {proof}"
    return None


# -- all of them ------------------------------------------------------------------------------------------


def files_of(disk: Disk, journal_dir: str, manifest: Manifest) -> list[CheckedFile]:
    """Every file that the manifest names, and the journal files from its mark on, in the order of their check. The file
    with the mark must be there (K18)."""
    found = [CheckedFile(FileKind.MANIFEST, 0, BLOCK)]
    needed = {file_id for file_id in journal_ids(disk, journal_dir) if file_id >= manifest.file_id}
    if manifest.file_id:
        needed.add(manifest.file_id)
    found += [CheckedFile(FileKind.JOURNAL, file_id, BLOCK) for file_id in sorted(needed)]
    found += [CheckedFile(FileKind.INDEX, segment_id, BLOCK + size) for segment_id, size in manifest.segments.items()]
    found += [CheckedFile(FileKind.LOG, log_id, entry.end) for log_id, entry in sorted(manifest.logs.items())]
    return found


def _unreadable(
    error: OSError, kind: FileKind, number: int, path: str, offset: int, ledgers: frozenset[int] | None
) -> DamagedPlace:
    """A file that the disk cannot read.

    Raises:
        OSError: the problem passes by itself.
    """
    if error.errno in TRANSIENT:
        raise error
    return DamagedPlace(kind, number, path, offset, 0, f"it cannot be read: {in_words(error, beside=path)}", ledgers)


def _without(path: str, error: BaseException) -> str:
    """The error's sentence without the path, which it begins with."""
    text = str(error).removeprefix(path).lstrip(": ")
    return text.removeprefix("is damaged: ") or str(error)
