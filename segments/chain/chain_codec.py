"""A stream's record as bytes: little-endian, with a version and a checksum (docs/streams.md draws it)."""

from __future__ import annotations

import struct
from typing import Final

from bookkeeper.codec import crc32c
from segments.chain.stream_chain import RemovedLedger, StreamChain, checked
from segments.chain.stream_segment import SegmentContents, StreamSegment
from segments.errors import ChainCorruptError, StreamInvariantError, UnsupportedStreamFormatError
from segments.position import Position

MAGIC: Final = b"BKSC"
VERSION: Final = 1

# magic, version, flags, epoch, start, start sequence number, next number, next ledger, records, last txid,
# segments, removing
_HEAD: Final = struct.Struct("<4sHHqqqqqqqqqII")
_SEALED: Final = 1
_TEXT: Final = struct.Struct("<H")
# number, ledger, start sequence number, created, epoch, completed, records, bytes, last entry, last record's entry
# and slot, first and last txid, first and last append time, least and greatest event time, footer's entry
_SEGMENT: Final = struct.Struct("<IqqqIqIqiiiqqqqqqi")
_REMOVED: Final = struct.Struct("<Iq")
_CRC: Final = struct.Struct("<I")
_NONE: Final = -(2**63)
"""Stands for a number that is not there."""

_NO_ENTRY: Final = -1
"""Stands for an entry that is not there."""


def encode_chain(chain: StreamChain) -> bytes:
    """The bytes of a record: 116 for each segment."""
    parts = [
        _HEAD.pack(
            MAGIC,
            VERSION,
            _SEALED if chain.sealed else 0,
            chain.epoch,
            *chain.start,
            _opt(chain.start_seq_no),
            chain.next_number,
            _opt(chain.next_ledger),
            chain.records,
            _opt(chain.last_txid),
            len(chain.segments),
            len(chain.removing),
        )
    ]
    for text in (chain.stream_id, chain.nonce, chain.owner, chain.location):
        raw = text.encode()
        parts += (_TEXT.pack(len(raw)), raw)
    for segment in chain.segments:
        has = segment.contents
        entry, slot = (_NO_ENTRY, 0) if has.last is None else has.last
        parts.append(
            _SEGMENT.pack(
                segment.number,
                segment.ledger_id,
                segment.start_seq_no,
                segment.created_ms,
                segment.epoch,
                _opt(segment.completed_ms),
                has.records,
                has.bytes,
                has.last_entry,
                entry,
                slot,
                _opt(has.first_txid),
                _opt(has.last_txid),
                _opt(has.first_append_ms),
                _opt(has.last_append_ms),
                _opt(has.min_event_ms),
                _opt(has.max_event_ms),
                _NO_ENTRY if has.footer_entry is None else has.footer_entry,
            )
        )
    parts += (_REMOVED.pack(*removed) for removed in chain.removing)
    body = b"".join(parts)
    return body + _CRC.pack(crc32c(body))


def decode_chain(data: bytes) -> StreamChain:
    """Read a record.

    Raises:
        UnsupportedStreamFormatError: a newer format. ChainCorruptError: no record, a damaged one, or one that breaks
        a rule.
    """
    if data[: len(MAGIC)] != MAGIC or len(data) < 6:
        raise ChainCorruptError(f"this is no stream's record: {data[:16]!r}")
    if (version := int.from_bytes(data[4:6], "little")) > VERSION:
        raise UnsupportedStreamFormatError(
            f"the stream's record has format {version}, and this program reads formats up to {VERSION}"
        )
    body = memoryview(data)[: -_CRC.size]
    if len(data) < _HEAD.size + _CRC.size or crc32c(body) != _CRC.unpack(data[-_CRC.size :])[0]:
        raise ChainCorruptError("the stream's record is damaged: its checksum does not match")
    try:
        return _read(body)
    except (struct.error, ValueError, StreamInvariantError) as error:
        raise ChainCorruptError(f"the stream's record breaks its own rules: {error}") from error


def _read(body: memoryview) -> StreamChain:
    (_, _, flags, epoch, *start, start_seq, next_number, next_ledger, records, txid, count, removing) = (
        _HEAD.unpack_from(body)
    )
    at = _HEAD.size
    texts: list[str] = []
    for _ in range(4):
        (size,) = _TEXT.unpack_from(body, at)
        at += _TEXT.size
        texts.append(str(body[at : at + size], "utf-8"))
        at += size
    middle = at + count * _SEGMENT.size
    end = middle + removing * _REMOVED.size
    if end != len(body):
        raise ValueError(f"it has {len(body)} bytes, and {end} are announced")
    stream_id, nonce, owner, location = texts
    return checked(
        StreamChain(
            stream_id=stream_id,
            epoch=epoch,
            nonce=nonce,
            owner=owner,
            location=location,
            segments=tuple(map(_segment, _SEGMENT.iter_unpack(body[at:middle]))),
            start=Position(*start),
            start_seq_no=_back(start_seq),
            next_number=next_number,
            next_ledger=_back(next_ledger),
            removing=tuple(RemovedLedger(*each) for each in _REMOVED.iter_unpack(body[middle:end])),
            sealed=bool(flags & _SEALED),
            records=records,
            last_txid=_back(txid),
        )
    )


def _segment(fields: tuple[int, ...]) -> StreamSegment:
    number, ledger_id, start, created, epoch, completed, records, size, last_entry, entry, slot, *rest, footer = fields
    return StreamSegment(
        number,
        ledger_id,
        start,
        created,
        epoch,
        _back(completed),
        SegmentContents(
            records,
            size,
            last_entry,
            None if entry == _NO_ENTRY else (entry, slot),
            *_six(rest),
            None if footer == _NO_ENTRY else footer,
        ),
    )


def _opt(number: int | None) -> int:
    return _NONE if number is None else number


def _back(number: int) -> int | None:
    return None if number == _NONE else number


def _six(numbers: list[int]) -> tuple[int | None, int | None, int | None, int | None, int | None, int | None]:
    a, b, c, d, e, f = map(_back, numbers)
    return a, b, c, d, e, f
