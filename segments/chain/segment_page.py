"""Pages of old segments: completed segments that moved out of a stream's node, a thousand at a time.

A page is a value of its own beside the node, written before the node names it, and never changed. The node keeps
what its owner needs of it: which segments are in it, how many of the oldest are gone, and sums of the rest. So the
node stays small, and an owner never reads a page; readers, retention and checks do, each page once.

    value   magic "BKSP" | version u16 = 1, or 2 | nothing u16 | segments u32 | each segment, 116 bytes
            | CRC32C of all that
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Final, overload

from bookkeeper.amounts import counted
from bookkeeper.codec import crc32c
from segments.chain.segment_codec import ROW, pack_segment, unpack_segment
from segments.chain.stream_segment import StreamSegment
from segments.errors import ChainCorruptError, ChainStepError, UnsupportedStreamFormatError
from segments.position import Position

MAGIC: Final = b"BKSP"
VERSION: Final = 2
"""Of a page with segments that were published whole; other pages have format 1."""
PAGE_SEGMENTS: Final = 1_000
"""Segments of a page."""

_HEAD: Final = struct.Struct("<4sHHI")
_CRC: Final = struct.Struct("<I")
_NUMBER: Final = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class SegmentPage:
    """A page as the node names it, and its bytes where they were read."""

    first: int
    """The number of the first segment that was stored in it."""
    last: int
    """The number of its last segment."""
    epoch: int
    """Of the owner that wrote it."""
    stored: int
    """Segments in it, also those that are gone."""
    gone: int
    """So many of its oldest segments are not in the stream any more."""
    first_listed: int
    """The number of the first segment that is."""
    crc: int
    """The checksum at the end of the value."""
    start_seq_no: int
    """The sequence number of the first listed record."""
    records: int
    """Of the listed segments."""
    size: int
    """Bytes of the listed segments, as stored once."""
    tail: Position | None
    """The position of its last record; None if it has none."""
    last_txid: int | None = None
    """The greatest of what was stored; so are the next two."""
    last_append_ms: int | None = None
    max_event_ms: int | None = None
    value: bytes | None = field(default=None, compare=False, repr=False)
    """The stored bytes; None where they were not read."""

    @classmethod
    def of(cls, segments: Sequence[StreamSegment], epoch: int) -> SegmentPage:
        """A page with these segments, which are completed and follow each other; at least one."""
        contents = [segment.contents for segment in segments]
        version = VERSION if any(segment.is_published for segment in segments) else 1
        body = _HEAD.pack(MAGIC, version, 0, len(segments)) + b"".join(map(pack_segment, segments))
        crc = crc32c(body)
        return cls(
            segments[0].number,
            segments[-1].number,
            epoch,
            len(segments),
            0,
            segments[0].number,
            crc,
            segments[0].start_seq_no,
            sum(segment.records for segment in segments),
            sum(segment.bytes for segment in segments),
            next((segment.last for segment in reversed(segments) if segment.last is not None), None),
            _greatest(has.last_txid for has in contents),
            _greatest(has.last_append_ms for has in contents),
            _greatest(has.max_event_ms for has in contents),
            body + _CRC.pack(crc),
        )

    @property
    def key(self) -> str:
        """The last part of its path. No two pages of a stream have the same."""
        return f"{self.first:010d}-{self.last:010d}-{self.epoch:d}"

    @property
    def count(self) -> int:
        """How many segments it lists."""
        return self.stored - self.gone

    @property
    def end_seq_no(self) -> int:
        """The sequence number behind its last record."""
        return self.start_seq_no + self.records

    def with_value(self, value: bytes) -> SegmentPage:
        """The page with its stored bytes.

        Raises:
            UnsupportedStreamFormatError: a newer format. ChainCorruptError: these are not the bytes of this page.
        """
        if value[: len(MAGIC)] == MAGIC and len(value) > 5 and (found := value[4] | value[5] << 8) > VERSION:
            raise UnsupportedStreamFormatError(
                f"page {self.key} of the stream's node has format {found}, and this program reads formats up to "
                f"{VERSION}"
            )
        size = _HEAD.size + self.stored * ROW.size
        if len(value) != size + _CRC.size or value[size:] != _CRC.pack(self.crc) or crc32c(value[:size]) != self.crc:
            raise ChainCorruptError(f"page {self.key} of the stream's node is damaged: its checksum does not match")
        return replace(self, value=value)

    def segment(self, index: int) -> StreamSegment:
        """The listed segment of this index."""
        return unpack_segment(ROW.unpack_from(self._read(), self._offset(index)))

    def segments(self) -> Iterator[StreamSegment]:
        """The listed segments, in order."""
        rows = memoryview(self._read())[self._offset(0) : -_CRC.size]
        return map(unpack_segment, ROW.iter_unpack(rows))

    def index_from(self, number: int) -> int:
        """The index of the first listed segment with this number or a greater one; ``count`` if there is none."""
        value = self._read()
        return bisect_left(
            range(self.count), number, key=lambda index: int(_NUMBER.unpack_from(value, self._offset(index))[0])
        )

    def without(self, count: int) -> SegmentPage:
        """The page without its oldest ``count`` listed segments; at least one is left."""
        gone = [self.segment(index) for index in range(count)]
        first = self.segment(count)
        return replace(
            self,
            gone=self.gone + count,
            first_listed=first.number,
            start_seq_no=first.start_seq_no,
            records=self.records - sum(segment.records for segment in gone),
            size=self.size - sum(segment.bytes for segment in gone),
        )

    def _offset(self, index: int) -> int:
        return _HEAD.size + (self.gone + index) * ROW.size

    def _read(self) -> bytes:
        if self.value is None:
            raise ChainStepError(f"page {self.key} of the stream's node was not read, and is needed")
        return self.value


def _greatest(numbers: Iterable[int | None]) -> int | None:
    return max((number for number in numbers if number is not None), default=None)


class SegmentList(Sequence[StreamSegment]):
    """All segments of a stream, in order: those of the pages, then those in the node. Immutable.

    The segments of pages are made of their bytes whenever they are asked for, and not kept.
    """

    __slots__ = ("_ends", "_pages", "_recent")

    def __init__(self, pages: Sequence[SegmentPage], recent: Sequence[StreamSegment]) -> None:
        self._pages, self._recent = pages, recent
        self._ends = list(accumulate(page.count for page in pages))

    def __len__(self) -> int:
        return (self._ends[-1] if self._ends else 0) + len(self._recent)

    def __iter__(self) -> Iterator[StreamSegment]:
        for page in self._pages:
            yield from page.segments()
        yield from self._recent

    @overload
    def __getitem__(self, index: int) -> StreamSegment: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[StreamSegment, ...]: ...
    def __getitem__(self, index: int | slice) -> StreamSegment | tuple[StreamSegment, ...]:
        if isinstance(index, slice):
            return tuple(self._at(each) for each in range(*index.indices(len(self))))
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(f"there are {counted(len(self), 'segment')}")
        return self._at(index)

    def _at(self, index: int) -> StreamSegment:
        page = bisect_left(self._ends, index + 1)
        before = self._ends[page - 1] if page else 0
        return self._pages[page].segment(index - before) if page < len(self._pages) else self._recent[index - before]
