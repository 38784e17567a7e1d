# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False

"""Runs of lone entries, and entries of values, compiled: the same functions and results as ``pure``.

Only importable as the extension that ``setup.py`` builds.
"""

from __future__ import annotations

import cython

if not cython.compiled:
    raise ImportError("segments.codec.native is imported as a compiled extension only")

from cython.cimports.bookkeeper.codec.native.crc import bk_crc32c, bk_crc_init
from cython.cimports.bookkeeper.codec.native.primitives import bytes_at, new_bytes
from cython.cimports.bookkeeper.codec.native.tuples import bk_tuple_filled, bk_tuple_of, bk_tuple_put
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cython.cimports.cpython.object import PyObject
from cython.cimports.cpython.ref import Py_INCREF
from cython.cimports.libc.string import memcpy, memset

bk_crc_init()

_HEADER = cython.declare(cython.Py_ssize_t, 56)
_HEAD = cython.declare(cython.Py_ssize_t, 88)
"""The header, the one batch without a producer's name, and the offsets of the one value."""
_BATCH = cython.declare(cython.Py_ssize_t, 24)
_CRC_AT = cython.declare(cython.Py_ssize_t, 52)
_LARGEST = cython.declare(cython.longlong, 0x7FFFFFFF)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _u32(p: cython.p_uchar) -> cython.uint:
    return (
        cython.cast(cython.uint, p[0])
        | cython.cast(cython.uint, p[1]) << 8
        | cython.cast(cython.uint, p[2]) << 16
        | cython.cast(cython.uint, p[3]) << 24
    )


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put32(p: cython.p_uchar, value: cython.uint) -> cython.void:
    p[0] = cython.cast(cython.uchar, value)
    p[1] = cython.cast(cython.uchar, value >> 8)
    p[2] = cython.cast(cython.uchar, value >> 16)
    p[3] = cython.cast(cython.uchar, value >> 24)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _i64(p: cython.p_uchar) -> cython.longlong:
    return cython.cast(cython.longlong, cython.cast(cython.ulonglong, _u32(p + 4)) << 32 | _u32(p))


@cython.cfunc
@cython.inline
def _put(made, i: cython.Py_ssize_t, value) -> cython.void:
    """Put a value into an empty place, and keep the caller's reference."""
    Py_INCREF(value)
    bk_tuple_put(made, i, cython.cast(cython.pointer(PyObject), value))


@cython.cfunc
@cython.exceptval(check=False)
def _seq_no(p: cython.p_uchar, size: cython.Py_ssize_t) -> cython.longlong:
    """The number of the one record; -1: it is no lone entry, or damaged."""
    end: cython.Py_ssize_t
    if size < _HEAD or p[0] != 0x42 or p[1] != 0x4B or p[2] != 0x53 or p[3] != 1 or p[4] != 1:
        return -1
    if p[5] != 0 or p[6] != 0 or p[7] != 0 or _u32(p + 8) != 1 or _u32(p + 12) != 1:
        return -1
    if _u32(p + 40) != _u32(p + 44) or cython.cast(cython.Py_ssize_t, _u32(p + 44)) != size - _HEADER:
        return -1
    if _u32(p + 56) != 1 or _u32(p + 60) != 0 or _u32(p + 80) != 0 or _u32(p + 84) > 0x7FFFFFFF:
        return -1
    end = _u32(p + 84)
    if _HEAD + ((end + 7) & ~7) != size or _i64(p + 16) < 0:
        return -1
    if bk_crc32c(bk_crc32c(0, p, _CRC_AT), p + _HEADER, size - _HEADER) != _u32(p + _CRC_AT):
        return -1
    return _i64(p + 16)


def count_lone(payloads: list, at: cython.Py_ssize_t, seq_no: cython.longlong):
    count: cython.Py_ssize_t = 0
    total: cython.Py_ssize_t = len(payloads)
    first: cython.longlong = seq_no
    found: cython.longlong
    while 0 <= at < total - count:
        payload = payloads[at + count]
        if not isinstance(payload, bytes):
            break
        found = _seq_no(cython.cast(cython.p_uchar, PyBytes_AS_STRING(payload)), PyBytes_GET_SIZE(payload))
        if found < 0 or (found - first != count if count else seq_no >= 0 and found != seq_no):
            break
        if count == 0:
            first = found
        count += 1
    return count, first


@cython.cfunc
def _check(payloads: list, a: cython.Py_ssize_t, b: cython.Py_ssize_t) -> cython.longlong:
    """The bytes of all values. Raises ValueError unless each payload has one."""
    total: cython.longlong = 0
    i: cython.Py_ssize_t
    size: cython.Py_ssize_t
    p: cython.p_uchar
    if not 0 <= a <= b <= len(payloads):
        raise ValueError(f"entries {a} to {b} of {len(payloads)}")
    for i in range(a, b):
        payload = payloads[i]
        if not isinstance(payload, bytes):
            raise ValueError("no lone entry")
        size = PyBytes_GET_SIZE(payload)
        p = cython.cast(cython.p_uchar, PyBytes_AS_STRING(payload))
        if size < _HEAD or cython.cast(cython.longlong, _u32(p + 84)) > size - _HEAD:
            raise ValueError("no lone entry")
        total += _u32(p + 84)
    return total


@cython.cfunc
@cython.inline
def _value(p: cython.p_uchar):
    return PyBytes_FromStringAndSize(cython.cast(cython.p_char, p + _HEAD), _u32(p + 84))


def lone_values(payloads: list, a: cython.Py_ssize_t, b: cython.Py_ssize_t):
    values: list = []
    i: cython.Py_ssize_t
    _check(payloads, a, b)
    for i in range(a, b):
        values.append(_value(cython.cast(cython.p_uchar, PyBytes_AS_STRING(payloads[i]))))
    return values


def lone_records(payloads: list, a: cython.Py_ssize_t, b: cython.Py_ssize_t, first, record, place, no_headers):
    records: list = []
    i: cython.Py_ssize_t
    p: cython.p_uchar
    entry: cython.longlong = first[1]
    seq_no: cython.longlong = first[2]
    segment = first[0]
    zero = 0
    _check(payloads, a, b)
    for i in range(a, b):
        p = cython.cast(cython.p_uchar, PyBytes_AS_STRING(payloads[i]))
        where = bk_tuple_of(place, 3)
        _put(where, 0, segment)
        _put(where, 1, entry + i)
        _put(where, 2, zero)
        bk_tuple_filled(where)
        made = bk_tuple_of(record, 9)
        _put(made, 0, where)
        _put(made, 1, seq_no + i)
        _put(made, 2, _value(p))
        _put(made, 3, None)
        _put(made, 4, None)
        _put(made, 5, no_headers)
        _put(made, 6, None)
        _put(made, 7, _i64(p + 24))
        _put(made, 8, None)
        bk_tuple_filled(made)
        records.append(made)
    return records


def lone_columns(payloads: list, a: cython.Py_ssize_t, b: cython.Py_ssize_t):
    i: cython.Py_ssize_t
    p: cython.p_uchar
    size: cython.uint
    at: cython.uint = 0
    total: cython.longlong = _check(payloads, a, b)
    if total > _LARGEST:
        raise ValueError("more than 2 GiB of values")
    offsets = new_bytes(4 * (b - a + 1))
    data = new_bytes(total)
    times = new_bytes(8 * (b - a))
    offset: cython.p_uchar = bytes_at(offsets)
    to: cython.p_uchar = bytes_at(data)
    time: cython.p_uchar = bytes_at(times)
    ms: cython.longlong
    memcpy(offset, cython.address(at), 4)
    for i in range(a, b):
        p = cython.cast(cython.p_uchar, PyBytes_AS_STRING(payloads[i]))
        size = _u32(p + 84)
        memcpy(to + at, p + _HEAD, size)
        at += size
        memcpy(offset + 4 * (i - a + 1), cython.address(at), 4)
        ms = _i64(p + 24)
        memcpy(time + 8 * (i - a), cython.address(ms), 8)
    return offsets, data, times


def rising(first: cython.longlong, n: cython.Py_ssize_t):
    i: cython.Py_ssize_t
    number: cython.longlong
    size: cython.Py_ssize_t = max(0, n)
    if size and first > 0x7FFFFFFFFFFFFFFF - (size - 1):
        raise OverflowError(f"{n} numbers from {first} on")
    made = new_bytes(8 * size)
    p: cython.p_uchar = bytes_at(made)
    for i in range(size):
        number = first + i
        memcpy(p + 8 * i, cython.address(number), 8)
    return made


def repeated(value: cython.longlong, n: cython.Py_ssize_t):
    i: cython.Py_ssize_t
    size: cython.Py_ssize_t = max(0, n)
    made = new_bytes(8 * size)
    p: cython.p_uchar = bytes_at(made)
    for i in range(size):
        memcpy(p + 8 * i, cython.address(value), 8)
    return made


def entry_of_values(header: bytes, batch: bytes, values: list):
    i: cython.Py_ssize_t
    n: cython.Py_ssize_t = len(values)
    size: cython.Py_ssize_t
    at: cython.uint = 0
    total: cython.longlong = 0
    crc: cython.uint
    if PyBytes_GET_SIZE(header) != _HEADER or PyBytes_GET_SIZE(batch) != _BATCH:
        raise ValueError(f"a header of {len(header)} bytes and a batch of {len(batch)}")
    for i in range(n):
        value = values[i]
        if not isinstance(value, bytes):
            raise TypeError("a value is not bytes")
        total += PyBytes_GET_SIZE(value)
    if total > _LARGEST:
        raise ValueError("more than 2 GiB of values")
    begin: cython.Py_ssize_t = _HEADER + _BATCH
    data: cython.Py_ssize_t = begin + ((4 * (n + 1) + 7) & ~7)
    whole: cython.Py_ssize_t = data + cython.cast(cython.Py_ssize_t, (total + 7) & ~7)
    made = new_bytes(whole)
    p: cython.p_uchar = bytes_at(made)
    memcpy(p, PyBytes_AS_STRING(header), _CRC_AT)
    memcpy(p + _HEADER, PyBytes_AS_STRING(batch), _BATCH)
    memset(p + data - 4, 0, 4)
    _put32(p + begin, 0)
    for i in range(n):
        value = values[i]
        size = PyBytes_GET_SIZE(value)
        memcpy(p + data + at, PyBytes_AS_STRING(value), size)
        at += cython.cast(cython.uint, size)
        _put32(p + begin + 4 * (i + 1), at)
    memset(p + data + at, 0, whole - data - at)
    crc = bk_crc32c(bk_crc32c(0, p, _CRC_AT), p + _HEADER, whole - _HEADER)
    _put32(p + _CRC_AT, crc)
    return made


def append_results(records: cython.Py_ssize_t, segment, entry, seq_no: cython.longlong, txids, place, result):
    made: list = []
    if txids is not None and len(txids) != records:
        raise ValueError(f"{len(txids)} transaction ids for {records} records")
    i: cython.Py_ssize_t
    for i in range(records):
        where = bk_tuple_of(place, 3)
        _put(where, 0, segment)
        _put(where, 1, entry)
        _put(where, 2, i)
        bk_tuple_filled(where)
        one = bk_tuple_of(result, 5)
        _put(one, 0, where)
        _put(one, 1, where)
        _put(one, 2, seq_no + i)
        _put(one, 3, None if txids is None else txids[i])
        _put(one, 4, False)
        bk_tuple_filled(one)
        made.append(one)
    return made
