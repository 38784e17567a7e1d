# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# ruff: noqa: F821  (C types are declared, not assigned; imports follow the check for the compiler)
"""Plain adds and their replies, compiled: the same functions and results as ``pure/adds.py``.

HMAC digests go to the Python codec: the hash is their cost.

Only importable as the extension that ``setup.py`` builds.
"""

from __future__ import annotations

from array import array

import cython

if not cython.compiled:
    raise ImportError("bookkeeper.codec.native.adds is imported as a compiled extension only")

from cython.cimports.bookkeeper.codec.native.crc import bk_crc_init
from cython.cimports.bookkeeper.codec.native.primitives import (
    bytes_at,
    check_bounds,
    digest_size,
    get32,
    get64,
    longs,
    new_bytes,
    put32,
    put64,
    put_digest,
    put_header,
    put_record,
    put_varint,
    v3_header,
    varint,
    varint_size,
)
from cython.cimports.cpython import array as carray
from cython.cimports.cpython.buffer import Py_buffer, PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
from cython.cimports.libc.stdlib import free, realloc
from cython.cimports.libc.string import memcmp, memcpy

from bookkeeper.codec import pure
from bookkeeper.codec.pure.adds import PAYLOAD_MAX, check_encoding, check_recovery_encoding
from bookkeeper.codec.pure.frames import impossible
from bookkeeper.codec.shapes import FRAME_MAX, V3_STATUS, Adds, Replies, ReplyRun, Run

bk_crc_init()

_TEMPLATE: carray.array = array("q")
_new = tuple.__new__
_ADD = cython.declare(cython.uchar, 2)
"""ADD_ENTRY in protocol v3."""
_TXN_MASK = cython.declare(cython.ulonglong, (1 << 40) - 1)
"""As a C variable: a literal of more than 32 bits is a Python object to Cython, made and masked for every reply."""
_NEUTRAL = {v3: neutral for neutral, v3 in V3_STATUS.items()}

Add = cython.struct(
    ledger=cython.longlong,
    entry=cython.longlong,
    txn=cython.ulonglong,
    key=cython.Py_ssize_t,
    body=cython.Py_ssize_t,
    size=cython.Py_ssize_t,
    v3=cython.int,
    deferred=cython.int,
    recovery=cython.int,
)

Reply = cython.struct(
    ledger=cython.longlong,
    entry=cython.longlong,
    txn=cython.ulonglong,
    status=cython.int,
    v3=cython.int,
)


@cython.cfunc
@cython.exceptval(check=False)
def _plain_v3_add(
    p: cython.p_uchar, body: cython.Py_ssize_t, stop: cython.Py_ssize_t, add: cython.pointer(Add)
) -> cython.bint:
    value: cython.ulonglong = 0
    entry: cython.ulonglong = 0
    at: cython.Py_ssize_t = v3_header(p, body, stop, _ADD, cython.address(add.txn))
    if at < 0 or stop - at < 2 or p[at] != 0xAA or p[at + 1] != 6:
        return False
    at = varint(p, at + 2, stop, cython.address(value))
    if at < 0 or value != cython.cast(cython.ulonglong, stop - at) or at >= stop or p[at] != 8:
        return False
    at = varint(p, at + 1, stop, cython.address(value))
    if at < 0 or value >> 63 or at >= stop or p[at] != 0x10:
        return False
    at = varint(p, at + 1, stop, cython.address(entry))
    if at < 0 or entry >> 63 or stop - at < 24 or p[at] != 0x1A or p[at + 1] != 20 or p[at + 22] != 0x22:
        return False
    add.key = at + 2
    add.ledger = cython.cast(cython.longlong, value)
    add.entry = cython.cast(cython.longlong, entry)
    at = varint(p, at + 23, stop, cython.address(value))
    if at < 0 or stop - at < 32:
        return False
    add.size = stop - at
    add.deferred = 0
    add.recovery = 0
    if value != cython.cast(cython.ulonglong, stop - at):
        if stop - at < 34:
            return False
        if value == cython.cast(cython.ulonglong, stop - at - 2):
            if p[stop - 2] != 0x28 or p[stop - 1] != 1:
                return False
            add.size -= 2
            add.deferred = 1
        elif stop - at > 34 and value == cython.cast(cython.ulonglong, stop - at - 3):
            if p[stop - 3] != 0xA0 or p[stop - 2] != 6 or p[stop - 1] != 1:
                return False
            add.size -= 3
            add.recovery = 1
        else:
            return False
    if get64(p + at) != add.ledger or get64(p + at + 8) != add.entry:
        return False
    add.body = at
    add.v3 = 1
    return True


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _plain_add(
    p: cython.p_uchar,
    body: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    v2: cython.bint,
    add: cython.pointer(Add),
) -> cython.bint:
    if p[body] == 2:
        if stop - body < 56 or p[body + 1] != 1 or p[body + 2] != 0 or (p[body + 3] != 0 and p[body + 3] != 2):
            return False
        add.ledger = get64(p + body + 24)
        add.entry = get64(p + body + 32)
        add.txn = 0
        add.key = body + 4
        add.body = body + 24
        add.size = stop - body - 24
        add.v3 = 0
        add.deferred = 0
        add.recovery = p[body + 3] >> 1
        return add.ledger >= 0 and add.entry >= 0
    if p[body] == 0x0A and not v2:
        return _plain_v3_add(p, body, stop, add)
    return False


@cython.cfunc
@cython.exceptval(check=False)
def _plain_reply(
    p: cython.p_uchar, body: cython.Py_ssize_t, stop: cython.Py_ssize_t, reply: cython.pointer(Reply)
) -> cython.bint:
    """``reply.status`` is in the numbers of its dialect; ``v3`` tells which."""
    value: cython.ulonglong = 0
    outer: cython.ulonglong = 0
    at: cython.Py_ssize_t
    if p[body] == 2:
        if stop - body != 24 or p[body + 1] != 1 or p[body + 2] != 0 or p[body + 3] != 0:
            return False
        reply.status = cython.cast(cython.int, get32(p + body + 4))
        reply.ledger = get64(p + body + 8)
        reply.entry = get64(p + body + 16)
        reply.v3 = 0
        return reply.ledger >= 0 and reply.entry >= 0
    at = v3_header(p, body, stop, _ADD, cython.address(reply.txn))
    if at < 0 or p[at] != 0x10:
        return False
    at = varint(p, at + 1, stop, cython.address(outer))
    if at < 0 or outer > 0xFFFF or stop - at < 2 or p[at] != 0xAA or p[at + 1] != 6:
        return False
    at = varint(p, at + 2, stop, cython.address(value))
    if at < 0 or value != cython.cast(cython.ulonglong, stop - at) or at >= stop or p[at] != 8:
        return False
    at = varint(p, at + 1, stop, cython.address(value))
    if at < 0 or value != outer or at >= stop or p[at] != 0x10:
        return False
    at = varint(p, at + 1, stop, cython.address(value))
    if at < 0 or value >> 63 or at >= stop or p[at] != 0x18:
        return False
    reply.ledger = cython.cast(cython.longlong, value)
    at = varint(p, at + 1, stop, cython.address(value))
    if at != stop or value >> 63:
        return False
    reply.entry = cython.cast(cython.longlong, value)
    reply.status = cython.cast(cython.int, outer)
    reply.v3 = 1
    return True


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _ack_size(add: cython.pointer(Add)) -> cython.Py_ssize_t:
    """A success reply as a whole frame."""
    if not add.v3:
        return 28
    return 4 + 7 + varint_size(add.txn) + 2 + 3 + 4 + varint_size(add.ledger) + varint_size(add.entry)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put_ack(p: cython.p_uchar, add: cython.pointer(Add)) -> cython.p_uchar:
    n: cython.Py_ssize_t
    if not add.v3:
        put32(p, 24)
        put32(p + 4, 0x02010000)
        put32(p + 8, 0)
        put64(p + 12, add.ledger)
        put64(p + 20, add.entry)
        return p + 28
    put32(p, cython.cast(cython.uint, _ack_size(add) - 4))
    p = put_header(p + 4, _ADD, add.txn)
    n = 4 + varint_size(add.ledger) + varint_size(add.entry)
    p[0] = 0x10
    p[1] = 0
    p[2] = 0xAA
    p[3] = 6
    p[4] = cython.cast(cython.uchar, n)
    p[5] = 8
    p[6] = 0
    p[7] = 0x10
    p = put_varint(p + 8, add.ledger)
    p[0] = 0x18
    return put_varint(p + 1, add.entry)


@cython.final
@cython.cclass
class _Walk:
    """One call of split_adds: what the walk over the frames found, before anything is written."""

    adds: cython.pointer(Add)
    n: cython.Py_ssize_t
    room: cython.Py_ssize_t
    at: cython.Py_ssize_t
    records: cython.Py_ssize_t
    acks: cython.Py_ssize_t
    v2: cython.bint
    full: cython.bint
    runs: list
    slow: list
    slow_after: list
    error: object

    def __cinit__(self):
        self.adds = cython.NULL
        self.runs, self.slow, self.slow_after = [], [], []

    def __dealloc__(self):
        free(self.adds)

    @cython.cfunc
    def grow(self) -> cython.int:
        room: cython.Py_ssize_t = 2 * self.room if self.room else 64
        adds: cython.p_void = realloc(self.adds, room * cython.sizeof(Add))
        if adds == cython.NULL:
            raise MemoryError
        self.adds = cython.cast(cython.pointer(Add), adds)
        self.room = room
        return 0

    @cython.cfunc
    def close_run(self, p: cython.p_uchar, i0: cython.Py_ssize_t, contiguous: cython.bint) -> cython.int:
        """Adds ``i0 .. n - 1`` are a run."""
        first: cython.pointer(Add) = cython.address(self.adds[i0])
        lac: cython.longlong = get64(p + first.body + 16)
        other: cython.longlong
        i: cython.Py_ssize_t
        for i in range(i0 + 1, self.n):
            other = get64(p + self.adds[i].body + 16)
            if other > lac:
                lac = other
        key = PyBytes_FromStringAndSize(cython.cast(cython.p_char, p + first.key), 20)
        flags = bool(first.deferred), bool(first.recovery)
        self.runs.append(_new(Run, (first.ledger, key, i0, self.n, bool(contiguous), lac, *flags)))
        return 0

    @cython.cfunc
    def walk(
        self,
        p: cython.p_uchar,
        end: cython.Py_ssize_t,
        frame_max: cython.Py_ssize_t,
        out_room: cython.Py_ssize_t,
    ) -> cython.int:
        length: cython.Py_ssize_t
        body: cython.Py_ssize_t
        stop: cython.Py_ssize_t
        i0: cython.Py_ssize_t = -1
        contiguous: cython.bint = True
        add: cython.pointer(Add)
        last: cython.pointer(Add)
        while end - self.at >= 4:
            length = get32(p + self.at)
            if length == 0 or length + 4 > frame_max:
                self.error = impossible(length, frame_max)
                break
            body = self.at + 4
            if length > end - body:
                break
            stop = body + length
            if self.n == self.room:
                self.grow()
            add = cython.address(self.adds[self.n])
            if not _plain_add(p, body, stop, self.v2, add):
                if i0 >= 0:
                    self.close_run(p, i0, contiguous)
                    i0 = -1
                self.slow.append((body, stop))
                self.slow_after.append(len(self.runs))
                if p[body] < 8:
                    self.v2 = True
                self.at = stop
                continue
            if out_room >= 0 and add.size + 8 > out_room - self.records:
                self.full = True
                break
            if i0 >= 0:
                last = cython.address(self.adds[self.n - 1])
                if (
                    add.ledger != last.ledger
                    or add.entry <= last.entry
                    or add.deferred != last.deferred
                    or add.recovery != last.recovery
                    or memcmp(p + add.key, p + last.key, 20) != 0
                ):
                    self.close_run(p, i0, contiguous)
                    i0 = -1
                elif add.entry != last.entry + 1:
                    contiguous = False
            if i0 < 0:
                i0 = self.n
                contiguous = True
            if not add.v3:
                self.v2 = True
            self.records += 8 + add.size
            self.acks += _ack_size(add)
            self.n += 1
            self.at = stop
        if i0 >= 0:
            self.close_run(p, i0, contiguous)
        return 0


def split_adds(
    chunk,
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    frame_max: cython.Py_ssize_t = FRAME_MAX,
    v2_only: cython.bint = False,
    out=None,
    out_start: cython.Py_ssize_t = 0,
):
    buffer: Py_buffer
    room: Py_buffer
    PyObject_GetBuffer(chunk, cython.address(buffer), PyBUF_SIMPLE)
    try:
        check_bounds(buffer.len, start, end)
        if out is None:
            return _split_adds(
                cython.cast(cython.p_uchar, buffer.buf), start, end, frame_max, v2_only, None, cython.NULL, 0, -1
            )
        PyObject_GetBuffer(out, cython.address(room), PyBUF_WRITABLE)
        try:
            check_bounds(room.len, out_start, room.len)
            return _split_adds(
                cython.cast(cython.p_uchar, buffer.buf),
                start,
                end,
                frame_max,
                v2_only,
                out,
                cython.cast(cython.p_uchar, room.buf),
                out_start,
                room.len - out_start,
            )
        finally:
            PyBuffer_Release(cython.address(room))
    finally:
        PyBuffer_Release(cython.address(buffer))


@cython.cfunc
def _split_adds(
    p: cython.p_uchar,
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    frame_max: cython.Py_ssize_t,
    v2_only: cython.bint,
    out: object,
    to: cython.p_uchar,
    record_start: cython.Py_ssize_t,
    out_room: cython.Py_ssize_t,
):
    walk: _Walk = _Walk()
    walk.at = start
    walk.v2 = v2_only
    walk.walk(p, end, frame_max, out_room)
    records = out
    if out is None:
        records = new_bytes(walk.records)
        to = bytes_at(records)
    acks = new_bytes(walk.acks)
    record_ends: carray.array = carray.clone(_TEMPLATE, walk.n, False)
    ack_ends: carray.array = carray.clone(_TEMPLATE, walk.n, False)
    entry_ids: carray.array = carray.clone(_TEMPLATE, walk.n, False)
    _emit(
        p,
        walk.adds,
        walk.n,
        to,
        record_start,
        bytes_at(acks),
        record_ends.data.as_longlongs,
        ack_ends.data.as_longlongs,
        entry_ids.data.as_longlongs,
    )
    return _new(
        Adds,
        (
            walk.at,
            records,
            record_start,
            record_ends,
            acks,
            ack_ends,
            entry_ids,
            walk.runs,
            walk.slow,
            walk.slow_after,
            bool(walk.v2),
            bool(walk.full),
            walk.error,
        ),
    )


@cython.cfunc
@cython.exceptval(check=False)
def _emit(
    p: cython.p_uchar,
    adds: cython.pointer(Add),
    n: cython.Py_ssize_t,
    to: cython.p_uchar,
    at: cython.Py_ssize_t,
    acks: cython.p_uchar,
    record_ends: cython.p_longlong,
    ack_ends: cython.p_longlong,
    entry_ids: cython.p_longlong,
) -> cython.void:
    i: cython.Py_ssize_t
    ack: cython.p_uchar = acks
    for i in range(n):
        put_record(to + at, p + adds[i].body, adds[i].size)
        at += 8 + adds[i].size
        ack = _put_ack(ack, cython.address(adds[i]))
        record_ends[i] = at
        ack_ends[i] = ack - acks
        entry_ids[i] = adds[i].entry


def encode_adds(
    dialect,
    ledger_id,
    first,
    payloads,
    lac,
    length_before,
    master_key,
    digest,
    mac_key=b"",
    txn_base=0,
    deferred=False,
    apart=False,
):
    if digest == 2:
        rest = mac_key, txn_base, deferred, apart
        return pure.encode_adds(dialect, ledger_id, first, payloads, lac, length_before, master_key, digest, *rest)
    items: tuple = tuple(payloads)
    check_encoding(dialect, ledger_id, first, items, lac, length_before, master_key, digest, txn_base, deferred, apart)
    ends: carray.array = carray.clone(_TEMPLATE, len(items), False)
    v3: cython.bint = dialect == 3
    tail: cython.Py_ssize_t = -1 if apart else 2 if deferred else 0
    places: cython.p_longlong = ends.data.as_longlongs
    key: cython.p_uchar = bytes_at(master_key)
    out = new_bytes(_measure(items, v3, ledger_id, first, digest, txn_base, tail, places))
    to: cython.p_uchar = bytes_at(out)
    _encode(to, items, v3, ledger_id, first, lac, length_before, key, digest, txn_base, tail, places)
    return out, ends


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _request_size(ledger: cython.longlong, entry: cython.longlong, body: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Bytes of a v3 addRequest with a body of that size."""
    return 2 + varint_size(ledger) + varint_size(entry) + 23 + varint_size(body) + body


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _txn(base: cython.ulonglong, entry: cython.longlong) -> cython.ulonglong:
    return base | (cython.cast(cython.ulonglong, entry) & _TXN_MASK)


@cython.cfunc
def _payload_size(item: object) -> cython.Py_ssize_t:
    buffer: Py_buffer
    if type(item) is bytes:
        return len(cython.cast(bytes, item))
    PyObject_GetBuffer(item, cython.address(buffer), PyBUF_SIMPLE)
    n: cython.Py_ssize_t = buffer.len
    PyBuffer_Release(cython.address(buffer))
    return n


@cython.cfunc
def _measure(
    items: tuple,
    v3: cython.bint,
    ledger: cython.longlong,
    first: cython.longlong,
    digest: cython.int,
    txn_base: cython.ulonglong,
    tail: cython.Py_ssize_t,
    ends: cython.p_longlong,
) -> cython.Py_ssize_t:
    """Where each frame will end; behind the body come ``tail`` bytes, and below 0 its payload is left out."""
    most: cython.Py_ssize_t = PAYLOAD_MAX
    i: cython.Py_ssize_t
    n: cython.Py_ssize_t
    request: cython.Py_ssize_t
    at: cython.Py_ssize_t = 0
    for i in range(len(items)):
        n = _payload_size(items[i])
        if n > most:
            raise ValueError(f"a payload of {n} bytes")
        if tail < 0:
            at -= n
        n += 32 + digest_size(digest)
        if v3:
            request = _request_size(ledger, first + i, n) + (tail if tail > 0 else 0)
            at += 4 + 7 + varint_size(_txn(txn_base, first + i)) + 2 + varint_size(request) + request
        else:
            at += 28 + n
        ends[i] = at
    return at


@cython.cfunc
def _encode(
    out: cython.p_uchar,
    items: tuple,
    v3: cython.bint,
    ledger: cython.longlong,
    first: cython.longlong,
    lac: cython.longlong,
    length: cython.longlong,
    key: cython.p_uchar,
    digest: cython.int,
    txn_base: cython.ulonglong,
    tail: cython.Py_ssize_t,
    ends: cython.p_longlong,
) -> cython.int:
    i: cython.Py_ssize_t
    begin: cython.Py_ssize_t = 0
    buffer: Py_buffer
    for i in range(len(items)):
        item = items[i]
        if type(item) is bytes:
            length += len(cython.cast(bytes, item))
            _put_add(
                out + begin,
                ends[i] - begin,
                v3,
                ledger,
                first + i,
                lac,
                length,
                key,
                digest,
                txn_base,
                tail,
                bytes_at(item),
                len(cython.cast(bytes, item)),
            )
        else:
            PyObject_GetBuffer(item, cython.address(buffer), PyBUF_SIMPLE)
            try:
                length += buffer.len
                if not _put_add(
                    out + begin,
                    ends[i] - begin,
                    v3,
                    ledger,
                    first + i,
                    lac,
                    length,
                    key,
                    digest,
                    txn_base,
                    tail,
                    cython.cast(cython.p_uchar, buffer.buf),
                    buffer.len,
                ):
                    raise ValueError("a payload changed its size while it was encoded")
            finally:
                PyBuffer_Release(cython.address(buffer))
        begin = ends[i]
    return 0


@cython.cfunc
@cython.exceptval(check=False)
def _put_add(
    p: cython.p_uchar,
    room: cython.Py_ssize_t,
    v3: cython.bint,
    ledger: cython.longlong,
    entry: cython.longlong,
    lac: cython.longlong,
    length: cython.longlong,
    key: cython.p_uchar,
    digest: cython.int,
    txn_base: cython.ulonglong,
    tail: cython.Py_ssize_t,
    payload: cython.p_uchar,
    n: cython.Py_ssize_t,
) -> cython.bint:
    """One frame of exactly ``room`` bytes (as ``_measure`` has it); false (and nothing written) if it is not."""
    body: cython.Py_ssize_t = 32 + digest_size(digest) + n
    request: cython.Py_ssize_t
    txn: cython.ulonglong
    if tail < 0:
        room += n
    if v3:
        txn = _txn(txn_base, entry)
        request = _request_size(ledger, entry, body) + (tail if tail > 0 else 0)
        if room != 4 + 7 + varint_size(txn) + 2 + varint_size(request) + request:
            return False
        put32(p, cython.cast(cython.uint, room - 4))
        p = _put_request(p + 4, ledger, entry, key, txn, body, tail if tail > 0 else 0)
    else:
        if room != 28 + body:
            return False
        put32(p, cython.cast(cython.uint, room - 4))
        put32(p + 4, 0x02010000)
        memcpy(p + 8, key, 20)
        p += 28
    put64(p, ledger)
    put64(p + 8, entry)
    put64(p + 16, lac)
    put64(p + 24, length)
    put_digest(p + 32, digest, p, payload, n)
    if tail >= 0:
        memcpy(p + body - n, payload, n)
    if v3 and tail > 0:  # writeFlags: DEFERRED_SYNC
        p[body] = 0x28
        p[body + 1] = 1
    return True


def encode_recovery_adds(dialect, ledger_id, entry_ids, entries, master_key, txn_base=0):
    ids: tuple = tuple(entry_ids)
    items: tuple = tuple(entries)
    check_recovery_encoding(dialect, ledger_id, ids, items, master_key, txn_base)
    v3: cython.bint = dialect == 3
    ledger: cython.longlong = ledger_id
    base: cython.ulonglong = txn_base
    key: cython.p_uchar = bytes_at(master_key)
    most: cython.Py_ssize_t = PAYLOAD_MAX
    total: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    n: cython.Py_ssize_t
    entry: cython.longlong
    for i in range(len(items)):
        n = _payload_size(items[i])
        entry = ids[i]
        if n < 32 or n > most or entry < 0:
            raise ValueError(f"entry {entry} of {n} bytes")
        total += _recovery_size(v3, ledger, entry, n, base)
    out = new_bytes(total)
    p: cython.p_uchar = bytes_at(out)
    end: cython.p_uchar = p + total
    buffer: Py_buffer
    for i in range(len(items)):
        PyObject_GetBuffer(items[i], cython.address(buffer), PyBUF_SIMPLE)
        try:
            entry = ids[i]
            if buffer.len < 32 or _recovery_size(v3, ledger, entry, buffer.len, base) > end - p:
                raise ValueError("an entry changed its size while it was encoded")
            p = _put_recovery(p, v3, ledger, entry, key, base, cython.cast(cython.p_uchar, buffer.buf), buffer.len)
        finally:
            PyBuffer_Release(cython.address(buffer))
    if p != end:
        raise ValueError("an entry changed its size while it was encoded")
    return out


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _recovery_size(
    v3: cython.bint, ledger: cython.longlong, entry: cython.longlong, n: cython.Py_ssize_t, base: cython.ulonglong
) -> cython.Py_ssize_t:
    """Bytes of a recovery add's frame."""
    request: cython.Py_ssize_t
    if not v3:
        return 28 + n
    request = _request_size(ledger, entry, n) + 3
    return 4 + 7 + varint_size(_txn(base, entry)) + 2 + varint_size(request) + request


@cython.cfunc
@cython.exceptval(check=False)
def _put_recovery(
    p: cython.p_uchar,
    v3: cython.bint,
    ledger: cython.longlong,
    entry: cython.longlong,
    key: cython.p_uchar,
    base: cython.ulonglong,
    body: cython.p_uchar,
    n: cython.Py_ssize_t,
) -> cython.p_uchar:
    put32(p, cython.cast(cython.uint, _recovery_size(v3, ledger, entry, n, base) - 4))
    if not v3:
        put32(p + 4, 0x02010002)
        memcpy(p + 8, key, 20)
        memcpy(p + 28, body, n)
        return p + 28 + n
    p = _put_request(p + 4, ledger, entry, key, _txn(base, entry), n, 3)
    memcpy(p, body, n)
    p[n] = 0xA0  # flag: RECOVERY_ADD
    p[n + 1] = 6
    p[n + 2] = 1
    return p + n + 3


@cython.cfunc
@cython.exceptval(check=False)
def _put_request(
    p: cython.p_uchar,
    ledger: cython.longlong,
    entry: cython.longlong,
    key: cython.p_uchar,
    txn: cython.ulonglong,
    body: cython.Py_ssize_t,
    tail: cython.Py_ssize_t,
) -> cython.p_uchar:
    """A v3 add up to its entry of ``body`` bytes, behind which come ``tail`` more."""
    p = put_header(p, _ADD, txn)
    p[0] = 0xAA
    p[1] = 6
    p = put_varint(p + 2, _request_size(ledger, entry, body) + tail)
    p[0] = 8
    p = put_varint(p + 1, ledger)
    p[0] = 0x10
    p = put_varint(p + 1, entry)
    p[0] = 0x1A
    p[1] = 20
    memcpy(p + 2, key, 20)
    p[22] = 0x22
    return put_varint(p + 23, body)


def split_add_replies(
    chunk, start: cython.Py_ssize_t, end: cython.Py_ssize_t, frame_max: cython.Py_ssize_t = FRAME_MAX
):
    buffer: Py_buffer
    PyObject_GetBuffer(chunk, cython.address(buffer), PyBUF_SIMPLE)
    try:
        check_bounds(buffer.len, start, end)
        return _split_replies(cython.cast(cython.p_uchar, buffer.buf), start, end, frame_max)
    finally:
        PyBuffer_Release(cython.address(buffer))


@cython.cfunc
def _split_replies(p: cython.p_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t, frame_max: cython.Py_ssize_t):
    length: cython.Py_ssize_t
    n: cython.longlong = 0
    reply: Reply
    head: Reply
    head.ledger = head.entry = head.status = head.v3 = 0
    head.txn = reply.txn = 0
    stream: cython.longlong
    head_stream: cython.longlong = -1
    good: cython.bint
    runs: list = []
    slow: list = []
    error = None
    while end - at >= 4:
        length = get32(p + at)
        if length == 0 or length + 4 > frame_max:
            error = impossible(length, frame_max)
            break
        if length > end - at - 4:
            break
        good = _plain_reply(p, at + 4, at + 4 + length, cython.address(reply))
        if good:
            if not reply.v3:
                stream = -1
            else:
                stream = cython.cast(cython.longlong, reply.txn >> 40)
                if stream == 0 or _txn(0, reply.entry) != (reply.txn & _TXN_MASK):
                    good = False
        if good and (
            n == 0
            or stream != head_stream
            or reply.ledger != head.ledger
            or reply.entry - head.entry != n
            or reply.status != head.status
        ):
            if (reply.status in _NEUTRAL) if reply.v3 else (reply.status in V3_STATUS):
                if n:
                    _add_reply_run(runs, head_stream, head, n)
                head = reply
                head_stream = stream
                n = 1
            else:
                good = False
        elif good:
            n += 1
        if not good:
            slow.append((at + 4, at + 4 + length))
        at += 4 + length
    if n:
        _add_reply_run(runs, head_stream, head, n)
    return _new(Replies, (at, runs, slow, error))


@cython.cfunc
def _add_reply_run(runs: list, stream: cython.longlong, head: Reply, n: cython.longlong) -> cython.int:
    status = _NEUTRAL[head.status] if head.v3 else head.status
    runs.append(_new(ReplyRun, (stream, head.ledger, head.entry, n, status)))
    return 0


def gather(data, ends, indices, start: cython.Py_ssize_t = 0):
    picked: carray.array = array("q", indices)
    stops: carray.array = longs(ends)
    buffer: Py_buffer
    n: cython.Py_ssize_t = len(stops)
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    total: cython.Py_ssize_t = 0
    begin: cython.longlong
    stop: cython.longlong
    to: cython.p_uchar
    PyObject_GetBuffer(data, cython.address(buffer), PyBUF_SIMPLE)
    try:
        for k in range(len(picked)):
            i = picked.data.as_longlongs[k]
            if i < 0 or i >= n:
                raise ValueError(f"item {i} of {n}")
            begin = stops.data.as_longlongs[i - 1] if i else start
            stop = stops.data.as_longlongs[i]
            if not (0 <= begin <= stop <= buffer.len):
                raise ValueError(f"item {i} is {begin}..{stop} of {buffer.len} bytes")
            total += stop - begin
        out = new_bytes(total)
        to = bytes_at(out)
        for k in range(len(picked)):
            i = picked.data.as_longlongs[k]
            begin = stops.data.as_longlongs[i - 1] if i else start
            stop = stops.data.as_longlongs[i]
            memcpy(to, cython.cast(cython.p_uchar, buffer.buf) + begin, stop - begin)
            to += stop - begin
        return out
    finally:
        PyBuffer_Release(cython.address(buffer))
