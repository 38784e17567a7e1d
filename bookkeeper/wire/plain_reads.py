"""Plain reads, byte by byte: the only shape most single reads have, past the general codecs.

A request that asks for an entry and nothing else, and a reply that holds it. Everything else, and whatever is not in
its shortest form, gives None here and goes through ``v2`` and ``v3``, whose results these are the same as.

    v2 request | 02 02 00 00 | ledger id: i64 | entry id: i64 |
    v2 reply   | 02 02 00 00 | status 0: i32 | ledger id: i64 | entry id: i64 | entry |
    v3 request | 0a n | 08 03 10 01 18 txn | a2 06 n | 08 ledger 10 entry |
    v3 reply   | 0a n | 08 03 10 01 18 txn | 10 00 | a2 06 n | 08 00 10 ledger 18 entry 22 n body | and perhaps 28 LAC |
"""

from __future__ import annotations

import re
from struct import Struct
from typing import Final, NamedTuple

from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.runs.shapes import Dialect
from bookkeeper.seams import Buffer
from bookkeeper.wire.requests import ReadReply
from bookkeeper.wire.status import Status

_U32: Final = Struct(">I")
_IDS: Final = Struct(">qq")
_V2_WORD: Final = b"\x02\x02\x00\x00"
_V2_REQUEST: Final = Struct(">I4sqq")
_V2_REPLY: Final = Struct(">I4siqq")
_V2_FOUND: Final = Struct(">4siqq")
_INT64_MAX: Final = (1 << 63) - 1
_U64: Final = (1 << 64) - 1

# A varint in its shortest form: of up to 63 bits, of up to 64 bits.
_V63: Final = rb"([\x00-\x7f]|[\x80-\xff]{1,8}[\x01-\x7f])"
_V64: Final = rb"([\x00-\x7f]|[\x80-\xff]{1,8}[\x01-\x7f]|[\x80-\xff]{9}\x01)"
_HEADER: Final = rb"(\x0a[\x06-\x0f]\x08\x03\x10\x01\x18" + _V64 + rb")"
_V3_REQUEST: Final = re.compile(_HEADER + rb"\xa2\x06([\x04-\x14])\x08" + _V63 + rb"\x10" + _V63, re.DOTALL)
_V3_REPLY: Final = re.compile(
    _HEADER + rb"\x10\x00\xa2\x06" + _V63 + rb"\x08\x00\x10" + _V63 + rb"\x18" + _V63 + rb"\x22" + _V63, re.DOTALL
)
_LAC: Final = re.compile(rb"\x28" + _V64)


class PlainRead(NamedTuple):
    """A plain read, and what its reply repeats."""

    ledger_id: LedgerId
    entry_id: EntryId
    header: bytes
    """v3: the header field as it came; empty in v2."""
    ids: bytes
    """v3: the ids as fields of the reply."""


def encode_request(dialect: Dialect, ledger_id: int, entry_id: int, txn_id: int) -> bytes | None:
    """The whole frame of a plain read; None if its numbers are not a plain read's."""
    if not 0 <= ledger_id <= _INT64_MAX or not 0 <= entry_id <= _INT64_MAX or not 0 <= txn_id <= _U64:
        return None
    if dialect is Dialect.V2:
        return _V2_REQUEST.pack(20, _V2_WORD, ledger_id, entry_id)
    txn, ledger, entry = _varint(txn_id), _varint(ledger_id), _varint(entry_id)
    header, request = 5 + len(txn), 2 + len(ledger) + len(entry)
    return b"\x00\x00\x00%c\x0a%c\x08\x03\x10\x01\x18%b\xa2\x06%c\x08%b\x10%b" % (
        header + request + 5,
        header,
        txn,
        request,
        ledger,
        entry,
    )


def decode_request(body: bytes, v2: bool) -> PlainRead | None:
    """The plain read in a frame body; None if it is anything else. ``v2``: v3 is not spoken any more."""
    if len(body) == 20 and body.startswith(_V2_WORD):
        ledger_id, entry_id = _IDS.unpack_from(body, 4)
        if ledger_id < 0 or entry_id < 0:
            return None
        return PlainRead(LedgerId(ledger_id), EntryId(entry_id), b"", b"")
    if v2 or (match := _V3_REQUEST.fullmatch(body)) is None:
        return None
    header, _, size, ledger, entry = match.groups()
    if header[1] != len(header) - 2 or size[0] != 2 + len(ledger) + len(entry):
        return None
    ids = b"\x10%b\x18%b" % (ledger, entry)
    return PlainRead(LedgerId(_value(ledger)), EntryId(_value(entry)), header, ids)


def encode_reply(read: PlainRead, entry: bytes, lac: int) -> bytes:
    """The whole frame that gives ``read`` its entry, and in v3 the LAC that this bookie knows."""
    if not read.header:
        return _V2_REPLY.pack(24 + len(entry), _V2_WORD, 0, read.ledger_id, read.entry_id) + entry
    size, last = _varint(len(entry)), _varint(lac & _U64)
    reply = _varint(4 + len(read.ids) + len(size) + len(entry) + len(last))
    length = len(read.header) + 4 + len(reply) + 4 + len(read.ids) + len(size) + len(entry) + len(last)
    front = b"%b%b\x10\x00\xa2\x06%b\x08\x00%b\x22%b" % (_U32.pack(length), read.header, reply, read.ids, size)
    return b"".join((front, entry, b"\x28", last))


def decode_reply(buffer: Buffer, start: int, end: int, dialect: Dialect) -> tuple[int, ReadReply] | None:
    """The transaction id (0 in v2) and the entry in the frame body ``buffer[start:end]``; None if it is anything else
    than the reply to a read that found its entry."""
    if dialect is Dialect.V2:
        return _v2_reply(buffer, start, end)
    match = _V3_REPLY.match(buffer, start, end)
    if match is None:
        return None
    header, txn, size, ledger, entry, body_size = match.groups()
    at = match.end()
    stop = at + _value(body_size)
    if header[1] != len(header) - 2 or _value(size) != end - match.end(3) or stop > end:
        return None
    lac = None
    if stop < end:
        behind = _LAC.fullmatch(buffer, stop, end)
        if behind is None:
            return None
        lac = _value(behind[1])
        if lac > _INT64_MAX:
            lac -= 1 << 64
    body = bytes(memoryview(buffer)[at:stop])
    return _value(txn), ReadReply(Status.OK, LedgerId(_value(ledger)), EntryId(_value(entry)), body, lac)


def _v2_reply(buffer: Buffer, start: int, end: int) -> tuple[int, ReadReply] | None:
    if end - start < _V2_FOUND.size:
        return None
    word, status, ledger_id, entry_id = _V2_FOUND.unpack_from(buffer, start)
    if word != _V2_WORD or status != 0 or ledger_id < 0 or entry_id < 0:
        return None
    body = bytes(memoryview(buffer)[start + _V2_FOUND.size : end])
    return 0, ReadReply(Status.OK, LedgerId(ledger_id), EntryId(entry_id), body)


def _varint(value: int) -> bytes:
    if value < 0x80:
        return b"%c" % value
    if value < 0x4000:
        return b"%c%c" % (value & 0x7F | 0x80, value >> 7)
    if value < 0x200000:
        return b"%c%c%c" % (value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14)
    return b"%c%c%c%b" % (
        value & 0x7F | 0x80,
        value >> 7 & 0x7F | 0x80,
        value >> 14 & 0x7F | 0x80,
        _varint(value >> 21),
    )


def _value(varint: bytes) -> int:
    size = len(varint)
    if size == 1:
        return varint[0]
    if size == 2:
        return varint[0] & 0x7F | varint[1] << 7
    if size == 3:
        return varint[0] & 0x7F | (varint[1] & 0x7F) << 7 | varint[2] << 14
    value = shift = 0
    for byte in varint:
        value |= (byte & 0x7F) << shift
        shift += 7
    return value
