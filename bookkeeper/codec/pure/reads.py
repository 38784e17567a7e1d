"""Plain reads in runs, for the codec in Python: the only shape most single reads have.

A request that asks for an entry and nothing else, and a reply that holds it, every number in its shortest form:

    v2 request | 02 02 00 00 | ledger id: i64 | entry id: i64 |
    v2 reply   | 02 02 00 00 | status 0: i32 | ledger id: i64 | entry id: i64 | entry |
    v3 request | 0a n | 08 03 10 01 18 txn | a2 06 n | 08 ledger 10 entry |
    v3 reply   | 0a n | 08 03 10 01 18 txn | 10 00 | a2 06 n | 08 00 10 ledger 18 entry 22 n entry |
    and behind the entry, if the bookie tells its LAC, | 28 LAC |

Every frame has its length (u32) in front. Anything else ends a run and goes through the general codecs, whose results
these are the same as.
"""

from __future__ import annotations

import hmac
import re
from array import array
from collections.abc import Sequence
from struct import Struct
from typing import Final

from bookkeeper.codec.pure.checksums import DIGEST_SIZES, digest_of
from bookkeeper.codec.pure.frames import HEADER, INT64_MAX, U32, check_bounds, put_varint, value_of, view_of
from bookkeeper.codec.pure.records import read_record
from bookkeeper.codec.shapes import (
    ENTRY_HEADER,
    FRAME_MAX,
    NO_LAC,
    READS_MAX,
    RECORD_HEADER,
    Answers,
    Dialect,
    ReadReplies,
    Reads,
)
from bookkeeper.seams import Buffer

_WORD: Final = b"\x02\x02\x00\x00"
_V2_REQUEST: Final = Struct(">4sqq")
_V2_REPLY: Final = Struct(">4siqq")
_U64: Final = (1 << 64) - 1

# A varint in its shortest form: of up to 63 bits, of up to 64 bits.
_V63: Final = rb"([\x00-\x7f]|[\x80-\xff]{1,8}[\x01-\x7f])"
_V64: Final = rb"([\x00-\x7f]|[\x80-\xff]{1,8}[\x01-\x7f]|[\x80-\xff]{9}\x01)"
_HEADER: Final = rb"\x0a([\x06-\x0f])(\x08\x03\x10\x01\x18" + _V64 + rb")"
_V3_REQUEST: Final = re.compile(_HEADER + rb"\xa2\x06([\x04-\x14])(\x08" + _V63 + rb"\x10" + _V63 + rb")", re.DOTALL)
_V3_REPLY: Final = re.compile(
    _HEADER + rb"\x10\x00\xa2\x06" + _V63 + rb"\x08\x00\x10" + _V63 + rb"\x18" + _V63 + rb"\x22" + _V63, re.DOTALL
)
_LAC: Final = re.compile(rb"\x28" + _V64)


# -- requests --------------------------------------------------------------------------------------------


def encode_reads(dialect: int, ledger_id: int, entry_ids: Sequence[int], txn: int) -> bytes:
    """The frames of plain reads, with the transaction ids ``txn``, ``txn + 1``, ... (v3).

    Raises:
        ValueError: no such dialect, negative ids, or numbers that do not fit.
    """
    if dialect not in (Dialect.V2, Dialect.V3) or not 0 <= ledger_id <= INT64_MAX:
        raise ValueError(f"dialect {dialect}, ledger {ledger_id}")
    if not 0 <= txn <= _U64 - len(entry_ids):
        raise ValueError(f"{len(entry_ids)} transaction ids from {txn} on")
    out = bytearray()
    for at, entry_id in enumerate(entry_ids, txn):
        if not 0 <= entry_id <= INT64_MAX:
            raise ValueError(f"entry {entry_id}")
        if dialect == Dialect.V2:
            out += U32.pack(20) + _V2_REQUEST.pack(_WORD, ledger_id, entry_id)
            continue
        request = b"\x08" + put_varint(ledger_id) + b"\x10" + put_varint(entry_id)
        out += _framed(_header(at) + b"\xa2\x06" + bytes((len(request),)) + request)
    return bytes(out)


def split_reads(
    chunk: Buffer, start: int, end: int, frame_max: int = FRAME_MAX, v2_only: bool = False, count_max: int = READS_MAX
) -> Reads:
    """Cut whole frames from ``chunk[start:end]`` as long as they are plain reads in one dialect, ``count_max`` at most.

    Args:
        frame_max: limit of a frame with its length field.
        v2_only: this connection has spoken v2 before: v3 frames are no plain reads.

    Raises:
        ValueError: ``start`` or ``end`` lie outside the chunk.
    """
    data = bytes(view_of(chunk, start, end)[start:end])
    ledger_ids, entry_ids, txns, ends = array("q"), array("q"), array("Q"), array("q")
    dialect, at = 0, 0
    while len(ends) < count_max and (stop := _frame_end(data, at, frame_max)):
        found = _plain_read(data, at + 4, stop, v2_only)
        if found is None or (dialect and found[0] != dialect):
            break
        dialect, ledger_id, entry_id, txn = found
        ledger_ids.append(ledger_id)
        entry_ids.append(entry_id)
        txns.append(txn)
        ends.append(start + stop)
        at = stop
    return Reads(dialect == Dialect.V2, ledger_ids, entry_ids, txns, ends)


def _plain_read(data: bytes, body: int, stop: int, v2_only: bool) -> tuple[int, int, int, int] | None:
    """(dialect, ledger id, entry id, txn) of the plain read in ``data[body:stop]``."""
    if data[body] == Dialect.V2:
        if stop - body != _V2_REQUEST.size or not data.startswith(_WORD, body):
            return None
        _, ledger_id, entry_id = _V2_REQUEST.unpack_from(data, body)
        return (Dialect.V2, ledger_id, entry_id, 0) if ledger_id >= 0 and entry_id >= 0 else None
    if v2_only or (match := _V3_REQUEST.fullmatch(data, body, stop)) is None:
        return None
    header_size, header, txn, size, request, ledger, entry = match.groups()
    if header_size[0] != len(header) or size[0] != len(request):
        return None
    return Dialect.V3, value_of(ledger), value_of(entry), value_of(txn)


# -- replies, on the bookie ------------------------------------------------------------------------------


def answer_reads(
    reads: Reads, i0: int, count: int, records: Buffer, step: int, lac: int, frame_max: int = FRAME_MAX
) -> Answers:
    """The replies to the reads ``i0 .. i0 + count - 1``, each from its record, which begins at a multiple of ``step``.

    Every record's crc, ledger id and entry id are verified (B7). Stops before a read whose record is not whole within
    ``step`` bytes, is not what it must be, or whose reply is no frame of ``frame_max`` bytes. ``lac``: what v3 replies
    carry besides the entry.

    Raises:
        ValueError: reads or records that are not there.
    """
    check_bounds(len(reads.ends), i0, i0 + count)
    view = view_of(records, 0, count * step)
    check_bounds(step, RECORD_HEADER, step)
    out = bytearray()
    largest = 0
    for k in range(count):
        ledger_id, entry_id, txn = reads.ledger_ids[i0 + k], reads.entry_ids[i0 + k], reads.txns[i0 + k]
        entry = read_record(view[k * step : (k + 1) * step], 0, ledger_id, entry_id)
        if entry is None:
            return Answers(bytes(out), k, largest)
        body = _found(reads.v2, ledger_id, entry_id, txn, entry, lac)
        if len(body) + 4 > frame_max:
            return Answers(bytes(out), k, largest)
        largest = max(largest, len(entry))
        out += _framed(body)
    return Answers(bytes(out), count, largest)


def _found(v2: bool, ledger_id: int, entry_id: int, txn: int, entry: bytes, lac: int) -> bytes:
    if v2:
        return _V2_REPLY.pack(_WORD, 0, ledger_id, entry_id) + entry
    ids = b"\x08\x00\x10" + put_varint(ledger_id) + b"\x18" + put_varint(entry_id)
    reply = ids + b"\x22" + put_varint(len(entry)) + entry + b"\x28" + put_varint(lac & _U64)
    return _header(txn) + b"\x10\x00\xa2\x06" + put_varint(len(reply)) + reply


# -- replies, on the client ------------------------------------------------------------------------------


def split_read_replies(
    chunk: Buffer, start: int, end: int, frame_max: int = FRAME_MAX, v2: bool = False
) -> ReadReplies:
    """Cut whole frames from ``chunk[start:end]`` as long as they are replies, in the dialect, that hold their entry.

    What the entries hold is not looked at: see :func:`unseal_replies`.

    Raises:
        ValueError: ``start`` or ``end`` lie outside the chunk.
    """
    data = bytes(view_of(chunk, start, end)[start:end])
    txns, ledger_ids, entry_ids, lacs = array("Q"), array("q"), array("q"), array("q")
    begins, ends = array("q"), array("q")
    at = 0
    while stop := _frame_end(data, at, frame_max):
        found = _v2_found(data, at + 4, stop) if v2 else _v3_found(data, at + 4, stop)
        if found is None:
            break
        txn, ledger_id, entry_id, lac, begin, entry_end = found
        txns.append(txn)
        ledger_ids.append(ledger_id)
        entry_ids.append(entry_id)
        lacs.append(lac)
        begins.append(start + begin)
        ends.append(start + entry_end)
        at = stop
    return ReadReplies(start + at, txns, ledger_ids, entry_ids, lacs, begins, ends)


_Parts = tuple[int, int, int, int, int, int]
"""(txn, ledger id, entry id, LAC, where the entry begins, where it ends)."""


def _v2_found(data: bytes, body: int, stop: int) -> _Parts | None:
    if stop - body < _V2_REPLY.size:
        return None
    word, status, ledger_id, entry_id = _V2_REPLY.unpack_from(data, body)
    if word != _WORD or status != 0 or ledger_id < 0 or entry_id < 0:
        return None
    return 0, ledger_id, entry_id, NO_LAC, body + _V2_REPLY.size, stop


def _v3_found(data: bytes, body: int, stop: int) -> _Parts | None:
    match = _V3_REPLY.match(data, body, stop)
    if match is None:
        return None
    header_size, header, txn, size, ledger, entry, entry_size = match.groups()
    entry_end = match.end() + value_of(entry_size)
    if header_size[0] != len(header) or value_of(size) != stop - match.end(4) or entry_end > stop:
        return None
    lac = NO_LAC
    if entry_end < stop:
        behind = _LAC.fullmatch(data, entry_end, stop)
        if behind is None:
            return None
        lac = value_of(behind[1])
        lac -= 1 << 64 if lac > INT64_MAX else 0
        if lac == NO_LAC:
            return None
    return value_of(txn), value_of(ledger), value_of(entry), lac, match.end(), entry_end


def unseal_replies(
    chunk: Buffer,
    replies: ReadReplies,
    picked: Sequence[int],
    ledger_id: int,
    entry_ids: Sequence[int],
    digest: int,
    mac_key: bytes = b"",
) -> tuple[list[bytes | None], int]:
    """The payloads of the replies ``picked``, which are to hold ``entry_ids`` of the ledger, and the highest LAC that
    they tell of. None for a payload: digest, ledger or entry id are not as they must be (L5); nor does its LAC count.

    Raises:
        ValueError: no such digest, no such reply, not as many entries as replies.
    """
    if digest not in DIGEST_SIZES or len(picked) != len(entry_ids):
        raise ValueError(f"digest {digest}; {len(picked)} replies, {len(entry_ids)} entries")
    view = view_of(chunk, 0, len(chunk))
    payloads: list[bytes | None] = []
    highest = NO_LAC
    for i, entry_id in zip(picked, entry_ids, strict=True):
        check_bounds(len(replies.ends), i, i + 1)
        check_bounds(len(view), replies.begins[i], replies.ends[i])
        found = _unsealed(view[replies.begins[i] : replies.ends[i]], ledger_id, entry_id, digest, mac_key)
        if found is None:
            payloads.append(None)
            continue
        payloads.append(found[0])
        highest = max(highest, found[1], replies.lacs[i])
    return payloads, highest


def _unsealed(
    entry: memoryview, ledger_id: int, entry_id: int, digest: int, mac_key: bytes
) -> tuple[bytes, int] | None:
    """(payload, LAC) of a sealed entry."""
    at = ENTRY_HEADER + DIGEST_SIZES[digest]
    if len(entry) < at:
        return None
    header, payload = entry[:ENTRY_HEADER], entry[at:]
    own_ledger, own_entry, lac, _ = HEADER.unpack(header)
    if (own_ledger, own_entry) != (ledger_id, entry_id):
        return None
    if not hmac.compare_digest(digest_of(digest, mac_key, header, payload), entry[ENTRY_HEADER:at]):
        return None
    return bytes(payload), lac


# -- frames ----------------------------------------------------------------------------------------------


def _frame_end(data: bytes, at: int, frame_max: int) -> int:
    """Where the frame at ``at`` ends; 0 if it is not whole, or impossible."""
    if len(data) - at < 4:
        return 0
    (length,) = U32.unpack_from(data, at)
    return at + 4 + length if 0 < length <= min(len(data) - at, frame_max) - 4 else 0


def _header(txn: int) -> bytes:
    inner = b"\x08\x03\x10\x01\x18" + put_varint(txn)
    return bytes((0x0A, len(inner))) + inner


def _framed(body: bytes) -> bytes:
    return U32.pack(len(body)) + body
