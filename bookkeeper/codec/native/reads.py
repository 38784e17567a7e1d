# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# ruff: noqa: F821  (C types are declared, not assigned; imports follow the check for the compiler)
"""Plain reads and the replies that hold an entry, compiled: the same functions and results as ``pure/reads.py``.

HMAC digests go to the Python codec: the hash is their cost.

Only importable as the extension that ``setup.py`` builds.
"""

from __future__ import annotations

from array import array

import cython

if not cython.compiled:
    raise ImportError("bookkeeper.codec.native.reads is imported as a compiled extension only")

from cython.cimports.bookkeeper.codec.native.crc import bk_crc_init
from cython.cimports.bookkeeper.codec.native.primitives import (
    bytes_at,
    check_bounds,
    digest_size,
    get32,
    get64,
    has_crc,
    longs,
    new_bytes,
    put32,
    put64,
    put_digest,
    put_header,
    put_varint,
    ulongs,
    v3_header,
    varint,
    varint_size,
)
from cython.cimports.cpython import array as carray
from cython.cimports.cpython.buffer import Py_buffer, PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
from cython.cimports.libc.string import memcmp, memcpy

from bookkeeper.codec import pure
from bookkeeper.codec.shapes import FRAME_MAX, NO_LAC, READS_MAX, Answers, ReadReplies, Reads

bk_crc_init()

_TEMPLATE: carray.array = array("q")
_UNSIGNED: carray.array = array("Q")
_new = tuple.__new__
_READ = cython.declare(cython.uchar, 1)
"""READ_ENTRY in protocol v3."""
_NO_LAC = cython.declare(cython.longlong, NO_LAC)

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
    length = get32(p + at)
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
        read.ledger = get64(p + body + 4)
        read.entry = get64(p + body + 12)
        read.txn = 0
        return 2 if read.ledger >= 0 and read.entry >= 0 else 0
    if v2_only:
        return 0
    at = v3_header(p, body, stop, _READ, cython.address(read.txn))
    if at < 0 or stop - at < 7 or p[at] != 0xA2 or p[at + 1] != 6 or p[at + 2] != stop - at - 3 or p[at + 2] > 20:
        return 0
    if p[at + 3] != 8:
        return 0
    at = varint(p, at + 4, stop, cython.address(value))
    if at < 0 or value >> 63 or at >= stop or p[at] != 0x10:
        return 0
    read.ledger = cython.cast(cython.longlong, value)
    at = varint(p, at + 1, stop, cython.address(value))
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
    at: cython.Py_ssize_t = v3_header(p, body, stop, _READ, cython.address(found.txn))
    if at < 0 or stop - at < 4 or p[at] != 0x10 or p[at + 1] != 0 or p[at + 2] != 0xA2 or p[at + 3] != 6:
        return False
    at = varint(p, at + 4, stop, cython.address(value))
    if at < 0 or value != cython.cast(cython.ulonglong, stop - at):
        return False
    if stop - at < 3 or p[at] != 8 or p[at + 1] != 0 or p[at + 2] != 0x10:
        return False
    at = varint(p, at + 3, stop, cython.address(value))
    if at < 0 or value >> 63 or at >= stop or p[at] != 0x18:
        return False
    found.ledger = cython.cast(cython.longlong, value)
    at = varint(p, at + 1, stop, cython.address(value))
    if at < 0 or value >> 63 or at >= stop or p[at] != 0x22:
        return False
    found.entry = cython.cast(cython.longlong, value)
    at = varint(p, at + 1, stop, cython.address(value))
    if at < 0 or value > cython.cast(cython.ulonglong, stop - at):
        return False
    found.begin = at
    found.end = at = at + cython.cast(cython.Py_ssize_t, value)
    found.lac = _NO_LAC
    if at == stop:
        return True
    if p[at] != 0x28 or varint(p, at + 1, stop, cython.address(value)) != stop:
        return False
    found.lac = cython.cast(cython.longlong, value)
    return found.lac != _NO_LAC


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _plain_found_v2(
    p: cython.p_uchar, body: cython.Py_ssize_t, stop: cython.Py_ssize_t, found: cython.pointer(Found)
) -> cython.bint:
    if stop - body < 24 or get32(p + body) != 0x02020000 or get32(p + body + 4) != 0:
        return False
    found.ledger = get64(p + body + 8)
    found.entry = get64(p + body + 16)
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
        total += 4 + 7 + varint_size(txn + i) + 3 + 2 + varint_size(ledger) + varint_size(ids[i]) if v3 else 24
    out = new_bytes(total)
    p = bytes_at(out)
    for i in range(n):
        if not v3:
            put32(p, 20)
            put32(p + 4, 0x02020000)
            put64(p + 8, ledger)
            put64(p + 16, ids[i])
            p += 24
            continue
        size = 2 + varint_size(ledger) + varint_size(ids[i])
        put32(p, cython.cast(cython.uint, 7 + varint_size(txn + i) + 3 + size))
        p = put_header(p + 4, _READ, txn + i)
        p[0] = 0xA2
        p[1] = 6
        p[2] = cython.cast(cython.uchar, size)
        p[3] = 8
        p = put_varint(p + 4, ledger)
        p[0] = 0x10
        p = put_varint(p + 1, ids[i])
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
        check_bounds(buffer.len, start, end)
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
        stop = at + 4 + cython.cast(cython.Py_ssize_t, get32(p + at))
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
    ledger_ids: carray.array = longs(reads.ledger_ids)
    entry_ids: carray.array = longs(reads.entry_ids)
    txns: carray.array = ulongs(reads.txns)
    data: Py_buffer
    if count < 0:
        raise ValueError(f"{count} reads")
    check_bounds(min(len(ledger_ids), len(entry_ids), len(txns)), i0, i0 + count)
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
        + varint_size(ledger)
        + 1
        + varint_size(entry)
        + 1
        + varint_size(n)
        + n
        + 1
        + varint_size(cython.cast(cython.ulonglong, lac))
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
    put32(p, cython.cast(cython.uint, length))
    p = put_header(p + 4, _READ, txn)
    p[0] = 0x10
    p[1] = 0
    p[2] = 0xA2
    p[3] = 6
    p = put_varint(p + 4, _answer_size(ledger, entry, n, lac))
    p[0] = 8
    p[1] = 0
    p[2] = 0x10
    p = put_varint(p + 3, ledger)
    p[0] = 0x18
    p = put_varint(p + 1, entry)
    p[0] = 0x22
    p = put_varint(p + 1, n)
    memcpy(p, record + 8, n)
    p += n
    p[0] = 0x28
    return put_varint(p + 1, cython.cast(cython.ulonglong, lac))


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
    return 7 + varint_size(txn) + 4 + varint_size(size) + size


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
        n = get32(at)
        if n < (32 if entries[m] >= 0 else 16) or n > step - 8 or not has_crc(at, n):
            break
        if get64(at + 8) != ledgers[m] or get64(at + 16) != entries[m]:
            break
        length = _answer_length(v2, ledgers[m], entries[m], txns[m], n, lac)
        if length + 4 > frame_max:
            break
        total += 4 + length
        largest = max(largest, n)
        m += 1
    out = new_bytes(total)
    p = bytes_at(out)
    for k in range(m):
        at = records + k * step
        n = get32(at)
        if v2:
            put32(p, cython.cast(cython.uint, 24 + n))
            put32(p + 4, 0x02020000)
            put32(p + 8, 0)
            put64(p + 12, ledgers[k])
            put64(p + 20, entries[k])
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
        check_bounds(buffer.len, start, end)
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
        stop = at + 4 + cython.cast(cython.Py_ssize_t, get32(p + at))
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
            longs(replies.begins),
            longs(replies.ends),
            longs(replies.lacs),
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
    d: cython.Py_ssize_t = digest_size(digest)
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
        check_bounds(count, i, i + 1)
        at = begins.data.as_longlongs[i]
        check_bounds(total, at, ends.data.as_longlongs[i])
        n = ends.data.as_longlongs[i] - at
        if n < 32 + d or get64(p + at) != ledger or get64(p + at + 8) != entries[k]:
            payloads.append(None)
            continue
        put_digest(expected, digest, p + at, p + at + 32 + d, n - 32 - d)
        if memcmp(expected, p + at + 32, d) != 0:
            payloads.append(None)
            continue
        payloads.append(PyBytes_FromStringAndSize(cython.cast(cython.p_char, p + at + 32 + d), n - 32 - d))
        highest = max(highest, get64(p + at + 16), lacs.data.as_longlongs[i])
    return payloads, highest
