"""Plain adds and their replies, whole runs at a time, in Python. The bytes are drawn in ``frames.py``."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Final

from bookkeeper.codec.pure.checksums import DIGEST_SIZES, digest_of
from bookkeeper.codec.pure.frames import (
    DEFERRED,
    HEADER,
    INT64_MAX,
    RECOVERY,
    U32,
    V2_ADD,
    V2_RECOVERY_ADD,
    V3_ADD,
    Plain,
    add_reply,
    check_bounds,
    impossible,
    plain_add,
    plain_reply,
    put_varint,
    view_of,
)
from bookkeeper.codec.pure.records import place_record, record_header
from bookkeeper.codec.shapes import (
    ENTRY_HEADER,
    FRAME_MAX,
    KEY_SIZE,
    RECORD_HEADER,
    STREAM_SHIFT,
    Adds,
    Dialect,
    Payloads,
    Replies,
    ReplyRun,
    Run,
)
from bookkeeper.seams import Buffer

_V2_FIRST: Final = 8
"""A body that begins with a byte below 8 is no protobuf message (field numbers begin at 1): it is v2."""
_ENTRY_MASK: Final = (1 << STREAM_SHIFT) - 1
PAYLOAD_MAX: Final = 1 << 30
"""Bytes that one payload may have; the limit of frames is the caller's."""
_LENGTH_MAX: Final = 1 << 62
_DIALECTS: Final = (Dialect.V2, Dialect.V3)  # made once: to look a member up in its class costs more


# -- adds, on the bookie ---------------------------------------------------------------------------------


class _SplitAdds:
    """What one call of ``split_adds`` has found: adds, where each ends, and runs of neighbours.

    A run ends where ledger, key or flag change, or the ids do not ascend.
    """

    __slots__ = (
        "_ack_end",
        "_acks",
        "_contiguous",
        "_deferred",
        "_i0",
        "_key",
        "_lac",
        "_last",
        "_ledger_id",
        "_records",
        "_recovery",
        "_room",
        "ack_ends",
        "entry_ids",
        "record_end",
        "record_ends",
        "runs",
    )

    def __init__(self, room: memoryview | None, record_start: int) -> None:
        """Records go into ``room`` from ``record_start`` on; without room they are kept until :meth:`records`."""
        self._room = room
        self._records: list[bytes] = []
        self._acks: list[bytes] = []
        self._ack_end = 0
        self.record_end = record_start
        self.record_ends, self.ack_ends, self.entry_ids = array("q"), array("q"), array("q")
        self.runs: list[Run] = []
        self._key = b""
        self._ledger_id = self._last = self._lac = self._i0 = 0
        self._contiguous = True
        self._deferred = self._recovery = False

    def add(self, plain: Plain) -> bool:
        """Take one add. False: there is no room for its record."""
        record_end = self.record_end + RECORD_HEADER + len(plain.entry)
        if self._room is None:
            self._records += (record_header(plain.entry), plain.entry)
        elif record_end > len(self._room):
            return False
        else:
            place_record(self._room, self.record_end, plain.entry)
        self.record_end = record_end
        self._ack_end += len(plain.ack)
        self._acks.append(plain.ack)
        self._join_run(plain)
        self.entry_ids.append(plain.entry_id)
        self.record_ends.append(record_end)
        self.ack_ends.append(self._ack_end)
        return True

    def _join_run(self, plain: Plain) -> None:
        entry_id = plain.entry_id
        if (
            plain.ledger_id == self._ledger_id
            and entry_id > self._last
            and plain.key == self._key
            and plain.deferred == self._deferred
            and plain.recovery == self._recovery
        ):
            if entry_id != self._last + 1:
                self._contiguous = False
            if plain.lac > self._lac:
                self._lac = plain.lac
        else:
            self.close_run()
            self._key, self._ledger_id, self._lac = plain.key, plain.ledger_id, plain.lac
            self._i0, self._contiguous = len(self.entry_ids), True
            self._deferred, self._recovery = plain.deferred, plain.recovery
        self._last = entry_id

    def close_run(self) -> None:
        if self._key:
            end = len(self.entry_ids)
            flags = self._deferred, self._recovery
            self.runs.append(Run(self._ledger_id, self._key, self._i0, end, self._contiguous, self._lac, *flags))
            self._key = b""

    def records(self) -> bytes:
        return b"".join(self._records)

    def acks(self) -> bytes:
        return b"".join(self._acks)


def split_adds(
    chunk: Buffer,
    start: int,
    end: int,
    frame_max: int = FRAME_MAX,
    v2_only: bool = False,
    out: bytearray | memoryview | None = None,
    out_start: int = 0,
) -> Adds:
    """Cut whole frames from ``chunk[start:end]``; plain adds become disk records, replies and runs.

    A plain add is v2 version 2 with flags 0 or RECOVERY_ADD, or v3 of the one shape header{3, ADD_ENTRY, txn} +
    addRequest{ledger, entry, 20-byte key, body}, with or without one of writeFlags{DEFERRED_SYNC} and
    flag{RECOVERY_ADD} behind the body; ids not negative and equal to the body's, body of at least 32 bytes. Everything
    else is reported in ``slow``.

    Args:
        frame_max: limit of a frame with its length field.
        v2_only: this connection has spoken v2 before (``Adds.v2`` of the call before): v3 frames are slow.
        out: write records here from ``out_start`` on (an aligned journal buffer), instead of into new bytes. It
            should have room for ``frame_max + 8`` bytes, or the largest add never fits.

    Raises:
        ValueError: ``start``, ``end`` or ``out_start`` lie outside their buffers.
    """
    data = bytes(view_of(chunk, start, end)[start:end])
    room = None if out is None else memoryview(out)
    if room is not None:
        check_bounds(len(room), out_start, len(room))
    record_start = 0 if room is None else out_start
    found = _SplitAdds(room, record_start)
    slow: list[tuple[int, int]] = []
    slow_after: list[int] = []
    v2, full, error = v2_only, False, None
    at, n = 0, len(data)
    while n - at >= 4:
        (length,) = U32.unpack_from(data, at)
        if length == 0 or length + 4 > frame_max:
            error = impossible(length, frame_max)
            break
        body, stop = at + 4, at + 4 + length
        if stop > n:
            break
        plain = plain_add(data, body, stop, v2)
        if plain is None:
            found.close_run()
            slow.append((start + body, start + stop))
            slow_after.append(len(found.runs))
            v2 = v2 or data[body] < _V2_FIRST
        elif found.add(plain):
            v2 = v2 or plain.v2
        else:
            full = True
            break
        at = stop
    found.close_run()
    return Adds(
        used=start + at,
        records=found.records() if out is None else out,
        record_start=record_start,
        record_ends=found.record_ends,
        acks=found.acks(),
        ack_ends=found.ack_ends,
        entry_ids=found.entry_ids,
        runs=found.runs,
        slow=slow,
        slow_after=slow_after,
        v2=v2,
        full=full,
        error=error,
    )


def fail_acks(acks: Buffer, ack_ends: array[int], i0: int, i1: int, status: int) -> bytes:
    """The replies ``i0 .. i1 - 1`` of ``Adds.acks`` with ``status`` (neutral) instead of success.

    Raises:
        KeyError: no such status.
    """
    data = bytes(acks)
    out = bytearray()
    at = ack_ends[i0 - 1] if i0 else 0
    for stop in ack_ends[i0:i1]:
        parts = plain_reply(data, at + 4, stop)
        if parts is None:
            raise ValueError(f"no reply to a plain add at {at}")
        txn, ledger_id, entry_id, _ = parts
        out += add_reply(txn, ledger_id, entry_id, status)
        at = stop
    return bytes(out)


# -- adds, on the client ---------------------------------------------------------------------------------


def encode_adds(
    dialect: int,
    ledger_id: int,
    first: int,
    payloads: Payloads,
    lac: int,
    length_before: int,
    master_key: bytes,
    digest: int,
    mac_key: bytes = b"",
    txn_base: int = 0,
    deferred: bool = False,
    apart: bool = False,
) -> tuple[bytes, array[int]]:
    """Frames of consecutive plain adds and where each ends (array('q')); the same bytes go to every bookie.

    Args:
        length_before: payload bytes of the ledger before entry ``first``.
        digest: number of the digest kind (:class:`~bookkeeper.codec.shapes.Digest`).
        mac_key: SHA1("mac" + password); HMAC only.
        txn_base: v3: ``stream << 40``; entry e travels under ``txn_base | e mod 2**40``.
        deferred: v3: flagged DEFERRED_SYNC (W11).
        apart: leave the payloads out. Each frame lacks its end then, which is its payload: whoever sends it sends the
            payload behind it, and large ones need not be copied. Not with ``deferred``, whose flag comes last.

    Raises:
        ValueError: a key that is not 20 bytes, negative ids, no such dialect or digest, deferred v2, deferred and
            apart.
    """
    check_encoding(
        dialect, ledger_id, first, payloads, lac, length_before, master_key, digest, txn_base, deferred, apart
    )
    tail = DEFERRED if deferred else b""
    out = bytearray()
    ends = array("q")
    length, digest_size = length_before, DIGEST_SIZES[digest]
    ledger_field = b"\x08" + put_varint(ledger_id) + b"\x10"
    key_field = b"\x1a\x14" + master_key + b"\x22"
    for entry_id, payload in enumerate(payloads, first):
        body = memoryview(payload).cast("B")
        if len(body) > PAYLOAD_MAX:
            raise ValueError(f"a payload of {len(body)} bytes")
        length += len(body)
        header = HEADER.pack(ledger_id, entry_id, lac, length)
        n = ENTRY_HEADER + digest_size + len(body)
        if dialect == Dialect.V2:
            out += U32.pack(24 + n) + V2_ADD + master_key
        else:
            txn = V3_ADD + put_varint(txn_base | entry_id & _ENTRY_MASK)
            request = ledger_field + put_varint(entry_id) + key_field + put_varint(n)
            size = len(request) + n + len(tail)
            inner = bytes((0x0A, len(txn))) + txn + b"\xaa\x06" + put_varint(size) + request
            out += U32.pack(len(inner) + n + len(tail)) + inner
        out += header
        out += digest_of(digest, mac_key, header, body)
        if not apart:
            out += body
            out += tail
        ends.append(len(out))
    return bytes(out), ends


def encode_recovery_adds(
    dialect: int,
    ledger_id: int,
    entry_ids: Sequence[int],
    entries: Sequence[Buffer],
    master_key: bytes,
    txn_base: int = 0,
) -> bytes:
    """Frames of recovery adds, one for each entry: as it is stored, from its header on, so nothing is computed anew.

    Raises:
        ValueError: a key that is not 20 bytes, negative ids, no such dialect, as many ids as entries are not there, or
            an entry is shorter than its header.
    """
    check_recovery_encoding(dialect, ledger_id, entry_ids, entries, master_key, txn_base)
    out = bytearray()
    ledger_field = b"\x08" + put_varint(ledger_id) + b"\x10"
    key_field = b"\x1a\x14" + master_key + b"\x22"
    for entry_id, entry in zip(entry_ids, entries, strict=True):
        n = len(entry)
        if n < ENTRY_HEADER or n > PAYLOAD_MAX or not 0 <= entry_id <= INT64_MAX:
            raise ValueError(f"entry {entry_id} of {n} bytes")
        if dialect == Dialect.V2:
            out += U32.pack(24 + n) + V2_RECOVERY_ADD + master_key
            out += entry
            continue
        txn = V3_ADD + put_varint(txn_base | entry_id & _ENTRY_MASK)
        request = ledger_field + put_varint(entry_id) + key_field + put_varint(n)
        size = len(request) + n + len(RECOVERY)
        inner = bytes((0x0A, len(txn))) + txn + b"\xaa\x06" + put_varint(size) + request
        out += U32.pack(len(inner) + n + len(RECOVERY)) + inner
        out += entry
        out += RECOVERY
    return bytes(out)


def check_recovery_encoding(
    dialect: int, ledger_id: int, entry_ids: Sequence[int], entries: Sequence[Buffer], master_key: bytes, txn_base: int
) -> None:
    """The arguments of ``encode_recovery_adds``, once per call.

    Raises:
        ValueError: one that cannot be encoded.
    """
    if dialect not in _DIALECTS or not 0 <= txn_base < 1 << 64:
        raise ValueError(f"no dialect {dialect}, or no transaction id {txn_base}")
    if not 0 <= ledger_id <= INT64_MAX or len(entry_ids) != len(entries):
        raise ValueError(f"ledger {ledger_id}, {len(entry_ids)} ids for {len(entries)} entries")
    if type(master_key) is not bytes or len(master_key) != KEY_SIZE:
        raise ValueError(f"a master key is {KEY_SIZE} bytes")


def check_encoding(
    dialect: int,
    ledger_id: int,
    first: int,
    payloads: Payloads,
    lac: int,
    length_before: int,
    master_key: bytes,
    digest: int,
    txn_base: int,
    deferred: bool = False,
    apart: bool = False,
) -> None:
    """The arguments of ``encode_adds``, once per call.

    Raises:
        ValueError: one that cannot be encoded.
    """
    if dialect not in _DIALECTS or digest not in DIGEST_SIZES:
        raise ValueError(f"no dialect {dialect}, or no digest {digest}")
    if not 0 <= ledger_id <= INT64_MAX or not 0 <= first <= INT64_MAX - len(payloads):
        raise ValueError(f"ledger {ledger_id}, entry {first}")
    if not -1 <= lac <= INT64_MAX or not 0 <= length_before <= _LENGTH_MAX or not 0 <= txn_base < 1 << 64:
        raise ValueError(f"LAC {lac}, length {length_before}, transaction id {txn_base}")
    if deferred and (apart or dialect != Dialect.V3):
        raise ValueError("v2 has no flag for deferred sync, and v3 has it behind the payload")
    if type(master_key) is not bytes or len(master_key) != KEY_SIZE:
        raise ValueError(f"a master key is {KEY_SIZE} bytes")


def split_add_replies(chunk: Buffer, start: int, end: int, frame_max: int = FRAME_MAX) -> Replies:
    """Cut whole frames from ``chunk[start:end]``; replies to streamed adds become runs, the rest is ``slow``.

    A reply that belongs to no stream (v3 transaction id below 2**40, or whose low 40 bits are not the entry id) and
    one with an unknown status is slow.

    Raises:
        ValueError: ``start`` or ``end`` lie outside the chunk.
    """
    data = bytes(view_of(chunk, start, end)[start:end])
    runs: list[ReplyRun] = []
    slow: list[tuple[int, int]] = []
    error = None
    head: tuple[int, int, int] | None = None
    first = many = 0
    at, n = 0, len(data)
    while n - at >= 4:
        (length,) = U32.unpack_from(data, at)
        if length == 0 or length + 4 > frame_max:
            error = impossible(length, frame_max)
            break
        body, stop = at + 4, at + 4 + length
        if stop > n:
            break
        at = stop
        parts = plain_reply(data, body, stop)
        if parts is None or (parts[0] >= 0 and not _is_streamed(parts[0], parts[2])):
            slow.append((start + body, start + stop))
            continue
        txn, ledger_id, entry_id, status = parts
        kind = (txn >> STREAM_SHIFT, ledger_id, status)
        if kind == head and entry_id == first + many:
            many += 1
            continue
        if head is not None:
            runs.append(ReplyRun(head[0], head[1], first, many, head[2]))
        head, first, many = kind, entry_id, 1
    if head is not None:
        runs.append(ReplyRun(head[0], head[1], first, many, head[2]))
    return Replies(start + at, runs, slow, error)


def _is_streamed(txn: int, entry_id: int) -> bool:
    return txn >> STREAM_SHIFT > 0 and txn & _ENTRY_MASK == entry_id & _ENTRY_MASK


def gather(data: Buffer, ends: array[int], indices: Sequence[int], start: int = 0) -> bytes:
    """The items ``indices`` of ``data`` in one piece; item 0 begins at ``start``.

    For E > Qw: the frames of a run that one bookie holds.

    Raises:
        ValueError: an index without an item, or ends that do not ascend within ``data``.
    """
    view = memoryview(data)
    out = bytearray()
    for i in indices:
        if not 0 <= i < len(ends):
            raise ValueError(f"item {i} of {len(ends)}")
        begin, stop = ends[i - 1] if i else start, ends[i]
        if not 0 <= begin <= stop <= len(view):
            raise ValueError(f"item {i} is {begin}..{stop} of {len(view)} bytes")
        out += view[begin:stop]
    return bytes(out)
