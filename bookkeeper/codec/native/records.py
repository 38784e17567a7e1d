# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# ruff: noqa: F821  (C types are declared, not assigned; imports follow the check for the compiler)
"""Disk records, batch replies and places in the index, compiled: the same functions and results as ``pure/records.py``.

HMAC digests go to the Python codec: the hash is their cost.

Only importable as the extension that ``setup.py`` builds.
"""

from __future__ import annotations

from array import array

import cython

if not cython.compiled:
    raise ImportError("bookkeeper.codec.native.records is imported as a compiled extension only")

from cython.cimports.bookkeeper.codec.native.crc import bk_crc32c, bk_crc32c_portable, bk_crc_init
from cython.cimports.bookkeeper.codec.native.primitives import (
    bytes_at,
    check_bounds,
    digest_size,
    get32,
    get64,
    has_crc,
    longs,
    new_bytes,
    put_digest,
    put_record,
)
from cython.cimports.cpython import array as carray
from cython.cimports.cpython.buffer import Py_buffer, PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
from cython.cimports.libc.stdlib import free, malloc
from cython.cimports.libc.string import memcmp, memcpy

from bookkeeper.codec import pure
from bookkeeper.codec.shapes import RECORD_MAX, Entries, LedgerRuns, Packed, Scan, ScannedRun, Stop

bk_crc_init()

_TEMPLATE: carray.array = array("q")
_new = tuple.__new__
_END, _ZERO, _PARTIAL, _DAMAGED, _BUDGET = Stop.END, Stop.ZERO, Stop.PARTIAL, Stop.DAMAGED, Stop.BUDGET


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


def record(entry):
    buffer: Py_buffer
    PyObject_GetBuffer(entry, cython.address(buffer), PyBUF_SIMPLE)
    try:
        out = new_bytes(8 + buffer.len)
        put_record(bytes_at(out), cython.cast(cython.p_uchar, buffer.buf), buffer.len)
        return out
    finally:
        PyBuffer_Release(cython.address(buffer))


def read_record(buffer, offset: cython.Py_ssize_t, ledger_id: cython.longlong, entry_id: cython.longlong):
    data: Py_buffer
    p: cython.p_uchar
    n: cython.Py_ssize_t
    PyObject_GetBuffer(buffer, cython.address(data), PyBUF_SIMPLE)
    try:
        if offset < 0 or offset > data.len - 8:
            return None
        p = cython.cast(cython.p_uchar, data.buf) + offset
        n = get32(p)
        if n < (32 if entry_id >= 0 else 16) or n > data.len - offset - 8 or not has_crc(p, n):
            return None
        if get64(p + 8) != ledger_id or get64(p + 16) != entry_id:
            return None
        return PyBytes_FromStringAndSize(cython.cast(cython.p_char, p + 8), n)
    finally:
        PyBuffer_Release(cython.address(data))


def pack_entries(
    buffer, offsets, ledger_id: cython.longlong, first: cython.longlong, size_budget, at_least: cython.Py_ssize_t = 1
):
    places: carray.array = longs(offsets)
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
        n = get32(p + places[m])
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
    out = new_bytes(packed)
    begin = to = bytes_at(out)
    for k in range(m):
        at = p + places[k]
        n = get32(at)
        memcpy(to, at, 4)
        memcpy(to + 4, at + 8, n)
        if (
            get64(to + 4) != ledger
            or cython.cast(cython.ulonglong, get64(to + 12))
            != cython.cast(cython.ulonglong, first) + cython.cast(cython.ulonglong, k)
            or get32(at + 4) != bk_crc32c(0, to, 4 + n)
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
        check_bounds(buffer.len, start, end)
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
    d: cython.Py_ssize_t = digest_size(digest)
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
        n = get32(p + at)
        at += 4
        if n < 32 + d:
            stop = _DAMAGED
            break
        if n > end - at:
            stop = _PARTIAL
            break
        put_digest(expected, digest, p + at, p + at + 32 + d, n - 32 - d)
        if (
            get64(p + at) != ledger
            or cython.cast(cython.ulonglong, get64(p + at + 8))
            != cython.cast(cython.ulonglong, first) + cython.cast(cython.ulonglong, i)
            or memcmp(expected, p + at + 32, d) != 0
        ):
            stop = _DAMAGED
            break
        payloads.append(PyBytes_FromStringAndSize(cython.cast(cython.p_char, p + at + 32 + d), n - 32 - d))
        lacs.data.as_longlongs[i] = get64(p + at + 16)
        lengths.data.as_longlongs[i] = get64(p + at + 24)
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
        n = get32(p + at)
        if n < 32 or n > end - at - 4:
            break
        count += 1
        at += 4 + n
    return count


def scan_records(buffer, start: cython.Py_ssize_t, end: cython.Py_ssize_t, record_max: cython.Py_ssize_t = RECORD_MAX):
    data: Py_buffer
    PyObject_GetBuffer(buffer, cython.address(data), PyBUF_SIMPLE)
    try:
        check_bounds(data.len, start, end)
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
        n = get32(p + at)
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
        n = get32(p + at)
        if n == 0:
            stop = _ZERO
            break
        if n < 16 or n > record_max:
            stop = _DAMAGED
            break
        if n > end - at - 8:
            stop = _PARTIAL
            break
        entry = get64(p + at + 16)
        if (entry >= 0 and n < 32) or not has_crc(p + at, n):
            stop = _DAMAGED
            break
        offsets.data.as_longlongs[i] = at
        ledger_ids.data.as_longlongs[i] = get64(p + at + 8)
        entry_ids.data.as_longlongs[i] = entry
        lacs.data.as_longlongs[i] = get64(p + at + 24) if entry >= 0 else -1
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
        check_bounds(data.len, start, end)
        for at in range(start, end - 23):
            p = cython.cast(cython.p_uchar, data.buf) + at
            n = get32(p)
            if n < 16 or n > record_max or n > end - at - 8 or get64(p + 8) < 0:
                continue
            if n < 32 and get64(p + 16) >= 0:
                continue
            if has_crc(p, n):
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
        check_bounds(data.len, start, end)
        p = cython.cast(cython.p_uchar, data.buf)
        while end - at >= 8:
            seed = bk_crc32c(seed, p + at + 4, 4)
            at += 8 + cython.cast(cython.Py_ssize_t, get32(p + at))
        return seed
    finally:
        PyBuffer_Release(cython.address(data))


def ledger_runs(scan, base: cython.longlong = 0):
    offsets: carray.array = longs(scan.offsets)
    ledger_ids: carray.array = longs(scan.ledger_ids)
    entry_ids: carray.array = longs(scan.entry_ids)
    lacs: carray.array = longs(scan.lacs)
    sizes: carray.array = longs(scan.sizes)
    count: cython.Py_ssize_t = len(offsets)
    if len(ledger_ids) != count or len(entry_ids) != count or len(lacs) != count or len(sizes) != count:
        raise ValueError("the arrays of a scan are not of one length")
    places: carray.array = carray.clone(_TEMPLATE, count, False)
    ids: carray.array = carray.clone(_TEMPLATE, count, False)
    room: cython.pointer(cython.Py_ssize_t) = cython.cast(
        cython.pointer(cython.Py_ssize_t), malloc((2 * count + 1) * cython.sizeof(cython.Py_ssize_t))
    )
    if room == cython.NULL:
        raise MemoryError
    try:
        runs = _runs(
            ledger_ids.data.as_longlongs,
            entry_ids.data.as_longlongs,
            lacs.data.as_longlongs,
            sizes.data.as_longlongs,
            offsets.data.as_longlongs,
            _by_ledger(ledger_ids.data.as_longlongs, room, count),
            count,
            base,
            places.data.as_longlongs,
            ids.data.as_longlongs,
        )
    finally:
        free(room)
    return _new(LedgerRuns, (places, ids, runs))


@cython.cfunc
@cython.exceptval(check=False)
def _by_ledger(
    ledgers: cython.p_longlong, room: cython.pointer(cython.Py_ssize_t), count: cython.Py_ssize_t
) -> cython.pointer(cython.Py_ssize_t):
    """The order of the records by ledger, those of one ledger as they come: sorted runs are merged, pair by pair."""
    here: cython.pointer(cython.Py_ssize_t) = room
    there: cython.pointer(cython.Py_ssize_t) = room + count
    i: cython.Py_ssize_t
    begin: cython.Py_ssize_t
    middle: cython.Py_ssize_t
    end: cython.Py_ssize_t
    a: cython.Py_ssize_t
    b: cython.Py_ssize_t
    merged: cython.Py_ssize_t = 2
    for i in range(count):
        here[i] = i
    while merged > 1:
        merged = begin = 0
        while begin < count:
            middle = begin + 1
            while middle < count and ledgers[here[middle - 1]] <= ledgers[here[middle]]:
                middle += 1
            end = middle + 1 if middle < count else count
            while end < count and ledgers[here[end - 1]] <= ledgers[here[end]]:
                end += 1
            a, b = begin, middle
            for i in range(begin, end):
                if a < middle and (b >= end or ledgers[here[a]] <= ledgers[here[b]]):
                    there[i] = here[a]
                    a += 1
                else:
                    there[i] = here[b]
                    b += 1
            merged += 1
            begin = end
        here, there = there, here
    return here


@cython.cfunc
def _runs(
    ledgers: cython.p_longlong,
    entries: cython.p_longlong,
    lacs: cython.p_longlong,
    sizes: cython.p_longlong,
    offsets: cython.p_longlong,
    order: cython.pointer(cython.Py_ssize_t),
    count: cython.Py_ssize_t,
    base: cython.longlong,
    places: cython.p_longlong,
    ids: cython.p_longlong,
):
    runs: list = []
    i: cython.Py_ssize_t
    at: cython.Py_ssize_t
    i0: cython.Py_ssize_t = 0
    lac: cython.longlong = 0
    size: cython.longlong = 0
    for i in range(count):
        at = order[i]
        places[i] = base + offsets[at]
        ids[i] = entries[at]
        if i == i0 or lacs[at] > lac:
            lac = lacs[at]
        size = 8 + sizes[at] if i == i0 else size + 8 + sizes[at]
        if i + 1 < count and ledgers[at] == ledgers[order[i + 1]] and 0 <= entries[at] < entries[order[i + 1]]:
            continue
        contiguous = ids[i] - ids[i0] == i - i0
        runs.append(_new(ScannedRun, (ledgers[at], i0, i + 1, contiguous, lac, size)))
        i0 = i + 1
    return runs


def ascending(places, span: cython.longlong):
    found: carray.array = longs(places)
    values: cython.p_longlong = found.data.as_longlongs
    count: cython.Py_ssize_t = len(found)
    n: cython.Py_ssize_t = min(count, 1)
    while n < count and values[n] > values[n - 1] and values[n - 1] - values[0] <= span:
        n += 1
    offsets: carray.array = carray.clone(_TEMPLATE, n, False)
    i: cython.Py_ssize_t
    for i in range(n):
        offsets.data.as_longlongs[i] = values[i] - values[0]
    return offsets


def unbroken(places, begin: cython.Py_ssize_t, end: cython.Py_ssize_t):
    found: carray.array = longs(places)
    values: cython.p_longlong = found.data.as_longlongs
    check_bounds(len(found), begin, end)
    n: cython.Py_ssize_t = begin
    while n < end and values[n] != 0:
        n += 1
    return found[begin:n]


def record_places(
    record_ends, i0: cython.Py_ssize_t, i1: cython.Py_ssize_t, record_start: cython.longlong, base: cython.longlong
):
    ends: carray.array = longs(record_ends)
    check_bounds(len(ends), i0, i1)
    places: carray.array = carray.clone(_TEMPLATE, i1 - i0, False)
    i: cython.Py_ssize_t
    for i in range(i0, i1):
        places.data.as_longlongs[i - i0] = base + (ends.data.as_longlongs[i - 1] if i else record_start)
    return places


def scatter(target, origin: cython.longlong, entry_ids, i0: cython.Py_ssize_t, i1: cython.Py_ssize_t, values):
    to: carray.array = longs(target)
    ids: carray.array = longs(entry_ids)
    new: carray.array = longs(values)
    n: cython.Py_ssize_t = len(to)
    i: cython.Py_ssize_t
    entry: cython.longlong
    check_bounds(len(ids), i0, i1)
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
