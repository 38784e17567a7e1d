"""Plain adds and their replies, byte by byte, for the codec in Python.

    v2 add    | 02 01 00 00 | master key: 20 | entry: >= 32 |
    v2 reply  | 02 01 00 00 | status: i32 | ledger id: i64 | entry id: i64 |
    v3 add    | 0a n | 08 03 10 02 18 txn | aa 06 n | 08 ledger 10 entry 1a 14 master key: 20 22 n entry: >= 32 |
    v3 reply  | 0a n | 08 03 10 02 18 txn | 10 status | aa 06 n | 08 status 10 ledger 18 entry |

Every frame has its length (u32) in front; v3's numbers are varints.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from bookkeeper.errors import MalformedFrameError
from bookkeeper.runs.shapes import ENTRY_HEADER, KEY_SIZE, V3_STATUS
from bookkeeper.seams import Buffer

U32: Final = Struct(">I")
HEADER: Final = Struct(">qqqq")
V2_ADD: Final = b"\x02\x01\x00\x00"
V3_ADD: Final = b"\x08\x03\x10\x02\x18"
INT64_MAX: Final = (1 << 63) - 1
_V2_REPLY: Final = Struct(">I4siqq")
_FROM_V3: Final = {v3: neutral for neutral, v3 in V3_STATUS.items()}


class Plain(NamedTuple):
    """Where the parts of a plain add are, and its numbers. ``txn`` is -1 in v2."""

    txn: int
    ledger_id: int
    entry_id: int
    lac: int
    key_at: int
    entry_at: int


def plain_add(view: memoryview, body: int, stop: int, v2: bool) -> Plain | None:
    first = view[body]
    if first == 2:
        if stop - body < 24 + ENTRY_HEADER or view[body : body + 4].tobytes() != V2_ADD:
            return None
        ledger_id, entry_id, lac, _ = HEADER.unpack_from(view, body + 24)
        if ledger_id < 0 or entry_id < 0:
            return None
        return Plain(-1, ledger_id, entry_id, lac, body + 4, body + 24)
    if first == 0x0A and not v2:
        return _plain_v3_add(view, body, stop)
    return None


def _plain_v3_add(view: memoryview, body: int, stop: int) -> Plain | None:
    txn, at = _v3_header(view, body, stop)
    if txn < 0 or view[at : at + 2].tobytes() != b"\xaa\x06":
        return None
    length, at = _varint(view, at + 2, stop)
    if length != stop - at or view[at : at + 1].tobytes() != b"\x08":
        return None
    ledger_id, at = _varint(view, at + 1, stop)
    if view[at : at + 1].tobytes() != b"\x10":
        return None
    entry_id, at = _varint(view, at + 1, stop)
    if not 0 <= ledger_id <= INT64_MAX or not 0 <= entry_id <= INT64_MAX:
        return None
    key_at = at + 2
    at = key_at + KEY_SIZE
    if at >= stop or view[key_at - 2 : key_at].tobytes() != b"\x1a\x14" or view[at] != 0x22:
        return None
    length, at = _varint(view, at + 1, stop)
    if length != stop - at or length < ENTRY_HEADER:
        return None
    own_ledger_id, own_entry_id, lac, _ = HEADER.unpack_from(view, at)
    if own_ledger_id != ledger_id or own_entry_id != entry_id:
        return None
    return Plain(txn, ledger_id, entry_id, lac, key_at, at)


def _v3_header(view: memoryview, body: int, stop: int) -> tuple[int, int]:
    """The txn id of header{3, ADD_ENTRY, txn} and where it ends; -1 if the header is another."""
    if stop - body < 8 or view[body] != 0x0A or view[body + 2 : body + 7].tobytes() != V3_ADD:
        return -1, body
    txn, at = _varint(view, body + 7, stop)
    return (txn, at) if at == body + 2 + view[body + 1] and at < stop else (-1, body)


def _varint(view: memoryview, at: int, stop: int) -> tuple[int, int]:
    """An unsigned 64-bit varint and where it ends; -1 if it does not end before ``stop`` or is too large."""
    value = shift = 0
    while at < stop and shift < 70:
        byte = view[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value, at) if value < 1 << 64 else (-1, at)
        shift += 7
    return -1, at


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


def plain_reply(view: memoryview, body: int, stop: int) -> tuple[int, int, int, int] | None:
    """(txn or -1, ledger id, entry id, neutral status) of a reply to a plain add."""
    if view[body] == 2:
        if stop - body != 24:
            return None
        _, word, status, ledger_id, entry_id = _V2_REPLY.unpack_from(view, body - 4)
        if word != V2_ADD or status not in V3_STATUS or ledger_id < 0 or entry_id < 0:
            return None
        return -1, ledger_id, entry_id, status
    txn, at = _v3_header(view, body, stop)
    if txn < 0 or view[at] != 0x10:
        return None
    outer, at = _varint(view, at + 1, stop)
    if outer not in _FROM_V3 or view[at : at + 2].tobytes() != b"\xaa\x06":
        return None
    length, at = _varint(view, at + 2, stop)
    if length != stop - at or view[at : at + 1].tobytes() != b"\x08":
        return None
    inner, at = _varint(view, at + 1, stop)
    if inner != outer or view[at : at + 1].tobytes() != b"\x10":
        return None
    ledger_id, at = _varint(view, at + 1, stop)
    if view[at : at + 1].tobytes() != b"\x18":
        return None
    entry_id, at = _varint(view, at + 1, stop)
    if at != stop or not 0 <= ledger_id <= INT64_MAX or not 0 <= entry_id <= INT64_MAX:
        return None
    return txn, ledger_id, entry_id, _FROM_V3[outer]


def view_of(buffer: Buffer, start: int, end: int) -> memoryview:
    view = memoryview(buffer).cast("B")
    check_bounds(len(view), start, end)
    return view


def check_bounds(size: int, start: int, end: int) -> None:
    if not 0 <= start <= end <= size:
        raise ValueError(f"{start}..{end} of {size}")


def impossible(length: int, frame_max: int) -> MalformedFrameError:
    return MalformedFrameError(f"frame of {length} bytes; allowed are 1 to {frame_max - 4}")
