"""The file format of entry logs, where entries live once the journal has made them durable.

    header      block (4096): stamp "BKEL" of log id: u64 | directory id: u64 | boot: u64
                at byte 512, only in a log that takes whole groups of the journal, each right behind the one before:
                stamp "BKEG" of log id: u64 | sequence of the first group: u64
    records     as in the journal's groups, in order of arrival, with state records among them
    map         when the log is full: stamp "BKEM" of rows: ledger id: i64 | bytes: u64 | records: u64
    footer      stamp "BKEF" of log id: u64 | end of records: u64 | size of the map: u64; the last 40 bytes

The header is durable before the log is used, and is never rewritten. The map and the footer are written once, after the
records are synced (K1, K20). A log without a valid footer is scanned. If a record fails its checks, the scan reports
the place as quarantined and continues at the next valid record. Such a log is never taken for empty and never removed
(G4).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from struct import Struct

from bookkeeper.codec import RECORD_HEADER, find_record, ledger_runs, scan_records
from bookkeeper.codec.shapes import RECORD_MAX, LedgerRuns, Scan, Stop
from bookkeeper.errors import CorruptionError, UnsupportedFormatError
from bookkeeper.seams import Buffer, Disk, File
from bookkeeper.storage.base.durable_file import BLOCK, STAMP_SIZE, create_file, stamp, sync, unstamp
from bookkeeper.storage.base.read_room import ReadRoom

VERSION = 1
_HEADER = Struct(">QQQ")
_ROW = Struct(">qQQ")
_FIRST_GROUP = Struct(">QQ")
_FIRST_GROUP_AT = 512
_FOOTER = Struct(">QQQ")
_FOOTER_SIZE = STAMP_SIZE + _FOOTER.size
_CHUNK = 1 << 20
_NAME = re.compile(r"[0-9a-f]{6,}\.log")

Usage = dict[int, list[int]]
"""Ledger id -> [bytes, records] in one log."""


def log_name(log_id: int) -> str:
    return f"{log_id:06x}.log"


def log_ids(disk: Disk, directory: str) -> list[int]:
    """The ids of all entry logs in a directory, ascending."""
    return sorted(int(name[:-4], 16) for name in disk.list(directory) if _NAME.fullmatch(name))


@dataclass(frozen=True, slots=True)
class QuarantinedStretch:
    """A stretch of a log without a valid record."""

    path: str
    offset: int
    end: int

    def __str__(self) -> str:
        return f"{self.path}: {self.end - self.offset} bytes from byte {self.offset} on"


@dataclass(frozen=True, slots=True)
class LogPiece:
    """Consecutive records of a log that passed their checks."""

    data: Buffer
    at: int
    """Where ``data`` begins in the log."""
    scan: Scan


def log_header(log_id: int, directory_id: int, boot: int, first_group: int = 0) -> bytes:
    """The first block of a log.

    Args:
        first_group: the group that its first record comes from, if whole groups follow in it without a gap; 0: not so.
    """
    header = stamp(b"BKEL", VERSION, _HEADER.pack(log_id, directory_id, boot), pad_to=_FIRST_GROUP_AT)
    if first_group:
        header += stamp(b"BKEG", VERSION, _FIRST_GROUP.pack(log_id, first_group))
    return header.ljust(BLOCK, b"\0")


def create_log(disk: Disk, directory: str, log_id: int, directory_id: int, boot: int, *, first_group: int = 0) -> File:
    """Create a log, open for writing. Its header is durable when this returns (K1).

    Args:
        first_group: as of :func:`log_header`.
    """
    header = log_header(log_id, directory_id, boot, first_group)
    return create_file(disk, f"{directory}/{log_name(log_id)}", header, keep=True)


def first_group_of(file: File, log_id: int) -> int:
    """Which group of the journal a log begins with; 0: it does not say, or its header is damaged or another log's."""
    header = memoryview(file.pread(BLOCK, 0))
    try:
        body = unstamp(header, b"BKEL", VERSION, file.path)
        groups = unstamp(header[_FIRST_GROUP_AT:], b"BKEG", VERSION, file.path)
    except (CorruptionError, UnsupportedFormatError):
        return 0
    if len(body) != _HEADER.size or _HEADER.unpack(body)[0] != log_id or len(groups) != _FIRST_GROUP.size:
        return 0
    of_log, first = _FIRST_GROUP.unpack(groups)
    return int(first) if of_log == log_id else 0


def check_header(file: File, log_id: int) -> None:
    """Check a log's header.

    Raises:
        CorruptionError: the header is damaged, or another log's.
        UnsupportedFormatError: an unknown version wrote it.
    """
    body = unstamp(file.pread(BLOCK, 0), b"BKEL", VERSION, file.path)
    if len(body) != _HEADER.size or _HEADER.unpack(body)[0] != log_id:
        raise CorruptionError(f"{file.path}: the header is another log's")


def finish_log(file: File, log_id: int, end: int, usage: Usage) -> None:
    """Sync the records, then write and sync map and footer behind them (K20). They replace whatever is there."""
    sync(file)
    if file.size() > end:
        file.truncate(end)
    rows = b"".join(_ROW.pack(ledger_id, size, records) for ledger_id, (size, records) in sorted(usage.items()))
    ledgers = stamp(b"BKEM", VERSION, rows)
    file.pwrite(ledgers + stamp(b"BKEF", VERSION, _FOOTER.pack(log_id, end, len(ledgers))), end)
    sync(file)


def read_map(file: File, log_id: int) -> tuple[int, Usage]:
    """Read where the records of a finished log end, and to which ledgers they belong.

    Raises:
        CorruptionError: the footer is missing or damaged. The log must be scanned.
    """
    at = file.size() - _FOOTER_SIZE
    if at < BLOCK:
        raise CorruptionError(f"{file.path} has no footer")
    body = unstamp(file.pread(_FOOTER_SIZE, at), b"BKEF", VERSION, f"{file.path} footer")
    if len(body) != _FOOTER.size or _FOOTER.unpack(body)[0] != log_id:
        raise CorruptionError(f"{file.path}: the footer is another log's")
    _, end, map_size = _FOOTER.unpack(body)
    rows = unstamp(file.pread(map_size, end), b"BKEM", VERSION, f"ledgers map of {file.path}")
    return end, {ledger_id: [size, records] for ledger_id, size, records in _ROW.iter_unpack(rows)}


def read_usage(disk: Disk, path: str, log_id: int, end: int) -> Usage:
    """The ledgers in a log: from its map, or from all of its records if there is no map.

    Raises:
        CorruptionError: there is no map, and a record is damaged.
        OSError: the log cannot be read.
    """
    file = disk.open(path, write=False)
    try:
        return read_map(file, log_id)[1]
    except CorruptionError:
        usage: Usage = {}
        if bad := scan_log(file, end, lambda _data, _at, scan: usage_of(scan, usage)):
            raise CorruptionError(f"{bad[0]} cannot be read") from None
        return usage
    finally:
        file.close()


def scan_log(
    file: File,
    end: int,
    found: Callable[[Buffer, int, Scan], None],
    *,
    begin: int = BLOCK,
    tail_may_be_torn: bool = False,
) -> list[QuarantinedStretch]:
    """Read and verify the records of a log from ``begin``, where a record begins, up to ``end``.

    Args:
        found: called with bytes, their offset in the log, and the records in them. The bytes are valid for the call.
        tail_may_be_torn: bytes after the last valid record are not damage, because no mark has covered them.
    """
    bad: list[QuarantinedStretch] = []
    for piece in scan_steps(file, end, begin=begin, tail_may_be_torn=tail_may_be_torn, room=ReadRoom()):
        if isinstance(piece, QuarantinedStretch):
            bad.append(piece)
        elif isinstance(piece, LogPiece):
            found(piece.data, piece.at, piece.scan)
    return bad


def scan_pieces(
    file: File, end: int, *, begin: int = BLOCK, tail_may_be_torn: bool = False
) -> Iterator[LogPiece | QuarantinedStretch]:
    """The same, a piece at a time and in the order of the log: records, and the stretches between them without any.

    A piece is at most a megabyte, or one record if that is longer.
    """
    for step in scan_steps(file, end, begin=begin, tail_may_be_torn=tail_may_be_torn):
        if not isinstance(step, int):
            yield step


def scan_steps(
    file: File, end: int, *, begin: int = BLOCK, tail_may_be_torn: bool = False, room: ReadRoom | None = None
) -> Iterator[LogPiece | QuarantinedStretch | int]:
    """The same for who must not read faster than at some rate: while a valid record is looked for, it says from time to
    time how many bytes it has read since.

    Args:
        room: where the bytes are read to; those of a piece are valid until the next step. None: they are its own.
    """
    at, size = begin, _CHUNK
    while at < end:
        wanted = min(size, end - at)
        data: Buffer = file.pread(wanted, at) if room is None else room.read(file, wanted, at)
        scan = scan_records(data, 0, len(data))
        if scan.offsets:
            yield LogPiece(data, at, scan)
            at += scan.next
            size = _CHUNK
            continue
        whole = at + len(data) >= end or len(data) < min(size, end - at)
        if scan.stop is Stop.PARTIAL and not whole and size < 2 * RECORD_MAX:
            size = max(2 * size, RECORD_HEADER + int.from_bytes(data[:4], "big"))
            yield len(data)
            continue
        following = yield from _resync(file, at + 1, end)
        if following is None and tail_may_be_torn:
            return
        yield QuarantinedStretch(file.path, at, end if following is None else following)
        if following is None:
            return
        at, size = following, _CHUNK


def _resync(file: File, at: int, end: int) -> Generator[int, None, int | None]:
    """The offset of the next complete and valid record. Yields how many bytes it reads."""
    size, data = _CHUNK, b""
    while at < end:
        wanted = min(size, end - at)
        parts, have = [data], len(data)
        while have < wanted and (part := file.pread(min(_CHUNK, wanted - have), at + have)):
            parts.append(part)
            have += len(part)
            yield len(part)
        data = b"".join(parts)
        offset = find_record(data, 0, len(data))
        if offset >= 0:
            return at + offset
        if at + len(data) >= end or len(data) < wanted:
            return None
        if size < 2 * RECORD_MAX:
            size *= 4  # the window must be longer than the record
        else:
            at, data = at + len(data) - RECORD_MAX, data[-RECORD_MAX:]
    return None


def usage_of(scan: Scan, usage: Usage) -> None:
    """Add a scan's records to ``usage``."""
    add_usage(ledger_runs(scan), usage)


def add_usage(found: LedgerRuns, usage: Usage) -> None:
    """The same of a scan's runs."""
    for ledger_id, i0, i1, _, _, size in found.runs:
        row = usage.setdefault(ledger_id, [0, 0])
        row[0] += size
        row[1] += i1 - i0


class EntryLogWriter:
    """Writes groups' records to the logs, in order.

    It belongs to the thread that copies the oldest group: the log's worker; the journal's worker while the log's worker
    is idle; the loop while both are idle.
    """

    def __init__(self, disk: Disk, directory: str, directory_id: int, boot: int) -> None:
        self._disk, self._directory = disk, directory
        self._directory_id, self._boot = directory_id, boot
        self.log_id = 0
        self._file: File | None = None
        self._created: File | None = None
        """A log whose first write failed after it was created. It is reported when a write succeeds."""

    def write(self, log_id: int, data: Buffer, offset: int, sequence: int = 0) -> File | None:
        """Write without syncing. A new log is created, and returned once a write to it has succeeded.

        Args:
            sequence: the group whose records these are; 0: they are none.
        """
        if log_id != self.log_id:
            path = f"{self._directory}/{log_name(log_id)}"
            if self._disk.exists(path):  # an earlier attempt found no space
                self._disk.unlink(path)
            created = create_log(
                self._disk, self._directory, log_id, self._directory_id, self._boot, first_group=sequence
            )
            self._file, self.log_id, self._created = created, log_id, created
        assert self._file is not None
        self._file.pwrite(data, offset)
        created_now, self._created = self._created, None
        return created_now
