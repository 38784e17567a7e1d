# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# ruff: noqa: F821  (C types are declared, not assigned; imports follow the check for the compiler)
"""The run codec, compiled: typed Cython in pure-Python syntax. Same functions and results as ``pure.py``.

Only importable as the extension that ``setup.py`` builds. No state, no I/O, no locks; every length is checked before
it is followed, because the bytes come from anyone. HMAC digests go to the Python codec: the hash is their cost.
"""

from __future__ import annotations

from array import array

import cython

if not cython.compiled:
    raise ImportError("bookkeeper.codec.native is imported as a compiled extension only")

from cython.cimports.bookkeeper.codec.crc import bk_crc32, bk_crc32c, bk_crc32c_portable, bk_crc_init
from cython.cimports.cpython import array as carray
from cython.cimports.cpython.buffer import (
    Py_buffer,
    PyBUF_SIMPLE,
    PyBUF_WRITABLE,
    PyBuffer_Release,
    PyObject_GetBuffer,
)
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cython.cimports.libc.stdlib import free, realloc
from cython.cimports.libc.string import memcmp, memcpy

from bookkeeper.codec import pure
from bookkeeper.codec.frames import impossible
from bookkeeper.codec.pure import PAYLOAD_MAX, check_encoding
from bookkeeper.codec.shapes import (
    FRAME_MAX,
    NO_LAC,
    READS_MAX,
    RECORD_MAX,
    V3_STATUS,
    Adds,
    Answers,
    Entries,
    Packed,
    ReadReplies,
    Reads,
    Replies,
    ReplyRun,
    Run,
    Scan,
    Stop,
)

bk_crc_init()

_LONGS = array("q")
_TEMPLATE: carray.array = _LONGS
_ULONGS = array("Q")
_UNSIGNED: carray.array = _ULONGS
_NO_LAC = cython.declare(cython.longlong, NO_LAC)
_new = tuple.__new__
_TXN_MASK = cython.declare(cython.ulonglong, (1 << 40) - 1)
"""As a C variable: a literal of more than 32 bits is a Python object to Cython, made and masked for every reply."""
_READ = cython.declare(cython.uchar, 1)
_ADD = cython.declare(cython.uchar, 2)
"""Operations of protocol v3."""
_END, _ZERO, _PARTIAL, _DAMAGED, _BUDGET = Stop.END, Stop.ZERO, Stop.PARTIAL, Stop.DAMAGED, Stop.BUDGET
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
)

Reply = cython.struct(
    ledger=cython.longlong,
    entry=cython.longlong,
    txn=cython.ulonglong,
    status=cython.int,
    v3=cython.int,
)

Read = cython.struct(
    ledger=cython.longlong,
    entry=cython.longlong,
    txn=cython.ulonglong,
)

Found = cython.struct(
    ledger=cython.longlong,
    entry=cython.longlong,
    txn=cython.ulonglong,
    lac=cython.longlong,
    begin=cython.Py_ssize_t,
    end=cython.Py_ssize_t,
)


# -- bytes and numbers -----------------------------------------------------------------------------------


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _get32(p: cython.p_uchar) -> cython.uint:
    return (
        cython.cast(cython.uint, p[0]) << 24
        | cython.cast(cython.uint, p[1]) << 16
        | cython.cast(cython.uint, p[2]) << 8
        | cython.cast(cython.uint, p[3])
    )


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _get64(p: cython.p_uchar) -> cython.longlong:
    high: cython.ulonglong = _get32(p)
    return cython.cast(cython.longlong, high << 32 | _get32(p + 4))


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put32(p: cython.p_uchar, value: cython.uint) -> cython.void:
    p[0] = cython.cast(cython.uchar, value >> 24)
    p[1] = cython.cast(cython.uchar, value >> 16)
    p[2] = cython.cast(cython.uchar, value >> 8)
    p[3] = cython.cast(cython.uchar, value)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put64(p: cython.p_uchar, value: cython.longlong) -> cython.void:
    bits: cython.ulonglong = cython.cast(cython.ulonglong, value)
    _put32(p, cython.cast(cython.uint, bits >> 32))
    _put32(p + 4, cython.cast(cython.uint, bits))


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _varint(
    p: cython.p_uchar, at: cython.Py_ssize_t, stop: cython.Py_ssize_t, value: cython.pointer(cython.ulonglong)
) -> cython.Py_ssize_t:
    """Where the varint at ``at`` ends; -1 if not before ``stop``, over 64 bits, or not in its shortest form."""
    result: cython.ulonglong = 0
    shift: cython.int = 0
    byte: cython.ulonglong
    while at < stop and shift < 70:
        byte = p[at]
        at += 1
        if (shift == 63 and byte != 1) or (shift > 0 and byte == 0):
            return -1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            value[0] = result
            return at
        shift += 7
    return -1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _varint_size(value: cython.ulonglong) -> cython.Py_ssize_t:
    n: cython.Py_ssize_t = 1
    while value > 0x7F:
        value >>= 7
        n += 1
    return n


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put_varint(p: cython.p_uchar, value: cython.ulonglong) -> cython.p_uchar:
    while value > 0x7F:
        p[0] = cython.cast(cython.uchar, (value & 0x7F) | 0x80)
        value >>= 7
        p += 1
    p[0] = cython.cast(cython.uchar, value)
    return p + 1


@cython.cfunc
@cython.inline
def _bytes(n: cython.Py_ssize_t):
    """Uninitialised bytes to be filled at once."""
    return PyBytes_FromStringAndSize(cython.NULL, n)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _at(data: object) -> cython.p_uchar:
    return cython.cast(cython.p_uchar, PyBytes_AS_STRING(data))


@cython.cfunc
def _check(total: cython.Py_ssize_t, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
    if not (0 <= start <= end <= total):
        raise ValueError(f"{start}..{end} of {total}")
    return 0


@cython.cfunc
def _longs(values: object) -> carray.array:
    if not isinstance(values, array) or values.typecode != "q":
        raise TypeError("array('q') expected")
    return cython.cast(carray.array, values)


@cython.cfunc
def _ulongs(values: object) -> carray.array:
    if not isinstance(values, array) or values.typecode != "Q":
        raise TypeError("array('Q') expected")
    return cython.cast(carray.array, values)


# -- checksums -------------------------------------------------------------------------------------------


def crc32c(data, seed: cython.uint = 0):
    buffer: Py_buffer
    PyObject_GetBuffer(data, cython.address(buffer), PyBUF_SIMPLE)
    try:
        return bk_crc32c(seed, cython.cast(cython.p_uchar, buffer.buf), buffer.len)
    finally:
        PyBuffer_Release(cython.address(buffer))


def crc32c_portable(data, seed: cython.uint = 0):
    """The same without the CPU's instruction, for tests."""
    buffer: Py_buffer
    PyObject_GetBuffer(data, cython.address(buffer), PyBUF_SIMPLE)
    try:
        return bk_crc32c_portable(seed, cython.cast(cython.p_uchar, buffer.buf), buffer.len)
    finally:
        PyBuffer_Release(cython.address(buffer))


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _digest_size(digest: cython.int) -> cython.Py_ssize_t:
    return 8 if digest == 1 else 20 if digest == 2 else 4 if digest == 3 else 0


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put_digest(
    p: cython.p_uchar, digest: cython.int, header: cython.p_uchar, payload: cython.p_uchar, n: cython.Py_ssize_t
) -> cython.void:
    """CRC32 (1) and CRC32C (3); the others have none here."""
    if digest == 3:
        _put32(p, bk_crc32c(bk_crc32c(0, header, 32), payload, n))
    elif digest == 1:
        _put32(p, 0)
        _put32(p + 4, bk_crc32(bk_crc32(0, header, 32), payload, n))


# -- frames ----------------------------------------------------------------------------------------------


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _v3_header(
    p: cython.p_uchar,
    body: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    op: cython.uchar,
    txn: cython.pointer(cython.ulonglong),
) -> cython.Py_ssize_t:
    """Where header{3, op, txn} ends (before ``stop``); -1 if the body begins otherwise."""
    at: cython.Py_ssize_t
    if stop - body < 8 or p[body] != 0x0A:
        return -1
    if p[body + 2] != 8 or p[body + 3] != 3 or p[body + 4] != 0x10 or p[body + 5] != op or p[body + 6] != 0x18:
        return -1
    at = _varint(p, body + 7, stop, txn)
    if at < 0 or at >= stop or at != body + 2 + p[body + 1]:
        return -1
    return at


@cython.cfunc
@cython.exceptval(check=False)
def _plain_v3_add(
    p: cython.p_uchar, body: cython.Py_ssize_t, stop: cython.Py_ssize_t, add: cython.pointer(Add)
) -> cython.bint:
    value: cython.ulonglong = 0
    entry: cython.ulonglong = 0
    at: cython.Py_ssize_t = _v3_header(p, body, stop, _ADD, cython.address(add.txn))
    if at < 0 or stop - at < 2 or p[at] != 0xAA or p[at + 1] != 6:
        return False
    at = _varint(p, at + 2, stop, cython.address(value))
    if at < 0 or value != cython.cast(cython.ulonglong, stop - at) or at >= stop or p[at] != 8:
        return False
    at = _varint(p, at + 1, stop, cython.address(value))
    if at < 0 or value >> 63 or at >= stop or p[at] != 0x10:
        return False
    at = _varint(p, at + 1, stop, cython.address(entry))
    if at < 0 or entry >> 63 or stop - at < 24 or p[at] != 0x1A or p[at + 1] != 20 or p[at + 22] != 0x22:
        return False
    add.key = at + 2
    add.ledger = cython.cast(cython.longlong, value)
    add.entry = cython.cast(cython.longlong, entry)
    at = _varint(p, at + 23, stop, cython.address(value))
    if at < 0 or stop - at < 32:
        return False
    add.size = stop - at
    add.deferred = 0
    if value != cython.cast(cython.ulonglong, stop - at):
        if stop - at < 34 or value != cython.cast(cython.ulonglong, stop - at - 2):
            return False
        if p[stop - 2] != 0x28 or p[stop - 1] != 1:
            return False
        add.size -= 2
        add.deferred = 1
    if _get64(p + at) != add.ledger or _get64(p + at + 8) != add.entry:
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
        if stop - body < 56 or p[body + 1] != 1 or p[body + 2] != 0 or p[body + 3] != 0:
            return False
        add.ledger = _get64(p + body + 24)
        add.entry = _get64(p + body + 32)
        add.txn = 0
        add.key = body + 4
        add.body = body + 24
        add.size = stop - body - 24
        add.v3 = 0
        add.deferred = 0
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
        reply.status = cython.cast(cython.int, _get32(p + body + 4))
        reply.ledger = _get64(p + body + 8)
        reply.entry = _get64(p + body + 16)
        reply.v3 = 0
        return reply.ledger >= 0 and reply.entry >= 0
    at = _v3_header(p, body, stop, _ADD, cython.address(reply.txn))
    if at < 0 or p[at] != 0x10:
        return False
    at = _varint(p, at + 1, stop, cython.address(outer))
    if at < 0 or outer > 0xFFFF or stop - at < 2 or p[at] != 0xAA or p[at + 1] != 6:
        return False
    at = _varint(p, at + 2, stop, cython.address(value))
    if at < 0 or value != cython.cast(cython.ulonglong, stop - at) or at >= stop or p[at] != 8:
        return False
    at = _varint(p, at + 1, stop, cython.address(value))
    if at < 0 or value != outer or at >= stop or p[at] != 0x10:
        return False
    at = _varint(p, at + 1, stop, cython.address(value))
    if at < 0 or value >> 63 or at >= stop or p[at] != 0x18:
        return False
    reply.ledger = cython.cast(cython.longlong, value)
    at = _varint(p, at + 1, stop, cython.address(value))
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
    return 4 + 7 + _varint_size(add.txn) + 2 + 3 + 4 + _varint_size(add.ledger) + _varint_size(add.entry)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put_ack(p: cython.p_uchar, add: cython.pointer(Add)) -> cython.p_uchar:
    n: cython.Py_ssize_t
    if not add.v3:
        _put32(p, 24)
        _put32(p + 4, 0x02010000)
        _put32(p + 8, 0)
        _put64(p + 12, add.ledger)
        _put64(p + 20, add.entry)
        return p + 28
    _put32(p, cython.cast(cython.uint, _ack_size(add) - 4))
    p = _put_header(p + 4, _ADD, add.txn)
    n = 4 + _varint_size(add.ledger) + _varint_size(add.entry)
    p[0] = 0x10
    p[1] = 0
    p[2] = 0xAA
    p[3] = 6
    p[4] = cython.cast(cython.uchar, n)
    p[5] = 8
    p[6] = 0
    p[7] = 0x10
    p = _put_varint(p + 8, add.ledger)
    p[0] = 0x18
    return _put_varint(p + 1, add.entry)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put_header(p: cython.p_uchar, op: cython.uchar, txn: cython.ulonglong) -> cython.p_uchar:
    """header{3, op, txn}"""
    p[0] = 0x0A
    p[1] = cython.cast(cython.uchar, 5 + _varint_size(txn))
    p[2] = 8
    p[3] = 3
    p[4] = 0x10
    p[5] = op
    p[6] = 0x18
    return _put_varint(p + 7, txn)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put_record(p: cython.p_uchar, entry: cython.p_uchar, n: cython.Py_ssize_t) -> cython.void:
    _put32(p, cython.cast(cython.uint, n))
    memcpy(p + 8, entry, n)
    _put32(p + 4, bk_crc32c(bk_crc32c(0, p, 4), p + 8, n))


# -- adds, on the bookie ---------------------------------------------------------------------------------


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
        lac: cython.longlong = _get64(p + first.body + 16)
        other: cython.longlong
        i: cython.Py_ssize_t
        for i in range(i0 + 1, self.n):
            other = _get64(p + self.adds[i].body + 16)
            if other > lac:
                lac = other
        key = PyBytes_FromStringAndSize(cython.cast(cython.p_char, p + first.key), 20)
        self.runs.append(_new(Run, (first.ledger, key, i0, self.n, bool(contiguous), lac, bool(first.deferred))))
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
            length = _get32(p + self.at)
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
        _check(buffer.len, start, end)
        if out is None:
            return _split_adds(
                cython.cast(cython.p_uchar, buffer.buf), start, end, frame_max, v2_only, None, cython.NULL, 0, -1
            )
        PyObject_GetBuffer(out, cython.address(room), PyBUF_WRITABLE)
        try:
            _check(room.len, out_start, room.len)
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
        records = _bytes(walk.records)
        to = _at(records)
    acks = _bytes(walk.acks)
    record_ends: carray.array = carray.clone(_TEMPLATE, walk.n, False)
    ack_ends: carray.array = carray.clone(_TEMPLATE, walk.n, False)
    entry_ids: carray.array = carray.clone(_TEMPLATE, walk.n, False)
    _emit(
        p,
        walk.adds,
        walk.n,
        to,
        record_start,
        _at(acks),
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
        _put_record(to + at, p + adds[i].body, adds[i].size)
        at += 8 + adds[i].size
        ack = _put_ack(ack, cython.address(adds[i]))
        record_ends[i] = at
        ack_ends[i] = ack - acks
        entry_ids[i] = adds[i].entry


# -- adds, on the client ---------------------------------------------------------------------------------


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
):
    if digest == 2:
        return pure.encode_adds(
            dialect, ledger_id, first, payloads, lac, length_before, master_key, digest, mac_key, txn_base, deferred
        )
    items: tuple = tuple(payloads)
    check_encoding(dialect, ledger_id, first, items, lac, length_before, master_key, digest, txn_base, deferred)
    ends: carray.array = carray.clone(_TEMPLATE, len(items), False)
    v3: cython.bint = dialect == 3
    tail: cython.Py_ssize_t = 2 if deferred else 0
    total: cython.Py_ssize_t = _measure(items, v3, ledger_id, first, digest, txn_base, tail, ends.data.as_longlongs)
    out = _bytes(total)
    _encode(
        _at(out),
        items,
        v3,
        ledger_id,
        first,
        lac,
        length_before,
        _at(master_key),
        digest,
        txn_base,
        tail,
        ends.data.as_longlongs,
    )
    return out, ends


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _request_size(ledger: cython.longlong, entry: cython.longlong, body: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Bytes of a v3 addRequest with a body of that size."""
    return 2 + _varint_size(ledger) + _varint_size(entry) + 23 + _varint_size(body) + body


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
    """Where each frame will end; behind the body come ``tail`` bytes."""
    most: cython.Py_ssize_t = PAYLOAD_MAX
    i: cython.Py_ssize_t
    n: cython.Py_ssize_t
    request: cython.Py_ssize_t
    at: cython.Py_ssize_t = 0
    for i in range(len(items)):
        n = _payload_size(items[i])
        if n > most:
            raise ValueError(f"a payload of {n} bytes")
        n += 32 + _digest_size(digest)
        if v3:
            request = _request_size(ledger, first + i, n) + tail
            at += 4 + 7 + _varint_size(_txn(txn_base, first + i)) + 2 + _varint_size(request) + request
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
                _at(item),
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
    """One frame of exactly ``room`` bytes; false (and nothing written) if it is not."""
    body: cython.Py_ssize_t = 32 + _digest_size(digest) + n
    request: cython.Py_ssize_t
    txn: cython.ulonglong
    if v3:
        txn = _txn(txn_base, entry)
        request = _request_size(ledger, entry, body) + tail
        if room != 4 + 7 + _varint_size(txn) + 2 + _varint_size(request) + request:
            return False
        _put32(p, cython.cast(cython.uint, room - 4))
        p = _put_header(p + 4, _ADD, txn)
        p[0] = 0xAA
        p[1] = 6
        p = _put_varint(p + 2, request)
        p[0] = 8
        p = _put_varint(p + 1, ledger)
        p[0] = 0x10
        p = _put_varint(p + 1, entry)
        p[0] = 0x1A
        p[1] = 20
        memcpy(p + 2, key, 20)
        p[22] = 0x22
        p = _put_varint(p + 23, body)
    else:
        if room != 28 + body:
            return False
        _put32(p, cython.cast(cython.uint, room - 4))
        _put32(p + 4, 0x02010000)
        memcpy(p + 8, key, 20)
        p += 28
    _put64(p, ledger)
    _put64(p + 8, entry)
    _put64(p + 16, lac)
    _put64(p + 24, length)
    _put_digest(p + 32, digest, p, payload, n)
    memcpy(p + body - n, payload, n)
    if v3 and tail:  # writeFlags: DEFERRED_SYNC
        p[body] = 0x28
        p[body + 1] = 1
    return True


def split_add_replies(
    chunk, start: cython.Py_ssize_t, end: cython.Py_ssize_t, frame_max: cython.Py_ssize_t = FRAME_MAX
):
    buffer: Py_buffer
    PyObject_GetBuffer(chunk, cython.address(buffer), PyBUF_SIMPLE)
    try:
        _check(buffer.len, start, end)
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
        length = _get32(p + at)
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
    stops: carray.array = _longs(ends)
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
        out = _bytes(total)
        to = _at(out)
        for k in range(len(picked)):
            i = picked.data.as_longlongs[k]
            begin = stops.data.as_longlongs[i - 1] if i else start
            stop = stops.data.as_longlongs[i]
            memcpy(to, cython.cast(cython.p_uchar, buffer.buf) + begin, stop - begin)
            to += stop - begin
        return out
    finally:
        PyBuffer_Release(cython.address(buffer))


# -- records, on disk ------------------------------------------------------------------------------------


def record(entry):
    buffer: Py_buffer
    PyObject_GetBuffer(entry, cython.address(buffer), PyBUF_SIMPLE)
    try:
        out = _bytes(8 + buffer.len)
        _put_record(_at(out), cython.cast(cython.p_uchar, buffer.buf), buffer.len)
        return out
    finally:
        PyBuffer_Release(cython.address(buffer))


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _has_crc(p: cython.p_uchar, n: cython.Py_ssize_t) -> cython.bint:
    """Of a whole record at ``p`` whose entry has ``n`` bytes."""
    return _get32(p + 4) == bk_crc32c(bk_crc32c(0, p, 4), p + 8, n)


def read_record(buffer, offset: cython.Py_ssize_t, ledger_id: cython.longlong, entry_id: cython.longlong):
    data: Py_buffer
    p: cython.p_uchar
    n: cython.Py_ssize_t
    PyObject_GetBuffer(buffer, cython.address(data), PyBUF_SIMPLE)
    try:
        if offset < 0 or offset > data.len - 8:
            return None
        p = cython.cast(cython.p_uchar, data.buf) + offset
        n = _get32(p)
        if n < (32 if entry_id >= 0 else 16) or n > data.len - offset - 8 or not _has_crc(p, n):
            return None
        if _get64(p + 8) != ledger_id or _get64(p + 16) != entry_id:
            return None
        return PyBytes_FromStringAndSize(cython.cast(cython.p_char, p + 8), n)
    finally:
        PyBuffer_Release(cython.address(data))


def pack_entries(
    buffer, offsets, ledger_id: cython.longlong, first: cython.longlong, size_budget, at_least: cython.Py_ssize_t = 1
):
    places: carray.array = _longs(offsets)
    budget: cython.longlong = min(max(size_budget, -1), 1 << 62)
    data: Py_buffer
    PyObject_GetBuffer(buffer, cython.address(data), PyBUF_SIMPLE)
    try:
        return _pack(
            cython.cast(cython.p_uchar, data.buf),
            data.len,
            places.data.as_longlongs,
            len(places),
            ledger_id,
            first,
            budget,
            at_least,
        )
    finally:
        PyBuffer_Release(cython.address(data))


@cython.cfunc
def _pack(
    p: cython.p_uchar,
    total: cython.Py_ssize_t,
    places: cython.p_longlong,
    count: cython.Py_ssize_t,
    ledger: cython.longlong,
    first: cython.longlong,
    budget: cython.longlong,
    at_least: cython.Py_ssize_t,
):
    """Lengths first, to know how much to allocate; then each record is verified and copied."""
    stop = _END
    packed: cython.Py_ssize_t = 0
    m: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t
    n: cython.Py_ssize_t
    to: cython.p_uchar
    begin: cython.p_uchar
    at: cython.p_uchar
    while m < count:
        if places[m] < 0:
            stop = _DAMAGED
            break
        if places[m] > total - 8:
            stop = _PARTIAL
            break
        n = _get32(p + places[m])
        if n < 32:
            stop = _DAMAGED
            break
        if n > total - places[m] - 8:
            stop = _PARTIAL
            break
        if m >= at_least and packed + 4 + n > budget:
            stop = _BUDGET
            break
        packed += 4 + n
        m += 1
    out = _bytes(packed)
    begin = to = _at(out)
    for k in range(m):
        at = p + places[k]
        n = _get32(at)
        memcpy(to, at, 4)
        memcpy(to + 4, at + 8, n)
        if (
            _get64(to + 4) != ledger
            or cython.cast(cython.ulonglong, _get64(to + 12))
            != cython.cast(cython.ulonglong, first) + cython.cast(cython.ulonglong, k)
            or _get32(at + 4) != bk_crc32c(0, to, 4 + n)
        ):
            return _new(Packed, (out[: to - begin], k, _DAMAGED))
        to += 4 + n
    return _new(Packed, (out, m, stop))


def split_entries(
    body,
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    ledger_id: cython.longlong,
    first: cython.longlong,
    digest,
    mac_key=b"",
):
    if digest not in (1, 3, 4):
        return pure.split_entries(body, start, end, ledger_id, first, digest, mac_key)
    buffer: Py_buffer
    PyObject_GetBuffer(body, cython.address(buffer), PyBUF_SIMPLE)
    try:
        _check(buffer.len, start, end)
        return _split_entries(cython.cast(cython.p_uchar, buffer.buf), start, end, ledger_id, first, digest)
    finally:
        PyBuffer_Release(cython.address(buffer))


@cython.cfunc
def _split_entries(
    p: cython.p_uchar,
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    ledger: cython.longlong,
    first: cython.longlong,
    digest: cython.int,
):
    stop = _END
    d: cython.Py_ssize_t = _digest_size(digest)
    i: cython.Py_ssize_t = 0
    n: cython.Py_ssize_t
    expected: cython.uchar[8]
    payloads: list = []
    count: cython.Py_ssize_t = _count_entries(p, at, end)
    lacs: carray.array = carray.clone(_TEMPLATE, count, False)
    lengths: carray.array = carray.clone(_TEMPLATE, count, False)
    while at < end:
        if end - at < 4:
            stop = _PARTIAL
            break
        n = _get32(p + at)
        at += 4
        if n < 32 + d:
            stop = _DAMAGED
            break
        if n > end - at:
            stop = _PARTIAL
            break
        _put_digest(expected, digest, p + at, p + at + 32 + d, n - 32 - d)
        if (
            _get64(p + at) != ledger
            or cython.cast(cython.ulonglong, _get64(p + at + 8))
            != cython.cast(cython.ulonglong, first) + cython.cast(cython.ulonglong, i)
            or memcmp(expected, p + at + 32, d) != 0
        ):
            stop = _DAMAGED
            break
        payloads.append(PyBytes_FromStringAndSize(cython.cast(cython.p_char, p + at + 32 + d), n - 32 - d))
        lacs.data.as_longlongs[i] = _get64(p + at + 16)
        lengths.data.as_longlongs[i] = _get64(p + at + 24)
        i += 1
        at += n
    if i < count:
        return _new(Entries, (payloads, lacs[:i], lengths[:i], stop))
    return _new(Entries, (payloads, lacs, lengths, stop))


@cython.cfunc
@cython.exceptval(check=False)
def _count_entries(p: cython.p_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Whole entries by their lengths alone: at least as many as are good."""
    count: cython.Py_ssize_t = 0
    n: cython.Py_ssize_t
    while end - at >= 4:
        n = _get32(p + at)
        if n < 32 or n > end - at - 4:
            break
        count += 1
        at += 4 + n
    return count


def scan_records(buffer, start: cython.Py_ssize_t, end: cython.Py_ssize_t, record_max: cython.Py_ssize_t = RECORD_MAX):
    data: Py_buffer
    PyObject_GetBuffer(buffer, cython.address(data), PyBUF_SIMPLE)
    try:
        _check(data.len, start, end)
        return _scan(cython.cast(cython.p_uchar, data.buf), start, end, record_max)
    finally:
        PyBuffer_Release(cython.address(data))


@cython.cfunc
@cython.exceptval(check=False)
def _count_records(
    p: cython.p_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t, record_max: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Whole records by their lengths alone: at least as many as are good."""
    count: cython.Py_ssize_t = 0
    n: cython.Py_ssize_t
    while end - at >= 8:
        n = _get32(p + at)
        if n < 16 or n > record_max or n > end - at - 8:
            break
        count += 1
        at += 8 + n
    return count


@cython.cfunc
def _scan(p: cython.p_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t, record_max: cython.Py_ssize_t):
    count: cython.Py_ssize_t = _count_records(p, at, end, record_max)
    offsets: carray.array = carray.clone(_TEMPLATE, count, False)
    ledger_ids: carray.array = carray.clone(_TEMPLATE, count, False)
    entry_ids: carray.array = carray.clone(_TEMPLATE, count, False)
    lacs: carray.array = carray.clone(_TEMPLATE, count, False)
    sizes: carray.array = carray.clone(_TEMPLATE, count, False)
    i: cython.Py_ssize_t = 0
    n: cython.Py_ssize_t
    entry: cython.longlong
    while True:
        if end - at < 4:
            stop = _END if at == end else _PARTIAL
            break
        n = _get32(p + at)
        if n == 0:
            stop = _ZERO
            break
        if n < 16 or n > record_max:
            stop = _DAMAGED
            break
        if n > end - at - 8:
            stop = _PARTIAL
            break
        entry = _get64(p + at + 16)
        if (entry >= 0 and n < 32) or not _has_crc(p + at, n):
            stop = _DAMAGED
            break
        offsets.data.as_longlongs[i] = at
        ledger_ids.data.as_longlongs[i] = _get64(p + at + 8)
        entry_ids.data.as_longlongs[i] = entry
        lacs.data.as_longlongs[i] = _get64(p + at + 24) if entry >= 0 else -1
        sizes.data.as_longlongs[i] = n
        i += 1
        at += 8 + n
    if i < count:
        return _new(Scan, (offsets[:i], ledger_ids[:i], entry_ids[:i], lacs[:i], sizes[:i], at, stop))
    return _new(Scan, (offsets, ledger_ids, entry_ids, lacs, sizes, at, stop))


def find_record(buffer, start: cython.Py_ssize_t, end: cython.Py_ssize_t, record_max: cython.Py_ssize_t = RECORD_MAX):
    data: Py_buffer
    at: cython.Py_ssize_t
    n: cython.Py_ssize_t
    p: cython.p_uchar
    PyObject_GetBuffer(buffer, cython.address(data), PyBUF_SIMPLE)
    try:
        _check(data.len, start, end)
        for at in range(start, end - 23):
            p = cython.cast(cython.p_uchar, data.buf) + at
            n = _get32(p)
            if n < 16 or n > record_max or n > end - at - 8 or _get64(p + 8) < 0:
                continue
            if n < 32 and _get64(p + 16) >= 0:
                continue
            if _has_crc(p, n):
                return at
        return -1
    finally:
        PyBuffer_Release(cython.address(data))


def chain_crcs(records, start: cython.Py_ssize_t, end: cython.Py_ssize_t, seed: cython.uint = 0):
    data: Py_buffer
    at: cython.Py_ssize_t = start
    p: cython.p_uchar
    PyObject_GetBuffer(records, cython.address(data), PyBUF_SIMPLE)
    try:
        _check(data.len, start, end)
        p = cython.cast(cython.p_uchar, data.buf)
        while end - at >= 8:
            seed = bk_crc32c(seed, p + at + 4, 4)
            at += 8 + cython.cast(cython.Py_ssize_t, _get32(p + at))
        return seed
    finally:
        PyBuffer_Release(cython.address(data))


# -- reads -----------------------------------------------------------------------------------------------


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _frame_end(
    p: cython.p_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t, frame_max: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Where the frame at ``at`` ends; 0 if it is not whole, or impossible."""
    length: cython.Py_ssize_t
    if end - at < 4:
        return 0
    length = _get32(p + at)
    if length == 0 or length > end - at - 4 or length > frame_max - 4:
        return 0
    return at + 4 + length


@cython.cfunc
@cython.exceptval(check=False)
def _plain_read(
    p: cython.p_uchar,
    body: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    v2_only: cython.bint,
    read: cython.pointer(Read),
) -> cython.int:
    """The dialect of the plain read in the body, 2 or 3; 0 if it is anything else."""
    value: cython.ulonglong = 0
    at: cython.Py_ssize_t
    if p[body] == 2:
        if stop - body != 20 or p[body + 1] != 2 or p[body + 2] != 0 or p[body + 3] != 0:
            return 0
        read.ledger = _get64(p + body + 4)
        read.entry = _get64(p + body + 12)
        read.txn = 0
        return 2 if read.ledger >= 0 and read.entry >= 0 else 0
    if v2_only:
        return 0
    at = _v3_header(p, body, stop, _READ, cython.address(read.txn))
    if at < 0 or stop - at < 7 or p[at] != 0xA2 or p[at + 1] != 6 or p[at + 2] != stop - at - 3 or p[at + 2] > 20:
        return 0
    if p[at + 3] != 8:
        return 0
    at = _varint(p, at + 4, stop, cython.address(value))
    if at < 0 or value >> 63 or at >= stop or p[at] != 0x10:
        return 0
    read.ledger = cython.cast(cython.longlong, value)
    at = _varint(p, at + 1, stop, cython.address(value))
    if at != stop or value >> 63:
        return 0
    read.entry = cython.cast(cython.longlong, value)
    return 3


@cython.cfunc
@cython.exceptval(check=False)
def _plain_found(
    p: cython.p_uchar, body: cython.Py_ssize_t, stop: cython.Py_ssize_t, found: cython.pointer(Found)
) -> cython.bint:
    """A v3 reply that holds an entry."""
    value: cython.ulonglong = 0
    at: cython.Py_ssize_t = _v3_header(p, body, stop, _READ, cython.address(found.txn))
    if at < 0 or stop - at < 4 or p[at] != 0x10 or p[at + 1] != 0 or p[at + 2] != 0xA2 or p[at + 3] != 6:
        return False
    at = _varint(p, at + 4, stop, cython.address(value))
    if at < 0 or value != cython.cast(cython.ulonglong, stop - at):
        return False
    if stop - at < 3 or p[at] != 8 or p[at + 1] != 0 or p[at + 2] != 0x10:
        return False
    at = _varint(p, at + 3, stop, cython.address(value))
    if at < 0 or value >> 63 or at >= stop or p[at] != 0x18:
        return False
    found.ledger = cython.cast(cython.longlong, value)
    at = _varint(p, at + 1, stop, cython.address(value))
    if at < 0 or value >> 63 or at >= stop or p[at] != 0x22:
        return False
    found.entry = cython.cast(cython.longlong, value)
    at = _varint(p, at + 1, stop, cython.address(value))
    if at < 0 or value > cython.cast(cython.ulonglong, stop - at):
        return False
    found.begin = at
    found.end = at = at + cython.cast(cython.Py_ssize_t, value)
    found.lac = _NO_LAC
    if at == stop:
        return True
    if p[at] != 0x28 or _varint(p, at + 1, stop, cython.address(value)) != stop:
        return False
    found.lac = cython.cast(cython.longlong, value)
    return found.lac != _NO_LAC


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _plain_found_v2(
    p: cython.p_uchar, body: cython.Py_ssize_t, stop: cython.Py_ssize_t, found: cython.pointer(Found)
) -> cython.bint:
    if stop - body < 24 or _get32(p + body) != 0x02020000 or _get32(p + body + 4) != 0:
        return False
    found.ledger = _get64(p + body + 8)
    found.entry = _get64(p + body + 16)
    found.txn = 0
    found.lac = _NO_LAC
    found.begin = body + 24
    found.end = stop
    return found.ledger >= 0 and found.entry >= 0


def encode_reads(dialect, ledger_id, entry_ids, txn):
    ids: carray.array
    if dialect not in (2, 3) or not 0 <= ledger_id < 1 << 63:
        raise ValueError(f"dialect {dialect}, ledger {ledger_id}")
    if not 0 <= txn < (1 << 64) - len(entry_ids):
        raise ValueError(f"{len(entry_ids)} transaction ids from {txn} on")
    try:
        ids = array("q", entry_ids)
    except OverflowError:
        raise ValueError("an entry id that does not fit") from None
    return _encode_reads(dialect == 3, ledger_id, ids.data.as_longlongs, len(ids), txn)


@cython.cfunc
def _encode_reads(
    v3: cython.bint, ledger: cython.longlong, ids: cython.p_longlong, n: cython.Py_ssize_t, txn: cython.ulonglong
):
    i: cython.Py_ssize_t
    size: cython.Py_ssize_t
    total: cython.Py_ssize_t = 0
    p: cython.p_uchar
    for i in range(n):
        if ids[i] < 0:
            raise ValueError(f"entry {ids[i]}")
        total += 4 + 7 + _varint_size(txn + i) + 3 + 2 + _varint_size(ledger) + _varint_size(ids[i]) if v3 else 24
    out = _bytes(total)
    p = _at(out)
    for i in range(n):
        if not v3:
            _put32(p, 20)
            _put32(p + 4, 0x02020000)
            _put64(p + 8, ledger)
            _put64(p + 16, ids[i])
            p += 24
            continue
        size = 2 + _varint_size(ledger) + _varint_size(ids[i])
        _put32(p, cython.cast(cython.uint, 7 + _varint_size(txn + i) + 3 + size))
        p = _put_header(p + 4, _READ, txn + i)
        p[0] = 0xA2
        p[1] = 6
        p[2] = cython.cast(cython.uchar, size)
        p[3] = 8
        p = _put_varint(p + 4, ledger)
        p[0] = 0x10
        p = _put_varint(p + 1, ids[i])
    return out


def split_reads(
    chunk,
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    frame_max: cython.Py_ssize_t = FRAME_MAX,
    v2_only: cython.bint = False,
    count_max: cython.Py_ssize_t = READS_MAX,
):
    buffer: Py_buffer
    PyObject_GetBuffer(chunk, cython.address(buffer), PyBUF_SIMPLE)
    try:
        _check(buffer.len, start, end)
        return _split_reads(cython.cast(cython.p_uchar, buffer.buf), start, end, frame_max, v2_only, count_max)
    finally:
        PyBuffer_Release(cython.address(buffer))


@cython.cfunc
def _split_reads(
    p: cython.p_uchar,
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    frame_max: cython.Py_ssize_t,
    v2_only: cython.bint,
    count_max: cython.Py_ssize_t,
):
    """Count, to know how much to allocate; then cut."""
    read: Read
    dialect: cython.int = 0
    other: cython.int
    n: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    at: cython.Py_ssize_t = start
    stop: cython.Py_ssize_t
    while n < count_max:
        stop = _frame_end(p, at, end, frame_max)
        if stop == 0:
            break
        other = _plain_read(p, at + 4, stop, v2_only, cython.address(read))
        if other == 0 or (dialect != 0 and other != dialect):
            break
        dialect = other
        n += 1
        at = stop
    ledger_ids: carray.array = carray.clone(_TEMPLATE, n, False)
    entry_ids: carray.array = carray.clone(_TEMPLATE, n, False)
    txns: carray.array = carray.clone(_UNSIGNED, n, False)
    ends: carray.array = carray.clone(_TEMPLATE, n, False)
    at = start
    for i in range(n):
        stop = at + 4 + cython.cast(cython.Py_ssize_t, _get32(p + at))
        _plain_read(p, at + 4, stop, v2_only, cython.address(read))
        ledger_ids.data.as_longlongs[i] = read.ledger
        entry_ids.data.as_longlongs[i] = read.entry
        txns.data.as_ulonglongs[i] = read.txn
        ends.data.as_longlongs[i] = stop
        at = stop
    return _new(Reads, (dialect == 2, ledger_ids, entry_ids, txns, ends))


def answer_reads(
    reads,
    i0: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    records,
    step: cython.Py_ssize_t,
    lac: cython.longlong,
    frame_max: cython.Py_ssize_t = FRAME_MAX,
):
    v2: cython.bint = reads.v2
    ledger_ids: carray.array = _longs(reads.ledger_ids)
    entry_ids: carray.array = _longs(reads.entry_ids)
    txns: carray.array = _ulongs(reads.txns)
    data: Py_buffer
    if count < 0:
        raise ValueError(f"{count} reads")
    _check(min(len(ledger_ids), len(entry_ids), len(txns)), i0, i0 + count)
    PyObject_GetBuffer(records, cython.address(data), PyBUF_SIMPLE)
    try:
        if step < 8 or count > data.len // step:
            raise ValueError(f"{count} records of {step} in {data.len} bytes")
        return _answer(
            v2,
            ledger_ids.data.as_longlongs + i0,
            entry_ids.data.as_longlongs + i0,
            txns.data.as_ulonglongs + i0,
            count,
            cython.cast(cython.p_uchar, data.buf),
            step,
            lac,
            frame_max,
        )
    finally:
        PyBuffer_Release(cython.address(data))


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _answer_size(
    ledger: cython.longlong, entry: cython.longlong, n: cython.Py_ssize_t, lac: cython.longlong
) -> cython.Py_ssize_t:
    """Bytes of a v3 readResponse with an entry of ``n``."""
    return (
        2
        + 1
        + _varint_size(ledger)
        + 1
        + _varint_size(entry)
        + 1
        + _varint_size(n)
        + n
        + 1
        + _varint_size(cython.cast(cython.ulonglong, lac))
    )


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put_answer(
    p: cython.p_uchar,
    length: cython.Py_ssize_t,
    ledger: cython.longlong,
    entry: cython.longlong,
    txn: cython.ulonglong,
    record: cython.p_uchar,
    n: cython.Py_ssize_t,
    lac: cython.longlong,
) -> cython.p_uchar:
    """A v3 frame whose body has ``length`` bytes."""
    _put32(p, cython.cast(cython.uint, length))
    p = _put_header(p + 4, _READ, txn)
    p[0] = 0x10
    p[1] = 0
    p[2] = 0xA2
    p[3] = 6
    p = _put_varint(p + 4, _answer_size(ledger, entry, n, lac))
    p[0] = 8
    p[1] = 0
    p[2] = 0x10
    p = _put_varint(p + 3, ledger)
    p[0] = 0x18
    p = _put_varint(p + 1, entry)
    p[0] = 0x22
    p = _put_varint(p + 1, n)
    memcpy(p, record + 8, n)
    p += n
    p[0] = 0x28
    return _put_varint(p + 1, cython.cast(cython.ulonglong, lac))


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _answer_length(
    v2: cython.bint,
    ledger: cython.longlong,
    entry: cython.longlong,
    txn: cython.ulonglong,
    n: cython.Py_ssize_t,
    lac: cython.longlong,
) -> cython.Py_ssize_t:
    """Bytes of a reply's frame body."""
    size: cython.Py_ssize_t
    if v2:
        return 24 + n
    size = _answer_size(ledger, entry, n, lac)
    return 7 + _varint_size(txn) + 4 + _varint_size(size) + size


@cython.cfunc
def _answer(
    v2: cython.bint,
    ledgers: cython.p_longlong,
    entries: cython.p_longlong,
    txns: cython.p_ulonglong,
    count: cython.Py_ssize_t,
    records: cython.p_uchar,
    step: cython.Py_ssize_t,
    lac: cython.longlong,
    frame_max: cython.Py_ssize_t,
):
    """Verify and measure, to know how much to allocate; then write."""
    m: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t
    n: cython.Py_ssize_t
    length: cython.Py_ssize_t
    total: cython.Py_ssize_t = 0
    largest: cython.Py_ssize_t = 0
    at: cython.p_uchar
    p: cython.p_uchar
    while m < count:
        at = records + m * step
        n = _get32(at)
        if n < (32 if entries[m] >= 0 else 16) or n > step - 8 or not _has_crc(at, n):
            break
        if _get64(at + 8) != ledgers[m] or _get64(at + 16) != entries[m]:
            break
        length = _answer_length(v2, ledgers[m], entries[m], txns[m], n, lac)
        if length + 4 > frame_max:
            break
        total += 4 + length
        largest = max(largest, n)
        m += 1
    out = _bytes(total)
    p = _at(out)
    for k in range(m):
        at = records + k * step
        n = _get32(at)
        if v2:
            _put32(p, cython.cast(cython.uint, 24 + n))
            _put32(p + 4, 0x02020000)
            _put32(p + 8, 0)
            _put64(p + 12, ledgers[k])
            _put64(p + 20, entries[k])
            memcpy(p + 28, at + 8, n)
            p += 28 + n
        else:
            length = _answer_length(False, ledgers[k], entries[k], txns[k], n, lac)
            p = _put_answer(p, length, ledgers[k], entries[k], txns[k], at, n, lac)
    return _new(Answers, (out, m, largest))


def split_read_replies(
    chunk,
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    frame_max: cython.Py_ssize_t = FRAME_MAX,
    v2: cython.bint = False,
):
    buffer: Py_buffer
    PyObject_GetBuffer(chunk, cython.address(buffer), PyBUF_SIMPLE)
    try:
        _check(buffer.len, start, end)
        return _split_read_replies(cython.cast(cython.p_uchar, buffer.buf), start, end, frame_max, v2)
    finally:
        PyBuffer_Release(cython.address(buffer))


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _found(
    p: cython.p_uchar,
    body: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    v2: cython.bint,
    found: cython.pointer(Found),
) -> cython.bint:
    return _plain_found_v2(p, body, stop, found) if v2 else _plain_found(p, body, stop, found)


@cython.cfunc
def _split_read_replies(
    p: cython.p_uchar, start: cython.Py_ssize_t, end: cython.Py_ssize_t, frame_max: cython.Py_ssize_t, v2: cython.bint
):
    """Count, to know how much to allocate; then cut."""
    found: Found
    n: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    at: cython.Py_ssize_t = start
    stop: cython.Py_ssize_t = _frame_end(p, at, end, frame_max)
    while stop != 0 and _found(p, at + 4, stop, v2, cython.address(found)):
        n += 1
        at = stop
        stop = _frame_end(p, at, end, frame_max)
    txns: carray.array = carray.clone(_UNSIGNED, n, False)
    ledger_ids: carray.array = carray.clone(_TEMPLATE, n, False)
    entry_ids: carray.array = carray.clone(_TEMPLATE, n, False)
    lacs: carray.array = carray.clone(_TEMPLATE, n, False)
    begins: carray.array = carray.clone(_TEMPLATE, n, False)
    ends: carray.array = carray.clone(_TEMPLATE, n, False)
    at = start
    for i in range(n):
        stop = at + 4 + cython.cast(cython.Py_ssize_t, _get32(p + at))
        _found(p, at + 4, stop, v2, cython.address(found))
        txns.data.as_ulonglongs[i] = found.txn
        ledger_ids.data.as_longlongs[i] = found.ledger
        entry_ids.data.as_longlongs[i] = found.entry
        lacs.data.as_longlongs[i] = found.lac
        begins.data.as_longlongs[i] = found.begin
        ends.data.as_longlongs[i] = found.end
        at = stop
    return _new(ReadReplies, (at, txns, ledger_ids, entry_ids, lacs, begins, ends))


def unseal_replies(chunk, replies, picked, ledger_id: cython.longlong, entry_ids, digest, mac_key=b""):
    if digest not in (1, 3, 4) or len(picked) != len(entry_ids):
        return pure.unseal_replies(chunk, replies, picked, ledger_id, entry_ids, digest, mac_key)
    indices: carray.array = array("q", picked)
    ids: carray.array = array("q", entry_ids)
    buffer: Py_buffer
    PyObject_GetBuffer(chunk, cython.address(buffer), PyBUF_SIMPLE)
    try:
        return _unseal(
            cython.cast(cython.p_uchar, buffer.buf),
            buffer.len,
            _longs(replies.begins),
            _longs(replies.ends),
            _longs(replies.lacs),
            indices,
            ledger_id,
            ids.data.as_longlongs,
            digest,
        )
    finally:
        PyBuffer_Release(cython.address(buffer))


@cython.cfunc
def _unseal(
    p: cython.p_uchar,
    total: cython.Py_ssize_t,
    begins: carray.array,
    ends: carray.array,
    lacs: carray.array,
    picked: carray.array,
    ledger: cython.longlong,
    entries: cython.p_longlong,
    digest: cython.int,
):
    d: cython.Py_ssize_t = _digest_size(digest)
    count: cython.Py_ssize_t = min(len(begins), len(ends), len(lacs))
    highest: cython.longlong = _NO_LAC
    expected: cython.uchar[8]
    payloads: list = []
    k: cython.Py_ssize_t
    i: cython.longlong
    at: cython.longlong
    n: cython.Py_ssize_t
    for k in range(len(picked)):
        i = picked.data.as_longlongs[k]
        _check(count, i, i + 1)
        at = begins.data.as_longlongs[i]
        _check(total, at, ends.data.as_longlongs[i])
        n = ends.data.as_longlongs[i] - at
        if n < 32 + d or _get64(p + at) != ledger or _get64(p + at + 8) != entries[k]:
            payloads.append(None)
            continue
        _put_digest(expected, digest, p + at, p + at + 32 + d, n - 32 - d)
        if memcmp(expected, p + at + 32, d) != 0:
            payloads.append(None)
            continue
        payloads.append(PyBytes_FromStringAndSize(cython.cast(cython.p_char, p + at + 32 + d), n - 32 - d))
        highest = max(highest, _get64(p + at + 16), lacs.data.as_longlongs[i])
    return payloads, highest


# -- places, for the index -------------------------------------------------------------------------------


def record_places(
    record_ends, i0: cython.Py_ssize_t, i1: cython.Py_ssize_t, record_start: cython.longlong, base: cython.longlong
):
    ends: carray.array = _longs(record_ends)
    _check(len(ends), i0, i1)
    places: carray.array = carray.clone(_TEMPLATE, i1 - i0, False)
    i: cython.Py_ssize_t
    for i in range(i0, i1):
        places.data.as_longlongs[i - i0] = base + (ends.data.as_longlongs[i - 1] if i else record_start)
    return places


def scatter(target, origin: cython.longlong, entry_ids, i0: cython.Py_ssize_t, i1: cython.Py_ssize_t, values):
    to: carray.array = _longs(target)
    ids: carray.array = _longs(entry_ids)
    new: carray.array = _longs(values)
    n: cython.Py_ssize_t = len(to)
    i: cython.Py_ssize_t
    entry: cython.longlong
    _check(len(ids), i0, i1)
    good: cython.bint = len(new) >= i1 - i0
    for i in range(i0, i1):
        entry = ids.data.as_longlongs[i]
        if entry < origin or cython.cast(cython.ulonglong, entry) - cython.cast(
            cython.ulonglong, origin
        ) >= cython.cast(cython.ulonglong, n):
            good = False
            break
    if not good:
        raise ValueError(f"entries {i0}..{i1} do not fit into {n} places from {origin}")
    for i in range(i0, i1):
        to.data.as_longlongs[ids.data.as_longlongs[i] - origin] = new.data.as_longlongs[i - i0]
