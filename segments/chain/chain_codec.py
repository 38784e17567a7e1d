"""A stream's node as bytes: little-endian, with a version and a checksum (docs/stream-formats.md draws it).

Format 2 has pages, and is written only where there are some: programs that know only format 1 read every other node.
Format 3 has segments that were published whole, and is written only where the node itself lists some.
Format 4 has the password of the stream's ledgers, and is written only where there is one: programs that know only the
formats before it refuse the node, because they could open none of its ledgers.
"""

from __future__ import annotations

import struct
from sys import intern
from typing import Final

from bookkeeper.codec import crc32c
from segments.chain.segment_codec import ROW, pack_segment, read_back, stored, unpack_segment
from segments.chain.segment_page import SegmentPage
from segments.chain.stream_chain import RemovedLedger, StreamChain
from segments.errors import ChainCorruptError, StreamInvariantError, UnsupportedStreamFormatError
from segments.position import Position

MAGIC: Final = b"BKSC"
VERSION: Final = 4
"""The format of a node with a password."""
WITH_PUBLISHED: Final = 3
WITH_PAGES: Final = 2
WITHOUT_PAGES: Final = 1
"""The format of a node that names no page."""

# magic, version, flags, epoch, start, start sequence number, next number, next ledger, records, last txid,
# segments, removing
_HEAD: Final = struct.Struct("<4sHHqqqqqqqqqII")
_SEALED: Final = 1
_TEXT: Final = struct.Struct("<H")
_PAGES: Final = struct.Struct("<I")
# first and last number, epoch, stored, gone, first listed number, CRC32C, start sequence number, records, bytes,
# last record's segment (0: there is none), entry and slot, greatest txid, append time and event time
_PAGE: Final = struct.Struct("<IIqIIIIqqqIiiqqq")
_REMOVED: Final = struct.Struct("<Iq")
_CRC: Final = struct.Struct("<I")


def encode_chain(chain: StreamChain) -> bytes:
    """The bytes of a node: 116 for each segment, and 92 for each page."""
    if chain.password:
        version = VERSION
    elif any(segment.is_published for segment in chain.recent):
        version = WITH_PUBLISHED
    else:
        version = WITH_PAGES if chain.pages else WITHOUT_PAGES
    parts = [
        _HEAD.pack(
            MAGIC,
            version,
            _SEALED if chain.sealed else 0,
            chain.epoch,
            *chain.start,
            stored(chain.start_seq_no),
            chain.next_number,
            stored(chain.next_ledger),
            chain.records,
            stored(chain.last_txid),
            len(chain.recent),
            len(chain.removing),
        )
    ]
    for text in (chain.stream_id, chain.nonce, chain.owner, chain.location):
        raw = text.encode()
        parts += (_TEXT.pack(len(raw)), raw)
    if version == VERSION:
        parts += (_TEXT.pack(len(chain.password)), chain.password)
    if version > WITHOUT_PAGES:
        parts.append(_PAGES.pack(len(chain.pages)))
        parts += map(_pack_page, chain.pages)
    parts += map(pack_segment, chain.recent)
    parts += (_REMOVED.pack(*removed) for removed in chain.removing)
    body = b"".join(parts)
    return body + _CRC.pack(crc32c(body))


def decode_chain(data: bytes) -> StreamChain:
    """Read a node. Its pages are named, and not read.

    Raises:
        UnsupportedStreamFormatError: a newer format. ChainCorruptError: no node, a damaged one, or one that breaks
        a rule.
    """
    if data[: len(MAGIC)] != MAGIC or len(data) < 6:
        raise ChainCorruptError(f"this is no stream's node: {data[:16]!r}")
    if (version := int.from_bytes(data[4:6], "little")) > VERSION:
        raise UnsupportedStreamFormatError(
            f"the stream's node has format {version}, and this program reads formats up to {VERSION}"
        )
    body = memoryview(data)[: -_CRC.size]
    if len(data) < _HEAD.size + _CRC.size or crc32c(body) != _CRC.unpack(data[-_CRC.size :])[0]:
        raise ChainCorruptError("the stream's node is damaged: its checksum does not match")
    try:
        return _read(body)
    except (struct.error, ValueError, StreamInvariantError) as error:
        raise ChainCorruptError(f"the stream's node breaks its own rules: {error}") from error


def _read(body: memoryview) -> StreamChain:
    (_, version, flags, epoch, *start, start_seq, next_number, next_ledger, records, txid, count, removing) = (
        _HEAD.unpack_from(body)
    )
    at = _HEAD.size
    texts: list[str] = []
    for _ in range(4):
        (size,) = _TEXT.unpack_from(body, at)
        at += _TEXT.size
        texts.append(intern(str(body[at : at + size], "utf-8")))
        at += size
    password = b""
    if version == VERSION:
        first = at + _TEXT.size
        at = first + _TEXT.unpack_from(body, at)[0]
        password = bytes(body[first:at])
        if not password:
            raise ValueError("it has an empty password")
    pages: tuple[SegmentPage, ...] = ()
    if version > WITHOUT_PAGES:
        first = at + _PAGES.size
        at = first + _PAGES.unpack_from(body, at)[0] * _PAGE.size
        pages = tuple(map(_unpack_page, _PAGE.iter_unpack(body[first:at])))
    middle = at + count * ROW.size
    end = middle + removing * _REMOVED.size
    if end != len(body):
        raise ValueError(f"it has {len(body)} bytes, and {end} are announced")
    stream_id, nonce, owner, location = texts
    return StreamChain(
        stream_id=stream_id,
        epoch=epoch,
        nonce=nonce,
        owner=owner,
        location=location,
        recent=tuple(map(unpack_segment, ROW.iter_unpack(body[at:middle]))),
        start=Position(*start),
        start_seq_no=read_back(start_seq),
        next_number=next_number,
        next_ledger=read_back(next_ledger),
        removing=tuple(RemovedLedger(*each) for each in _REMOVED.iter_unpack(body[middle:end])),
        sealed=bool(flags & _SEALED),
        records=records,
        last_txid=read_back(txid),
        pages=pages,
        password=password,
    ).checked()


def _pack_page(page: SegmentPage) -> bytes:
    segment, entry, slot = (0, 0, 0) if page.tail is None else page.tail
    return _PAGE.pack(
        page.first,
        page.last,
        page.epoch,
        page.stored,
        page.gone,
        page.first_listed,
        page.crc,
        page.start_seq_no,
        page.records,
        page.size,
        segment,
        entry,
        slot,
        stored(page.last_txid),
        stored(page.last_append_ms),
        stored(page.max_event_ms),
    )


def _unpack_page(fields: tuple[int, ...]) -> SegmentPage:
    *head, segment, entry, slot, txid, append_ms, event_ms = fields
    first, last, epoch, count, gone, first_listed, crc, start_seq_no, records, size = head
    tail = Position(segment, entry, slot) if segment else None
    return SegmentPage(
        first,
        last,
        epoch,
        count,
        gone,
        first_listed,
        crc,
        start_seq_no,
        records,
        size,
        tail,
        read_back(txid),
        read_back(append_ms),
        read_back(event_ms),
    )
