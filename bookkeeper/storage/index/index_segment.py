"""An index segment: a file with what one checkpoint, or one merge, adds to the index of all ledgers.

    header    block (4096): stamp "BKIX" of segment id: u64 | directory id: u64
    pages     places (8 bytes each, little-endian, as the arrays in memory), up to 512 to an extent
    table     stamp "BKIT" of rows: ledger id: i64 | first entry: i64 | count: u32 | present: u32 | offset: u64
              | crc of the places: u32; per ledger older before newer
    states    stamp "BKIS" of the rows of ledgers that changed (see ledger_descriptor.py); of version 2 if it has ranges
              of deleted ledgers, which version 1 does not know
    footer    stamp "BKIF" of offset and size of table: u64 u64 | of states: u64 u64; the last 48 bytes

A segment is written once and synced with its name; only then does a manifest name it. Damage in it loses nothing: the
index is rebuilt from the entry logs (K19). Until then what the segment held is unknown, never absent (B5).
"""

from __future__ import annotations

import re
import sys
from array import array
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from struct import Struct
from typing import Final

from bookkeeper.codec import crc32c
from bookkeeper.errors import CorruptionError, in_words
from bookkeeper.ids import IdRanges
from bookkeeper.seams import Disk, File
from bookkeeper.storage.base.durable_file import (
    BLOCK,
    STAMP_SIZE,
    TRANSIENT,
    remove_files,
    stamp,
    sync,
    unstamp,
    version_of,
)
from bookkeeper.storage.index.entry_index import PAGE, Extent, IndexTail, overlay, trimmed
from bookkeeper.storage.index.ledger_descriptor import dropped_row
from bookkeeper.storage.index.segment_table import SegmentTable, extent_row

VERSION = 1
RANGES = 2
"""The version of states with ranges of deleted ledgers."""
PIECE: Final = 1 << 20
"""So many bytes of pages are written at a time."""
_HEADER = Struct(">QQ")
_FOOTER = Struct(">QQQQ")
_FOOTER_SIZE = STAMP_SIZE + _FOOTER.size
_NAME = re.compile(r"[0-9a-f]{16}\.index")


def segment_name(segment_id: int) -> str:
    return f"{segment_id:016x}.index"


def segment_ids(disk: Disk, directory: str) -> list[int]:
    """The ids of the index segments in a directory; what else lies there is not ours."""
    return [int(name[:-6], 16) for name in disk.list(directory) if _NAME.fullmatch(name)]


class UnreadableSegmentError(CorruptionError):
    """A segment is damaged, missing or cannot be read. The entry logs still have what it held (K19)."""

    def __init__(self, segment_id: int, reason: str) -> None:
        super().__init__(reason)
        self.segment_id = segment_id


@contextmanager
def reading_segment(segment_id: int, path: str) -> Iterator[None]:
    """Turn errors of reading into one that names this segment. Errors that pass by themselves (K28) stay as they are.

    Raises:
        UnreadableSegmentError: the segment cannot be read; the error names the place.
    """
    try:
        yield
    except CorruptionError as error:
        raise UnreadableSegmentError(segment_id, str(error)) from error
    except OSError as error:
        if error.errno in TRANSIENT:
            raise
        raise UnreadableSegmentError(segment_id, f"{path}: {in_words(error, beside=path)}") from error


class IndexSegmentWriter:
    """Makes a segment. Ledgers come in ascending order. Table and states are collected in memory; pages go to the file
    piece by piece, so that a merge of a large index needs little memory. The file is none of the bookie's until
    :meth:`write` has made it durable and a manifest names it."""

    def __init__(self, disk: Disk, directory: str, segment_id: int, directory_id: int) -> None:
        self.segment_id = segment_id
        self._disk, self._directory = disk, directory
        self._header = stamp(b"BKIX", VERSION, _HEADER.pack(segment_id, directory_id), pad_to=BLOCK)
        self._file: File | None = None
        self._end = BLOCK
        """Where the pages in the file end."""
        self._pages = bytearray()
        """Those behind it."""
        self._rows = bytearray()
        self._states = bytearray()
        self.dropped = IdRanges()
        """Ledgers that were deleted."""

    def add(self, ledger_id: int, first: int, places: array[int]) -> None:
        """Add places of a ledger, newer than those that were added of it."""
        data = to_bytes(places)
        self._add(ledger_id, first, len(places), len(places) - places.count(0), data, crc32c(data))

    def add_tail(self, ledger_id: int, tail: IndexTail) -> None:
        for first, places in tail.runs():
            self.add(ledger_id, first, places)

    def add_page(self, extent: Extent, data: bytes) -> None:
        """Add the places of another segment's extent as they are there."""
        self._add(extent.ledger_id, extent.first, extent.count, extent.present, data, extent.crc)

    def _add(self, ledger_id: int, first: int, count: int, present: int, data: bytes, crc: int) -> None:
        self._rows += extent_row(ledger_id, first, count, present, self._end + len(self._pages), crc)
        self._pages += data
        if len(self._pages) >= PIECE:
            self._write_pages()

    def add_state(self, row: bytes) -> None:
        """Add the newest state of a ledger; one for each."""
        self._states += row

    @property
    def size(self) -> int:
        return self._end - BLOCK + len(self._pages) + len(self._rows)

    @property
    def empty(self) -> bool:
        return not self._rows and not self._states and not self.dropped

    def _write_pages(self) -> File:
        name = segment_name(self.segment_id)
        if self._file is None:
            remove_files(self._disk, self._directory, [name])  # left over from a checkpoint that failed
            self._file = self._disk.open(f"{self._directory}/{name}", create=True)
            self._file.pwrite(self._header, 0)
        pages, self._pages = self._pages, bytearray()
        self._file.pwrite(pages, self._end)
        self._end += len(pages)
        return self._file

    def write(self) -> SegmentTable:
        """Write what is not written yet. File and name are durable when this returns (K1)."""
        ranges = any(last > first for first, last in self.dropped)
        rows = bytes(self._rows)
        state_rows = b"".join([self._states, *(dropped_row(first, last) for first, last in self.dropped)])
        table = stamp(b"BKIT", VERSION, rows)
        states = stamp(b"BKIS", RANGES if ranges else VERSION, state_rows)
        file, at = self._write_pages(), self._end
        body = _FOOTER.pack(at, len(table), at + len(table), len(states))
        for chunk in (table, states, stamp(b"BKIF", VERSION, body)):
            file.pwrite(chunk, at)
            at += len(chunk)
        sync(file)
        self._disk.sync_directory(self._directory)
        self.close()
        return SegmentTable(self.segment_id, rows, state_rows)

    def close(self) -> None:
        """Let go of the file. What is in it of a segment that was not finished is left over."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def discard(self) -> None:
        """Begin anew: what was added is forgotten."""
        if self._file is not None:
            self.close()
            remove_files(self._disk, self._directory, [segment_name(self.segment_id)])
        self._end, self._pages, self._rows, self._states = BLOCK, bytearray(), bytearray(), bytearray()
        self.dropped = IdRanges()


def read_segment(file: File, segment_id: int) -> SegmentTable:
    """Read and verify everything except the pages.

    Raises:
        CorruptionError, UnsupportedFormatError
    """
    header = unstamp(file.pread(BLOCK, 0), b"BKIX", VERSION, file.path)
    if len(header) != _HEADER.size or _HEADER.unpack(header)[0] != segment_id:
        raise CorruptionError(f"{file.path} is damaged: its header is another segment's")
    at = max(file.size() - _FOOTER_SIZE, 0)
    footer = unstamp(file.pread(_FOOTER_SIZE, at), b"BKIF", VERSION, f"{file.path} footer")
    table_at, table_size, states_at, states_size = _FOOTER.unpack(footer)
    table = unstamp(file.pread(table_size, table_at), b"BKIT", VERSION, f"{file.path} table")
    raw = file.pread(states_size, states_at)
    states = unstamp(raw, b"BKIS", version_of(raw, (VERSION, RANGES)), f"{file.path} states")
    return SegmentTable(segment_id, table, states)


def check_page(data: bytes, extent: Extent, path: str) -> None:
    """See that these are the places of an extent.

    Raises:
        CorruptionError: the page is damaged.
    """
    if len(data) != 8 * extent.count or crc32c(data) != extent.crc:
        raise CorruptionError(f"{path} is damaged at byte {extent.offset}: an index page fails its checksum")


def decode_page(data: bytes, extent: Extent, path: str) -> array[int]:
    """Decode the places of an extent.

    Raises:
        CorruptionError: the page is damaged.
    """
    check_page(data, extent, path)
    return from_bytes(data)


Source = tuple[SegmentTable, File]


def merge_segments(
    writer: IndexSegmentWriter,
    files: list[tuple[int, File]],
    tails: Mapping[int, IndexTail],
    states: Mapping[int, bytes],
    dropped: Container[int],
) -> None:
    """Merge consecutive segments (older before newer), ``tails`` and the rows ``states`` into ``writer``. The newest
    place wins, and the newest row. What no segment says twice is copied as it is.

    Ledgers that are ``dropped`` are left out.

    Raises:
        UnreadableSegmentError: a segment is damaged, or cannot be read.
        OSError: a segment cannot be read for the moment (K28).
    """
    sources = [_source(segment_id, file) for segment_id, file in files]
    for table, _ in sources:
        writer.dropped.update(table.dropped)
    known = chain.from_iterable(table.ledger_ids() for table, _ in sources)
    for ledger_id in dict.fromkeys(sorted(chain(known, tails, states))):
        if ledger_id in dropped:
            continue
        if (row := states.get(ledger_id) or _newest_state(sources, ledger_id)) is not None:
            writer.add_state(row)
        tail = tails.get(ledger_id)
        extents = [(extent, file) for table, file in sources for extent in table.extents(ledger_id)]
        if tail is None and _apart(extents):
            for extent, file in extents:
                writer.add_page(extent, _data(extent, file))
        else:
            for first, places in _pages(extents, tail):
                writer.add(ledger_id, first, places)


def _source(segment_id: int, file: File) -> Source:
    with reading_segment(segment_id, file.path):
        return read_segment(file, segment_id), file


def _newest_state(sources: list[Source], ledger_id: int) -> bytes | None:
    for table, _ in reversed(sources):
        if (row := table.state_row(ledger_id)) is not None:
            return row
    return None


def _apart(extents: Iterable[tuple[Extent, File]]) -> bool:
    """Whether each extent has a page for itself, and they ascend: there is nothing to overlay."""
    before = -1
    for extent, _ in extents:
        number = extent.first // PAGE
        if number <= before or not extent.present or (extent.end - 1) // PAGE != number:
            return False
        before = number
    return True


def _pages(sources: list[tuple[Extent, File]], tail: IndexTail | None) -> Iterator[tuple[int, array[int]]]:
    """Overlay extents, older before newer, page by page."""
    by_page: dict[int, list[tuple[int, tuple[Extent, File] | array[int]]]] = {}
    for extent, file in sources:
        for number in range(extent.first // PAGE, (extent.end - 1) // PAGE + 1):
            by_page.setdefault(number, []).append((extent.first, (extent, file)))
    for first, places in tail.runs() if tail is not None else ():
        for number in range(first // PAGE, (first + len(places) - 1) // PAGE + 1):
            by_page.setdefault(number, []).append((first, places))
    for number in sorted(by_page):
        page = array("q", bytes(8 * PAGE))
        for first, source in by_page[number]:
            places = from_bytes(_data(*source)) if isinstance(source, tuple) else source
            overlay(page, number * PAGE, first, places)
        first, places = trimmed(number * PAGE, page)
        if places:
            yield first, places


def _data(extent: Extent, file: File) -> bytes:
    """The places of an extent as they are in its file, verified."""
    with reading_segment(extent.segment, file.path):
        data = file.pread(8 * extent.count, extent.offset)
        check_page(data, extent, file.path)
        return data


def plan_merge(sizes: list[int], limit: int) -> int:
    """From which segment on to merge; ``len(sizes)`` for none.

    If there are more than ``limit`` segments, this takes the newest ones, back to the first that is larger than all
    newer ones together. So each place is rewritten a logarithmic number of times.
    """
    if len(sizes) < limit:
        return len(sizes)
    begin, total = len(sizes) - 1, sizes[-1]
    while begin > 0 and (sizes[begin - 1] <= 2 * total or len(sizes) - begin < 2):
        begin -= 1
        total += sizes[begin]
    return begin


def to_bytes(places: array[int]) -> bytes:
    if sys.byteorder == "big":
        places = array("q", places)
        places.byteswap()
    return places.tobytes()


def from_bytes(data: bytes) -> array[int]:
    places = array("q", data)
    if sys.byteorder == "big":
        places.byteswap()
    return places
