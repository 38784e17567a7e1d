"""An entry that was read: its header and checksum at once, its columns when they are asked for."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, count, repeat
from typing import Any, Final

from bookkeeper.codec import crc32c
from segments.entries.columns import BytesColumn, RecordColumns, decode_headers, flags_of, header_columns
from segments.entries.compression import Compression, decompress
from segments.entries.layout import CRC, CRC_AT, HEADER, HEADER_SIZE, MAGIC, PIECE, VERSION, Columns, EntryKind
from segments.entries.sections import EntryBatch, PieceInfo, Sections, StringSection, only_value, read_sections
from segments.errors import EntryCorruptError, UnsupportedStreamFormatError
from segments.position import Position
from segments.record import NO_HEADERS, ProducerRef, StoredRecord

Buffer = bytes | bytearray | memoryview


def decode_entry(data: Buffer, segment: int = 0, entry: int = 0, base: int = 0) -> StoredEntry:
    """Look at an entry. ``segment`` and ``entry`` are where it stands; they are for the records' positions. ``base`` is
    that of its segment, and is added to the sequence numbers in it.

    The entry keeps ``data``, and does not copy it.

    Raises:
        UnsupportedStreamFormatError: written by a newer program. EntryCorruptError: no entry of a stream, or damaged.
    """
    view = memoryview(data)
    if len(view) < HEADER_SIZE:
        raise EntryCorruptError(f"entry {entry} is no entry of a stream", position=Position(segment, entry, 0))
    magic, version, kind, codec, flags, records, batches, seq_no, append_ms, snapshot, size, stored, crc = (
        HEADER.unpack_from(view)
    )
    if magic != MAGIC:
        raise EntryCorruptError(f"entry {entry} is no entry of a stream", position=Position(segment, entry, 0))
    if version > VERSION:
        raise UnsupportedStreamFormatError(
            f"entry {entry} has format {version}, and this program reads formats up to {VERSION}",
            position=Position(segment, entry, 0),
        )
    body = view[HEADER_SIZE:]
    if len(body) != stored or crc32c(body, crc32c(view[:CRC_AT])) != crc:
        raise EntryCorruptError(
            f"entry {entry} is damaged: its checksum does not match", position=Position(segment, entry, 0)
        )
    known = _KINDS.get(kind)
    if known is None:
        raise UnsupportedStreamFormatError(
            f"entry {entry} is of kind {kind}, which this program does not know", position=Position(segment, entry, 0)
        )
    if flags >= len(_COLUMNS):
        raise UnsupportedStreamFormatError(
            f"entry {entry} has columns that this program does not know (flags {flags:#x})",
            position=Position(segment, entry, 0),
        )
    used = _COLUMNS[flags]
    return StoredEntry(
        segment, entry, known, codec, used, records, batches, base + seq_no, append_ms, snapshot, size, body
    )


_KINDS: Final = {kind.value: kind for kind in EntryKind}
_COLUMNS: Final = tuple(map(Columns, range(2 * Columns.HEADERS)))
"""Looked up, because making a flag takes longer than all the rest of an entry."""

_VALUES_ONLY: Final = _COLUMNS[0]

RUN: Final = 256
"""So many records of an entry are made together for someone who takes one at a time."""


@dataclass(eq=False)
class StoredEntry:
    """An entry that was read. Its checksum is right; its body is unpacked when it is needed.

    ``a`` and ``b`` of the methods are slots; the records from ``a`` up to, and not including, ``b`` are meant.
    """

    segment: int
    entry: int
    kind: EntryKind
    codec: int
    flags: Columns
    count: int
    """User records, which is also how many slots it takes."""
    batch_count: int
    first_seq_no: int
    """Of the first record; of the next record in an entry that has none."""
    append_ms: int
    snapshot_entry: int
    """The entry of the last snapshot of producers in this ledger; NO_SNAPSHOT if none came before."""
    unpacked_size: int
    stored: memoryview
    """The body as it is stored."""
    _run: tuple[int, Sequence[StoredRecord]] = field(default=(0, ()), init=False, repr=False)
    """In an entry whose records are taken one at a time: the first slot of a run of them, and these."""

    @property
    def size(self) -> int:
        """The bytes of the whole entry, as stored."""
        return HEADER_SIZE + len(self.stored)

    def share(self, a: int, b: int) -> int:
        """The bytes of the whole entry that count as those of these records. What parts count adds up."""
        return self.size * b // self.count - self.size * a // self.count

    def appended_ms(self, slot: int) -> int:
        """When the record of this slot was put into the entry: all at once."""
        return self.append_ms

    def encoded(self) -> bytes:
        """The bytes of the entry, as ``decode_entry`` takes them. One that was assembled is one entry then."""
        header = HEADER.pack(
            MAGIC,
            VERSION,
            self.kind,
            self.codec,
            self.flags,
            self.count,
            self.batch_count,
            self.first_seq_no,
            self.append_ms,
            self.snapshot_entry,
            self.unpacked_size,
            len(self.stored),
            0,
        )[:CRC_AT]
        return b"".join((header, CRC.pack(crc32c(self.stored, crc32c(header))), self.stored))

    @cached_property
    def body(self) -> bytes | memoryview:
        """The body, unpacked. Raises: EntryCorruptError, UnsupportedStreamFormatError, MissingLibraryError."""
        return decompress(self.codec, self.stored, self.unpacked_size)

    @property
    def payload(self) -> bytes:
        """The bytes of an entry without records."""
        return bytes(self.body)

    @cached_property
    def piece(self) -> PieceInfo | None:
        """Which piece it is; None if it is none."""
        if self.kind is not EntryKind.PIECE:
            return None
        if len(self.body) < PIECE.size:
            raise self._damaged("its piece is cut short")
        info = PieceInfo(*PIECE.unpack_from(self.body))
        if info.number >= info.pieces:
            raise self._damaged(f"it says that it is piece {info.number} of {info.pieces}")
        return info

    @property
    def piece_bytes(self) -> memoryview:
        """The bytes of the piece."""
        return memoryview(self.body)[PIECE.size :]

    def is_piece(self, number: int, of: PieceInfo) -> bool:
        """Whether it is the piece of that number of the records of which ``of`` is a piece."""
        return self.piece == (number, of.pieces, of.total)

    def assembled(self, pieces: Sequence[StoredEntry]) -> StoredEntry:
        """The entry with the records of all pieces, of which this is the last. It stands where this one stands.

        Raises:
            EntryCorruptError: the pieces do not belong together.
        """
        info = self.piece
        assert info is not None
        first = self.entry - info.number
        if len(pieces) != info.pieces or not all(
            each.entry == first + number and each.is_piece(number, info) for number, each in enumerate(pieces)
        ):
            raise self._damaged("its pieces do not belong together")
        body = memoryview(b"".join(each.piece_bytes for each in pieces))
        if len(body) != info.total:
            raise self._damaged(f"its pieces have {len(body)} bytes, and {info.total} are announced")
        return StoredEntry(
            self.segment,
            self.entry,
            EntryKind.DATA,
            Compression.NONE,
            self.flags,
            self.count,
            self.batch_count,
            self.first_seq_no,
            self.append_ms,
            self.snapshot_entry,
            len(body),
            body,
        )

    # -- columns ---------------------------------------------------------------------------------------

    @cached_property
    def batches(self) -> tuple[EntryBatch, ...]:
        """Which records belong together, and to which producer."""
        return self._sections.batches

    @cached_property
    def _sections(self) -> Sections:
        if self.kind is not EntryKind.DATA:
            return Sections(batches=())
        try:
            return read_sections(memoryview(self.body), self.flags, self.count, self.batch_count)
        except (struct.error, ValueError, UnicodeDecodeError) as error:
            raise self._damaged(str(error)) from error

    def values(self, a: int = 0, b: int | None = None) -> list[bytes]:
        """The values of the records."""
        if self.count == 1 and a == 0 and b != 0 and (value := self._only_value()) is not None:
            return [value]
        return self._strings(self._sections.values, a, b)

    def keys(self, a: int = 0, b: int | None = None) -> list[bytes | None]:
        """The keys of the records; None where there is none."""
        column = self._sections.keys
        end = self._end(b)
        if column is None:
            return [None] * max(0, end - a)
        keys: list[bytes | None] = list(self._strings(column, a, b))
        return _blanked(keys, self._sections.key_bits, a, end)

    def txids(self, a: int = 0, b: int | None = None) -> list[int | None]:
        """The transaction ids of the records; None where there is none."""
        return self._numbers(self._sections.txids, self._sections.txid_bits, a, self._end(b))

    def event_times_ms(self, a: int = 0, b: int | None = None) -> list[int | None]:
        """The event times of the records in milliseconds since 1970; None where there is none."""
        return self._numbers(self._sections.events, self._sections.event_bits, a, self._end(b))

    def headers(self, a: int = 0, b: int | None = None) -> list[Mapping[str, bytes]]:
        """The headers of the records."""
        column = self._sections.headers
        if column is None:
            return [NO_HEADERS] * max(0, self._end(b) - a)
        return list(map(decode_headers, self._strings(column, a, b)))

    def header_columns(self) -> tuple[list[int | None], list[bytes], list[bytes]]:
        """The headers of all records: of each record the place of its first name, None without any, and at the end how
        many names there are; all names; all values. Raises EntryCorruptError."""
        column = self._sections.headers
        return header_columns([b""] * self.count if column is None else self._strings(column, 0, self.count))

    def producers(self, a: int = 0, b: int | None = None) -> list[ProducerRef | None]:
        """Who appended the records; None for a writer without a name."""
        parts: list[Iterator[ProducerRef | None]] = []
        for batch in self.batches:
            if batch.producer is None:
                parts.append(repeat(None, batch.records))
            else:
                fields = zip(repeat(batch.producer, batch.records), repeat(batch.epoch), count(batch.first_sequence))
                parts.append(map(_NEW, repeat(ProducerRef), fields))
        return list(chain.from_iterable(parts))[a : self._end(b)]

    def position(self, slot: int) -> Position:
        """Where the record of this slot stands."""
        return Position(self.segment, self.entry, slot)

    def records(self, a: int = 0, b: int | None = None) -> list[StoredRecord]:
        """The records themselves."""
        if self.count == 1 and a == 0 and b != 0 and (value := self._only_value()) is not None:
            place = _NEW(Position, (self.segment, self.entry, 0))
            return [
                _NEW(
                    StoredRecord,
                    (place, self.first_seq_no, value, None, None, NO_HEADERS, None, self.append_ms, None),
                )
            ]
        end = self._end(b)
        positions = map(_NEW, repeat(Position), zip(repeat(self.segment), repeat(self.entry), range(a, end)))
        has = self._sections
        no: Any = repeat(None)
        fields = zip(
            positions,
            range(self.first_seq_no + a, self.first_seq_no + end),
            self.values(a, end),
            no if has.txids is None else self.txids(a, end),
            no if has.keys is None else self.keys(a, end),
            repeat(NO_HEADERS) if has.headers is None else self.headers(a, end),
            no if has.events is None else self.event_times_ms(a, end),
            repeat(self.append_ms),
            self.producers(a, end) if has.has_producers else no,
        )
        return list(map(_NEW, repeat(StoredRecord), fields))

    def record(self, slot: int) -> StoredRecord:
        """The record of this slot. Quick for someone who takes one after the other."""
        if self.count == 1:
            return self.records()[slot]
        first, records = self._run
        if not 0 <= slot - first < len(records):
            first = slot - slot % RUN
            records = self.records(first, first + RUN)
            self._run = first, records
        return records[slot - first]

    def _only_value(self) -> bytes | None:
        """The value, if there is one record without anything else; None: the sections tell."""
        if self.flags is not _VALUES_ONLY or self.batch_count != 1 or self.kind is not EntryKind.DATA:
            return None
        if self.codec:
            return only_value(self.body)
        return only_value(self.stored) if len(self.stored) == self.unpacked_size else None

    def part(self, a: int, b: int | None) -> tuple[StoredEntry, Sections, int, int]:
        """What ``joined_batch`` takes of an entry. Raises: EntryCorruptError."""
        return self, self._sections, a, self._end(b)

    @property
    def last_txid(self) -> int | None:
        """The last transaction id in it; None if no record has one."""
        return next((txid for txid in reversed(self.txids()) if txid is not None), None)

    def columns(self) -> RecordColumns:
        """The same records as columns, to write them again."""
        has = self._sections
        known = [txid for txid in self.txids() if txid is not None] if has.txids is not None else []
        times = [ms for ms in self.event_times_ms() if ms is not None] if has.events is not None else []
        return RecordColumns(
            self.count,
            _bytes_column(has.values),
            None if has.keys is None else _bytes_column(has.keys),
            None if has.key_bits is None else bytes(has.key_bits),
            None if has.txids is None else bytes(has.txids),
            None if has.txid_bits is None else bytes(has.txid_bits),
            None if has.events is None else bytes(has.events),
            None if has.event_bits is None else bytes(has.event_bits),
            None if has.headers is None else _bytes_column(has.headers),
            known[0] if known else None,
            known[-1] if known else None,
            min(times, default=None),
            max(times, default=None),
        )

    def _end(self, b: int | None) -> int:
        return self.count if b is None else min(b, self.count)

    def _strings(self, column: StringSection, a: int, b: int | None) -> list[bytes]:
        if (end := self._end(b)) <= a:
            return []
        offsets = array("i", bytes(column.offsets[4 * a : 4 * end + 4]))
        if _BIG_ENDIAN:
            offsets.byteswap()
        begin = offsets[0]
        data = bytes(column.data[begin : offsets[-1]])
        bounds: Sequence[int] = offsets if not begin else [at - begin for at in offsets]
        return list(map(data.__getitem__, map(slice, bounds, bounds[1:])))

    def _numbers(self, column: memoryview | None, bits: memoryview | None, a: int, b: int) -> list[int | None]:
        if column is None:
            return [None] * max(0, b - a)
        numbers = array("q", bytes(column[8 * a : 8 * b]))
        if _BIG_ENDIAN:
            numbers.byteswap()
        found: list[int | None] = list(numbers)
        return _blanked(found, bits, a, b)

    def _damaged(self, what: str) -> EntryCorruptError:
        return EntryCorruptError(
            f"entry {self.entry} of segment {self.segment} is damaged: {what}", position=self.position(0)
        )


_NEW: Final[Any] = tuple.__new__
_BIG_ENDIAN: Final = struct.pack("=H", 1) != struct.pack("<H", 1)


def _blanked(column: list[Any], bits: memoryview | None, a: int, b: int) -> list[Any]:
    """None in the places that the bitmap does not have."""
    if bits is None or b <= a:
        return column
    flags = flags_of(bits, b)[a:]
    return [each if there else None for each, there in zip(column, flags, strict=True)]


def _bytes_column(section: StringSection) -> BytesColumn:
    return BytesColumn(bytes(section.offsets), bytes(section.data))
