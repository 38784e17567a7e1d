"""An index segment: a file with what one checkpoint, or one merge, adds to the index of all ledgers.

    header    block (4096): stamp "BKIX" of segment id: u64 | directory id: u64
    pages     places (8 bytes each, little-endian, as the arrays in memory), up to 512 to an extent
    table     stamp "BKIT" of rows: ledger id: i64 | first entry: i64 | count: u32 | present: u32 | offset: u64
              | crc of the places: u32; per ledger older before newer
    states    stamp "BKIS" of the rows of ledgers that changed (see ledger_state.py); of version 2 if it has ranges of
              deleted ledgers, which version 1 does not know
    footer    stamp "BKIF" of offset and size of table: u64 u64 | of states: u64 u64; the last 48 bytes

A segment is written once and synced with its name; only then does a manifest name it. Damage in it loses nothing: the
index is rebuilt from the entry logs (K19). Until then what the segment held is unknown, never absent (B5).
"""

from __future__ import annotations

import re
import sys
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from struct import Struct

from bookkeeper.codec import crc32c
from bookkeeper.errors import CorruptionError, in_words
from bookkeeper.ids import IdRanges
from bookkeeper.seams import Disk, File
from bookkeeper.storage.durable_file import (
    BLOCK,
    STAMP_SIZE,
    TRANSIENT,
    create_file,
    remove_files,
    stamp,
    unstamp,
    version_of,
)
from bookkeeper.storage.index.entry_index import PAGE, Extent, IndexTail, overlay, trimmed
from bookkeeper.storage.ledger_descriptor import LedgerDescriptor, decode_rows, dropped_row

VERSION = 1
RANGES = 2
"""The version of states with ranges of deleted ledgers."""
_HEADER = Struct(">QQ")
_ROW = Struct(">qqIIQI")
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


@dataclass(frozen=True, slots=True)
class IndexSegment:
    """What was read of a segment: everything except its pages."""

    segment_id: int
    extents: list[Extent]
    states: list[LedgerDescriptor | tuple[int, int]]


class IndexSegmentWriter:
    """Collects a segment in memory; :meth:`write` makes it a durable file."""

    def __init__(self, segment_id: int, directory_id: int) -> None:
        self.segment_id = segment_id
        self.extents: dict[int, list[Extent]] = {}
        """New extents of each ledger, older before newer."""
        self._header = stamp(b"BKIX", VERSION, _HEADER.pack(segment_id, directory_id), pad_to=BLOCK)
        self._pages = bytearray()
        self._rows = bytearray()
        self._states: dict[int, bytes] = {}
        self.dropped = IdRanges()
        """Ledgers that were deleted."""

    def add(self, ledger_id: int, first: int, places: array[int]) -> None:
        data = to_bytes(places)
        offset, crc = BLOCK + len(self._pages), crc32c(data)
        present = len(places) - places.count(0)
        self._pages += data
        self._rows += _ROW.pack(ledger_id, first, len(places), present, offset, crc)
        extent = Extent(ledger_id, first, len(places), present, self.segment_id, offset, crc)
        self.extents.setdefault(ledger_id, []).append(extent)

    def add_tail(self, ledger_id: int, tail: IndexTail) -> None:
        for first, places in tail.runs():
            self.add(ledger_id, first, places)

    def set_state(self, ledger_id: int, row: bytes) -> None:
        """Set the newest state of a ledger."""
        self._states[ledger_id] = row

    @property
    def size(self) -> int:
        return len(self._pages) + len(self._rows)

    @property
    def empty(self) -> bool:
        return not self._rows and not self._states and not self.dropped

    def write(self, disk: Disk, directory: str) -> None:
        """Write the segment. File and name are durable when this returns (K1)."""
        table = stamp(b"BKIT", VERSION, bytes(self._rows))
        ranges = any(last > first for first, last in self.dropped)
        rows = [*self._states.values(), *(dropped_row(first, last) for first, last in self.dropped)]
        states = stamp(b"BKIS", RANGES if ranges else VERSION, b"".join(rows))
        at = BLOCK + len(self._pages)
        body = _FOOTER.pack(at, len(table), at + len(table), len(states))
        path = f"{directory}/{segment_name(self.segment_id)}"
        remove_files(disk, directory, [segment_name(self.segment_id)])  # left over from a checkpoint that failed
        create_file(disk, path, self._header, self._pages, table, states, stamp(b"BKIF", VERSION, body))


def read_segment(file: File, segment_id: int) -> IndexSegment:
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
    extents = [
        Extent(ledger_id, first, count, present, segment_id, offset, crc)
        for ledger_id, first, count, present, offset, crc in _ROW.iter_unpack(table)
    ]
    return IndexSegment(segment_id, extents, decode_rows(states))


def decode_page(data: bytes, extent: Extent, path: str) -> array[int]:
    """Decode the places of an extent.

    Raises:
        CorruptionError: the page is damaged.
    """
    if len(data) != 8 * extent.count or crc32c(data) != extent.crc:
        raise CorruptionError(f"{path} is damaged at byte {extent.offset}: an index page fails its checksum")
    return from_bytes(data)


def merge_segments(
    writer: IndexSegmentWriter, files: list[tuple[int, File]], tails: dict[int, IndexTail], alive: set[int]
) -> None:
    """Merge consecutive segments (older before newer) and ``tails`` into ``writer``. The newest place wins.

    Ledgers that are not in ``alive`` are left out.

    Raises:
        UnreadableSegmentError: a segment is damaged, or cannot be read.
        OSError: a segment cannot be read for the moment (K28).
    """
    sources: dict[int, list[tuple[Extent, File]]] = {}
    for segment_id, file in files:
        with reading_segment(segment_id, file.path):
            segment = read_segment(file, segment_id)
        for extent in segment.extents:
            if extent.ledger_id in alive:
                sources.setdefault(extent.ledger_id, []).append((extent, file))
        for state in segment.states:
            if isinstance(state, LedgerDescriptor):
                if state.ledger_id in alive:
                    writer.set_state(state.ledger_id, state.encode())
            else:
                writer.dropped.add(*state)
    for ledger_id in sorted(sources.keys() | tails.keys()):
        pages = _pages(sources.get(ledger_id, []), tails.get(ledger_id))
        for first, places in pages:
            writer.add(ledger_id, first, places)


def _pages(sources: list[tuple[Extent, File]], tail: IndexTail | None) -> Iterator[tuple[int, array[int]]]:
    """Overlay extents, older before newer, page by page."""
    by_page: dict[int, list[tuple[int, Extent | array[int], File | None]]] = {}
    for extent, file in sources:
        for number in range(extent.first // PAGE, (extent.end - 1) // PAGE + 1):
            by_page.setdefault(number, []).append((extent.first, extent, file))
    for first, places in tail.runs() if tail is not None else ():
        for number in range(first // PAGE, (first + len(places) - 1) // PAGE + 1):
            by_page.setdefault(number, []).append((first, places, None))
    for number in sorted(by_page):
        page = array("q", bytes(8 * PAGE))
        for first, source, source_file in by_page[number]:
            places = source if not isinstance(source, Extent) else _read(source, source_file)
            overlay(page, number * PAGE, first, places)
        first, places = trimmed(number * PAGE, page)
        if places:
            yield first, places


def _read(extent: Extent, file: File | None) -> array[int]:
    assert file is not None
    with reading_segment(extent.segment, file.path):
        return decode_page(file.pread(8 * extent.count, extent.offset), extent, file.path)


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
