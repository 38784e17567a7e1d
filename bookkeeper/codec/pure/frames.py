"""Plain adds and their replies, byte by byte, for the codec in Python.

    v2 add    | 02 01 00 00 | master key: 20 | entry: >= 32 |
    v2 reply  | 02 01 00 00 | status: i32 | ledger id: i64 | entry id: i64 |
    v3 add    | 0a n | 08 03 10 02 18 txn | aa 06 n | 08 ledger 10 entry 1a 14 master key: 20 22 n entry: >= 32 |
              and behind the entry, if it may be answered before it is durable (writeFlags: DEFERRED_SYNC), | 28 01 |
              or, if it is a recovery add (flag: RECOVERY_ADD), | a0 06 01 |; in v2 its fourth byte is 02
    v3 reply  | 0a n | 08 03 10 02 18 txn | 10 status | aa 06 n | 08 status 10 ledger 18 entry |

Every frame has its length (u32) in front; v3's numbers are varints in their shortest form.
"""

from __future__ import annotations

import re
from struct import Struct
from typing import Final, NamedTuple

from bookkeeper.codec.shapes import ENTRY_HEADER, V3_STATUS
from bookkeeper.errors import MalformedFrameError
from bookkeeper.seams import Buffer

U32: Final = Struct(">I")
HEADER: Final = Struct(">qqqq")
V2_ADD: Final = b"\x02\x01\x00\x00"
V2_RECOVERY_ADD: Final = b"\x02\x01\x00\x02"
V3_ADD: Final = b"\x08\x03\x10\x02\x18"
DEFERRED: Final = b"\x28\x01"
"""Field 5 of an add request, ``writeFlags``: DEFERRED_SYNC."""
RECOVERY: Final = b"\xa0\x06\x01"
"""Field 100 of an add request, ``flag``: RECOVERY_ADD."""
INT64_MAX: Final = (1 << 63) - 1
_V2_REPLY: Final = Struct(">I4siqq")
_V2_OK: Final = b"\x00\x00\x00\x18" + V2_ADD + bytes(4)


# A varint in its shortest form: of up to 63 bits, of up to 64 bits.
_V63: Final = rb"([\x00-\x7f]|[\x80-\xff]{1,8}[\x01-\x7f])"
_V64: Final = rb"([\x00-\x7f]|[\x80-\xff]{1,8}[\x01-\x7f]|[\x80-\xff]{9}\x01)"
_V3_HEADER: Final = rb"\x0a(.)(\x08\x03\x10\x02\x18" + _V64 + rb")"
_V3_REQUEST: Final = re.compile(
    _V3_HEADER + rb"\xaa\x06" + _V63 + rb"\x08" + _V63 + rb"\x10" + _V63 + rb"\x1a\x14(.{20})\x22" + _V63, re.DOTALL
)
_V3_REPLY: Final = re.compile(
    _V3_HEADER + rb"\x10(.|..)\xaa\x06(.)(\x08\4\x10" + _V63 + rb"\x18" + _V63 + rb")", re.DOTALL
)


class Plain(NamedTuple):
    """The parts of a plain add, and its success reply (a whole frame)."""

    v2: bool
    deferred: bool
    ledger_id: int
    entry_id: int
    lac: int
    key: bytes
    entry: bytes
    ack: bytes
    recovery: bool = False


def plain_add(data: bytes, body: int, stop: int, v2: bool) -> Plain | None:
    """The add in ``data[body:stop]`` if it is a plain one; ``v2``: v3 is not spoken any more."""
    first = data[body]
    if first == 2:
        entry = data[body + 24 : stop]
        recovery = data.startswith(V2_RECOVERY_ADD, body)
        if len(entry) < ENTRY_HEADER or not (recovery or data.startswith(V2_ADD, body)):
            return None
        ledger_id, entry_id, lac, _ = HEADER.unpack_from(entry)
        if ledger_id < 0 or entry_id < 0:
            return None
        key = data[body + 4 : body + 24]
        return Plain(True, False, ledger_id, entry_id, lac, key, entry, _V2_OK + entry[:16], recovery)
    if first != 0x0A or v2:
        return None
    match = _V3_REQUEST.match(data, body, stop)
    if match is None:
        return None
    header_size, header, _, size, ledger, entry_number, key, body_size = match.groups()
    end = match.end() + value_of(body_size)
    deferred = end == stop - len(DEFERRED) and data.startswith(DEFERRED, end)
    recovery = end == stop - len(RECOVERY) and data.startswith(RECOVERY, end)
    entry = data[match.end() : end]
    if (
        len(entry) < ENTRY_HEADER
        or header_size[0] != len(header)
        or not (end == stop or deferred or recovery)
        or value_of(size) != stop - match.end(4)
    ):
        return None
    ledger_id, entry_id, lac, _ = HEADER.unpack_from(entry)
    if ledger_id != value_of(ledger) or entry_id != value_of(entry_number):
        return None
    reply = b"\x08\x00\x10" + ledger + b"\x18" + entry_number
    ack = _framed(b"\x0a" + header_size + header + b"\x10\x00\xaa\x06" + bytes((len(reply),)) + reply)
    return Plain(False, deferred, ledger_id, entry_id, lac, key, entry, ack, recovery)


def value_of(varint: bytes) -> int:
    """The number of a varint."""
    value = shift = 0
    for byte in varint:
        value |= (byte & 0x7F) << shift
        shift += 7
    return value


def _framed(body: bytes) -> bytes:
    return U32.pack(len(body)) + body


def put_varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def add_reply(txn: int, ledger_id: int, entry_id: int, status: int = 0) -> bytes:
    """A whole frame: the reply to a plain add; ``txn`` -1 is v2. ``status`` is neutral."""
    if txn < 0:
        return _V2_REPLY.pack(24, V2_ADD, status, ledger_id, entry_id)
    header = V3_ADD + put_varint(txn)
    number = put_varint(V3_STATUS[status])
    reply = b"\x08" + number + b"\x10" + put_varint(ledger_id) + b"\x18" + put_varint(entry_id)
    body = bytes((0x0A, len(header))) + header + b"\x10" + number + bytes((0xAA, 6, len(reply))) + reply
    return U32.pack(len(body)) + body


_STATUS_BYTES: Final = {put_varint(v3): neutral for neutral, v3 in V3_STATUS.items()}


def plain_reply(data: bytes, body: int, stop: int) -> tuple[int, int, int, int] | None:
    """(txn or -1 in v2, ledger id, entry id, neutral status) of a reply to a plain add."""
    if data[body] == 2:
        if stop - body != 24:
            return None
        _, word, status, ledger_id, entry_id = _V2_REPLY.unpack_from(data, body - 4)
        if word != V2_ADD or status not in V3_STATUS or ledger_id < 0 or entry_id < 0:
            return None
        return -1, ledger_id, entry_id, status
    match = _V3_REPLY.fullmatch(data, body, stop)
    if match is None:
        return None
    header_size, header, txn, number, size, reply, ledger, entry = match.groups()
    if header_size[0] != len(header) or size[0] != len(reply) or number not in _STATUS_BYTES:
        return None
    return value_of(txn), value_of(ledger), value_of(entry), _STATUS_BYTES[number]


def view_of(buffer: Buffer, start: int, end: int) -> memoryview:
    view = memoryview(buffer).cast("B")
    check_bounds(len(view), start, end)
    return view


def check_bounds(size: int, start: int, end: int) -> None:
    if not 0 <= start <= end <= size:
        raise ValueError(f"{start}..{end} of {size}")


def impossible(length: int, frame_max: int) -> MalformedFrameError:
    return MalformedFrameError(f"frame of {length} bytes; allowed are 1 to {frame_max - 4}")
