"""A segment as a file: its bytes (pure).

    header   magic "JEDITS" u16 format | i32 layout | u64 epoch | u64 first | u32 crc32      32 bytes, big-endian
    record   magic "JR" u16 0 | u32 length | u32 crc32 over length and frames | frames       one per batch

The header is durable before anybody learns the file's name, and a record is durable before the next one is written. So
a crash has torn a file that ends in an incomplete or damaged record, *unless* a whole record follows: then the damaged
record was durable, and that is rot. In a final segment any damage is rot.
"""

from __future__ import annotations

import re
import struct
import zlib
from dataclasses import dataclass
from typing import Final

from journal_manager.edits import Batch, TxId
from journal_manager.errors import JournalCorruptionError, OpFormatError, UnsupportedLayoutError

FORMAT: Final = 1
_MAGIC: Final = b"JEDITS"
_HEADER: Final = struct.Struct(">6sHiQQ")
_CRC: Final = struct.Struct(">I")
HEADER_BYTES: Final = _HEADER.size + _CRC.size

_RECORD_MAGIC: Final = b"JR\x00\x00"
_RECORD: Final = struct.Struct(">4sII")
RECORD_OVERHEAD: Final = _RECORD.size
MAX_RECORD_BYTES: Final = (64 << 20) + RECORD_OVERHEAD

_FINAL: Final = re.compile(r"edits_(\d{19})-(\d{19})")
_IN_PROGRESS: Final = re.compile(r"edits_inprogress_(\d{19})")


@dataclass(frozen=True, slots=True)
class SegmentHeader:
    layout_version: int
    epoch: int
    first: TxId


@dataclass(frozen=True, slots=True)
class SegmentScan:
    """The whole records at the beginning of some bytes."""

    batches: tuple[Batch, ...]
    ends: tuple[int, ...]
    """Where each batch's record ends, counted from the beginning of the bytes."""

    @property
    def used(self) -> int:
        return self.ends[-1] if self.ends else 0


def final_name(first: TxId, last: TxId) -> str:
    return f"edits_{first:019d}-{last:019d}"


def in_progress_name(first: TxId) -> str:
    return f"edits_inprogress_{first:019d}"


def parse_name(name: str) -> tuple[TxId, TxId | None] | None:
    """The first and last id in the name of a segment's file; last is None while in progress. None: another file."""
    if match := _FINAL.fullmatch(name):
        return TxId(int(match[1])), TxId(int(match[2]))
    if match := _IN_PROGRESS.fullmatch(name):
        return TxId(int(match[1])), None
    return None


def encode_header(header: SegmentHeader) -> bytes:
    data = _HEADER.pack(_MAGIC, FORMAT, header.layout_version, header.epoch, header.first)
    return data + _CRC.pack(zlib.crc32(data))


def decode_header(data: bytes, name: str) -> SegmentHeader | None:
    """The header at the beginning of a file; None if the file never got one because of a crash at its creation.

    Raises:
        UnsupportedLayoutError: a newer version wrote it. JournalCorruptionError: the header of a file with records is
            damaged.
    """
    if len(data) >= HEADER_BYTES:
        magic, version, layout, epoch, first = _HEADER.unpack_from(data)
        if _CRC.unpack_from(data, _HEADER.size)[0] == zlib.crc32(data[: _HEADER.size]) and magic == _MAGIC:
            if version != FORMAT:
                raise UnsupportedLayoutError(
                    f"{name} has format {version}, and this program reads format {FORMAT}: a newer program wrote it"
                )
            return SegmentHeader(layout, epoch, TxId(first))
    if len(data) > HEADER_BYTES:
        raise JournalCorruptionError(f"the header of {name} is damaged", location=name)
    return None


def encode_record(batch: Batch) -> bytes:
    length = len(batch.frames)
    crc = zlib.crc32(batch.frames, zlib.crc32(length.to_bytes(4, "big")))
    return _RECORD.pack(_RECORD_MAGIC, length, crc) + batch.frames


def scan(data: bytes, start: int = 0) -> SegmentScan:
    """The complete, undamaged records from ``start`` on, up to the first that is not."""
    batches: list[Batch] = []
    ends: list[int] = []
    offset = start
    while (found := _record_at(data, offset)) is not None:
        batch, offset = found
        if batches and batch.first != batches[-1].last + 1:
            break
        batches.append(batch)
        ends.append(offset)
    return SegmentScan(tuple(batches), tuple(ends))


def record_after(data: bytes, start: int) -> Batch | None:
    """Find a whole record anywhere at or after ``start``. If there is one, the damage at ``start`` is rot."""
    offset = data.find(_RECORD_MAGIC, start)
    while offset != -1:
        if (found := _record_at(data, offset)) is not None:
            return found[0]
        offset = data.find(_RECORD_MAGIC, offset + 1)
    return None


def record_size(data: bytes, start: int) -> int:
    """The length that the record at ``start`` gives; RECORD_OVERHEAD if that cannot be read."""
    if len(data) - start < RECORD_OVERHEAD:
        return RECORD_OVERHEAD
    magic, length, _ = _RECORD.unpack_from(data, start)
    return RECORD_OVERHEAD + length if magic == _RECORD_MAGIC and length < MAX_RECORD_BYTES else RECORD_OVERHEAD


def _record_at(data: bytes, offset: int) -> tuple[Batch, int] | None:
    if len(data) - offset < RECORD_OVERHEAD:
        return None
    magic, length, crc = _RECORD.unpack_from(data, offset)
    end = offset + RECORD_OVERHEAD + length
    if magic != _RECORD_MAGIC or end > len(data):
        return None
    frames = data[offset + RECORD_OVERHEAD : end]
    if zlib.crc32(frames, zlib.crc32(length.to_bytes(4, "big"))) != crc:
        return None
    try:
        return Batch.of(frames), end
    except OpFormatError:
        return None
