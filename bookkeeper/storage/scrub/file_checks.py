"""Checks the files of a bookie's storage, each by its own codec, a piece at a time.

A check is an iterator: of how many bytes were read since the last step, and of what is damaged, in the order of the
file. Whoever runs it decides when the next piece is read, also while a check looks for the next thing that is whole. A
step reads at most a few megabytes, and memory does not grow with the file. Nothing is written.

What the page cache holds proves nothing about the disk, and a check must not drive out of it what readers need. So
files are opened past the cache where the file system has that; where it does not, and for small files, their pages are
let go. What is damaged is let go in any case: readers, and who repairs it, must meet the disk, and not a copy that the
next loss of power takes away.

What a check says of ledgers: the map of an entry log counts the records of each ledger. A ledger of which fewer
records were read than the map counts has lost some; if there is no map to compare with, nobody can tell.
"""

from __future__ import annotations

from collections.abc import Container, Generator, Iterable, Iterator
from itertools import islice
from typing import Final

from bookkeeper.codec import crc32c
from bookkeeper.codec.shapes import RECORD_MAX
from bookkeeper.errors import CorruptionError, UnsupportedFormatError, in_words
from bookkeeper.seams import Disk, File
from bookkeeper.storage.base.durable_file import BLOCK, TRANSIENT
from bookkeeper.storage.base.manifest import NAME, Manifest, ManifestLog, read_manifest
from bookkeeper.storage.entry_log.entry_log_file import (
    LogPiece,
    QuarantinedStretch,
    Usage,
    check_header,
    log_name,
    read_map,
    scan_steps,
    usage_of,
)
from bookkeeper.storage.index.index_segment import read_segment, segment_name
from bookkeeper.storage.journal.group_writer import journal_ids, journal_name
from bookkeeper.storage.journal.journal_format import (
    CLEAN_STOP,
    DamagedStretch,
    FileHeader,
    JournalGroup,
    group_steps,
)
from bookkeeper.storage.journal.torn_tail import rot_in
from bookkeeper.storage.scrub.damage import CheckedFile, DamagedPlace, FileKind

Check = Iterator["int | DamagedPlace"]
"""Bytes that were read since the last step, and what is damaged."""

_WINDOW: Final = 256 * 1024
"""Bytes of index pages that are read at once."""
_UNREADABLE_MAX: Final = 16
"""After so many blocks one after the other that the disk cannot read, the rest of a log is given up: each may cost
seconds."""


STEP_BYTES: Final = 256 * 1024
"""A step of a check ends after so many bytes, or after one piece that is longer."""
END: Final = -1
"""Stands behind the last items of a check that is through."""


def let_go(disk: Disk, path: str) -> None:
    """Have the next read of a small file come from the disk."""
    file = disk.open(path, write=False)
    try:
        file.forget(0, file.size())
    finally:
        file.close()


def check_manifest(disk: Disk, directory: str) -> Check:
    """The manifest; that there is none is damage, too."""
    path = f"{directory}/{NAME}"
    try:
        if disk.exists(path):
            let_go(disk, path)
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
        file = disk.open(path, write=False, direct=True)
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
        except OSError as error:
            yield _unreadable(error, FileKind.LOG, self.log_id, self.file.path, 0, frozenset())
        size = self.file.size()
        if size < self.entry.end:
            what = f"it ends at byte {size}, and {self.entry.end} bytes were synced"
            bad.append(self._damage(size, self.entry.end - size, what))
        if records:
            yield from self._records(min(self.entry.end, size), bad)
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
        begin, passed = BLOCK, 0
        while begin < end:
            at = begin
            try:
                for step in scan_steps(self.file, end, begin=begin):
                    at = yield from self._scanned(step, at, bad)
                return
            except OSError as error:
                if error.errno in TRANSIENT:
                    raise
                unreadable = error
            begin = yield from self._behind_unreadable(at, end, unreadable, bad)
            passed = passed + 1 if begin == at else 0
            if passed > _UNREADABLE_MAX:  # it cannot be read, and block by block it can
                raise unreadable

    def _scanned(
        self, step: LogPiece | QuarantinedStretch | int, at: int, bad: list[DamagedPlace]
    ) -> Generator[int, None, int]:
        """Take in a step of a scan that has come to ``at``. Returns where it has come now."""
        if isinstance(step, int):
            yield step
            return at
        if isinstance(step, QuarantinedStretch):
            size = step.end - step.offset
            bad.append(self._damage(step.offset, size, f"{size} bytes hold no valid record"))
            self.file.forget(step.offset, size)
            return step.end
        usage_of(step.scan, self.seen)
        if not self.file.direct:
            self.file.forget(step.at, step.scan.next)
        yield step.scan.next
        return step.at + step.scan.next

    def _behind_unreadable(
        self, at: int, end: int, error: OSError, bad: list[DamagedPlace]
    ) -> Generator[int, None, int]:
        """Something behind ``at`` cannot be read: take in the records before it. Returns where it can be read again;
        ``at`` if it can be read now."""
        first, block, failed = None, at - at % BLOCK, 0
        while block < end and failed < _UNREADABLE_MAX:
            try:
                self.file.pread(min(BLOCK, end - block), block)
            except OSError as found:
                if found.errno in TRANSIENT:
                    raise
                first, failed, error = block if first is None else first, failed + 1, found
            else:
                if first is not None or block > at + 2 * RECORD_MAX:
                    break
            yield BLOCK
            block += BLOCK
        if first is None:
            return at
        behind = end if failed == _UNREADABLE_MAX else min(block, end)
        for step in scan_steps(self.file, max(first, at), begin=at, tail_may_be_torn=True):
            at = yield from self._scanned(step, at, bad)
        self.file.forget(at, behind - at)
        what = f"it cannot be read: {in_words(error, beside=self.file.path)}"
        bad.append(self._damage(at, behind - at, what))
        return behind

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
        file = disk.open(path, write=False, direct=True)
    except OSError as error:
        yield _unreadable(error, FileKind.INDEX, segment_id, path, 0, frozenset())
        return
    try:
        table = read_segment(file, segment_id)
        yield max(file.size() - 8 * sum(extent.count for extent in table.all_extents()), BLOCK)
        at, window = 0, b""
        for extent in table.all_extents() if pages else ():
            size = 8 * extent.count
            if not at <= extent.offset <= extent.offset + size <= at + len(window):
                at, window = extent.offset, file.pread(max(size, _WINDOW), extent.offset)
                yield len(window)
            data = window[extent.offset - at : extent.offset - at + size]
            if len(data) != size or crc32c(data) != extent.crc:
                yield damage(extent.offset, size, f"the index page of ledger {extent.ledger_id} fails its checksum")
        if not file.direct:
            file.forget(0, file.size())
    except (CorruptionError, UnsupportedFormatError) as error:
        yield damage(0, 0, _without(path, error))
    except OSError as error:
        yield _unreadable(error, FileKind.INDEX, segment_id, path, 0, frozenset())
    finally:
        file.close()


# -- the journal ------------------------------------------------------------------------------------------


def check_journals(disk: Disk, directory: str, first: int, durable: int) -> Check:
    """The journal files from ``first`` on, which must be there, while the journal is written.

    Args:
        first: the file with the manifest's mark; 0: there is none.
        durable: the last group that is known to be durable.

    Raises:
        OSError: the disk has a passing problem.
    """
    try:
        ids = [file_id for file_id in journal_ids(disk, directory) if file_id >= first]
    except OSError as error:
        yield _unreadable(error, FileKind.JOURNAL, first, directory, 0, None)
        return
    newest = max(ids, default=0)
    for file_id in sorted({*ids, first} if first else ids):
        if file_id == newest:
            yield from check_journal(disk, directory, file_id, durable)
            continue
        last = last_group(disk, directory, file_id, ids)
        yield from check_journal(disk, directory, file_id, None if last is None else min(last, durable))


def last_group(disk: Disk, directory: str, file_id: int, ids: Iterable[int] | None = None) -> int | None:
    """The last group of a journal file, by the header of the next file: behind it lies what the file held before it was
    used again. None: there is no next file, or its header cannot be read.

    Args:
        ids: the journal files that are there; None: look.

    Raises:
        OSError: the disk has a passing problem.
    """
    try:
        known = journal_ids(disk, directory) if ids is None else ids
        following = min((other for other in known if other > file_id), default=None)
        if following is None:
            return None
        path = f"{directory}/{journal_name(following)}"
        file = disk.open(path, write=False)
        try:
            return FileHeader.decode(file.pread(BLOCK, 0), path).first_sequence - 1
        finally:
            file.close()
    except (CorruptionError, UnsupportedFormatError, FileNotFoundError):
        return None
    except OSError as error:
        if error.errno in TRANSIENT:
            raise
        return None


def check_journal(disk: Disk, directory: str, file_id: int, last: int | None = None) -> Check:
    """The groups of one journal file.

    Args:
        last: the last group that is known to be in it and durable: nothing behind it is looked at. None: all of the
            file; what may be the unfinished last group of a crash is no damage.

    Raises:
        OSError: the disk has a passing problem.
    """
    path = f"{directory}/{journal_name(file_id)}"
    try:
        if not disk.exists(path):
            yield DamagedPlace(FileKind.JOURNAL, file_id, path, 0, 0, "it is missing", None)
            return
        file = disk.open(path, write=False, direct=True)
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
    for item in group_steps(file, file_id):
        if isinstance(item, int):
            yield item
        elif isinstance(item, JournalGroup):
            yield item.header.padded
            following = item.header.sequence + 1
            if last is not None and following > last:
                break
            if item.header.flags & CLEAN_STOP:
                break
        elif (what := _of_stretch(file, file_id, item, following, last)) is not None:
            size = item.end - item.offset
            yield DamagedPlace(FileKind.JOURNAL, file_id, file.path, item.offset, size, what, None)
    if not file.direct:
        file.forget(0, file.size())


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


def next_items(check: Check) -> list[int | DamagedPlace]:
    """The next items of a check, up to a step's bytes; then 0, or ``END`` if it is at its end."""
    items: list[int | DamagedPlace] = []
    count = 0
    for item in islice(check, 64):
        items.append(item)
        if isinstance(item, int):
            count += item
            if count >= STEP_BYTES:
                return [*items, 0]
    return [*items, 0 if len(items) == 64 else END]
