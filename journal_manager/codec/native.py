# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False

"""Frames and bodies of edits, compiled: the same functions and results as ``pure``.

Whatever is unusual (text that is not ASCII, large differences, many elements) is asked of the field's own reader; every
length is checked before it is followed.

Only importable as the extension that ``setup.py`` builds.
"""

from __future__ import annotations

from functools import partial

import cython

if not cython.compiled:
    raise ImportError("journal_manager.codec.native is imported as a compiled extension only")

from cython.cimports.bookkeeper.codec.native.crc import bk_crc32, bk_crc_init
from cython.cimports.bookkeeper.codec.native.primitives import get32, get64
from cython.cimports.bookkeeper.codec.native.tuples import bk_tuple_filled, bk_tuple_of, bk_tuple_put
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cython.cimports.cpython.object import PyObject
from cython.cimports.cpython.ref import Py_INCREF

from journal_manager.codec.shapes import MAX_FIELDS, Shape

bk_crc_init()

_OWN = cython.declare(cython.uchar, Shape.OWN)
_ABSENT = cython.declare(cython.uchar, Shape.ABSENT)
_I8 = cython.declare(cython.uchar, Shape.I8)
_I16 = cython.declare(cython.uchar, Shape.I16)
_I32 = cython.declare(cython.uchar, Shape.I32)
_I64 = cython.declare(cython.uchar, Shape.I64)
_BOOL = cython.declare(cython.uchar, Shape.BOOL)
_STRING = cython.declare(cython.uchar, Shape.STRING)
_CLIENT_ID = cython.declare(cython.uchar, Shape.CLIENT_ID)
_COUNTED = cython.declare(cython.uchar, Shape.COUNTED)
_MESSAGE = cython.declare(cython.uchar, Shape.MESSAGE)
_TRIPLES = cython.declare(cython.uchar, Shape.TRIPLES)
_RISING = cython.declare(cython.uchar, Shape.RISING_TRIPLES)
_KNOWN = cython.declare(cython.uchar, Shape.KNOWN)

_HEAD = cython.declare(cython.Py_ssize_t, 13)
"""Op code, length and transaction id."""
_OVERHEAD = cython.declare(cython.Py_ssize_t, 17)
_LEAST = cython.declare(cython.Py_ssize_t, 12)
"""The least length that a frame may give."""
_FEW = cython.declare(cython.Py_ssize_t, 64)
"""So many elements are read here; a reader is asked for more."""


@cython.cfunc
@cython.inline
def _put(made, i: cython.Py_ssize_t, value) -> cython.void:
    """Put a value into an empty place, and keep the caller's reference."""
    Py_INCREF(value)
    bk_tuple_put(made, i, cython.cast(cython.pointer(PyObject), value))


def read_frames(
    kind,
    data: bytes,
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    txid: cython.longlong,
    most: cython.longlong,
    count: cython.Py_ssize_t,
):
    p: cython.p_uchar = cython.cast(cython.p_uchar, PyBytes_AS_STRING(data))
    ops: list = []
    ends: list = []
    length: cython.longlong
    body_end: cython.Py_ssize_t
    found: cython.Py_ssize_t = 0
    end = min(end, len(data))
    while found < count and 0 <= at <= end - _OVERHEAD:
        length = get32(p + at + 1)
        if p[at] > 127 or length < _LEAST or length > most or length > end - at - 5:
            break
        if txid < 1 or get64(p + at + 5) != txid:
            break
        body_end = at + 1 + cython.cast(cython.Py_ssize_t, length)
        if get32(p + body_end) != bk_crc32(0, p + at, body_end - at):
            break
        op = bk_tuple_of(kind, 4)
        _put(op, 0, cython.cast(object, cython.cast(cython.long, p[at])))
        _put(op, 1, txid)
        _put(op, 2, PyBytes_FromStringAndSize(cython.cast(cython.p_char, p + at + _HEAD), body_end - at - _HEAD))
        _put(op, 3, None)
        bk_tuple_filled(op)
        ops.append(op)
        at = body_end + 4
        ends.append(at)
        found += 1
        if txid == 0x7FFFFFFFFFFFFFFF:
            break
        txid += 1
    return ops, ends


def body_decoder(kind, fields):
    if len(fields) > MAX_FIELDS:
        raise ValueError(f"a body has at most {MAX_FIELDS} fields, not {len(fields)}")
    shapes = bytes([field.shape for field in fields])
    return partial(_read_body, kind, shapes, [field.read for field in fields], [field.inside for field in fields])


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _vint(
    p: cython.p_uchar, at: cython.Py_ssize_t, size: cython.Py_ssize_t, value: cython.pointer(cython.longlong)
) -> cython.Py_ssize_t:
    """Where Hadoop's integer of at most seven bytes at ``at`` ends; -1 if it does not, or has more."""
    first: cython.int
    count: cython.int
    k: cython.int
    found: cython.longlong = 0
    if at >= size:
        return -1
    first = p[at]
    if first < 0x80 or first >= 0x90:
        value[0] = first if first < 0x80 else first - 0x100
        return at + 1
    count = (0x88 if first < 0x88 else 0x90) - first
    if count > 6 or count > size - at - 1:
        return -1
    for k in range(count):
        found = found << 8 | p[at + 1 + k]
    value[0] = -1 - found if first < 0x88 else found
    return at + 1 + count


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_ascii(p: cython.p_uchar, n: cython.Py_ssize_t) -> cython.bint:
    every: cython.uchar = 0
    i: cython.Py_ssize_t
    for i in range(n):
        every |= p[i]
    return every < 0x80


@cython.cfunc
@cython.inline
def _triple(kind, a: cython.longlong, b: cython.longlong, c: cython.longlong):
    made = bk_tuple_of(kind, 3)
    _put(made, 0, a)
    _put(made, 1, b)
    _put(made, 2, c)
    bk_tuple_filled(made)
    return made


@cython.cfunc
def _triples(kind, p: cython.p_uchar, count: cython.Py_ssize_t):
    i: cython.Py_ssize_t
    if count == 1:
        return (_triple(kind, get64(p), get64(p + 8), get64(p + 16)),)
    made: list = []
    for i in range(count):
        made.append(_triple(kind, get64(p + 24 * i), get64(p + 24 * i + 8), get64(p + 24 * i + 16)))
    return tuple(made)


@cython.cfunc
def _rising(kind, p: cython.p_uchar, size: cython.Py_ssize_t, at: cython.pointer(cython.Py_ssize_t)):
    """Triples from ``at`` on, which is moved behind them; None, and nothing is moved: ask their reader."""
    count: cython.longlong = 0
    more: cython.longlong = 0
    length: cython.longlong = 0
    generation: cython.longlong = 0
    first: cython.longlong
    _i: cython.Py_ssize_t
    here: cython.Py_ssize_t = _vint(p, at[0], size, cython.address(count))
    if here < 0 or count < 0 or count > _FEW:
        return None
    made: list = []
    for _i in range(count):
        if size - here < 8:
            return None
        first = get64(p + here)
        here = _vint(p, here + 8, size, cython.address(more))
        if here < 0:
            return None
        length += more
        here = _vint(p, here, size, cython.address(more))
        if here < 0:
            return None
        generation += more
        made.append(_triple(kind, first, length, generation))
    at[0] = here
    return tuple(made)


@cython.cfunc
def _known(known: dict, p: cython.p_uchar, size: cython.Py_ssize_t, at: cython.pointer(cython.Py_ssize_t)):
    """What the bytes from ``at`` on are known to mean, and ``at`` is moved behind them; None: they are not known."""
    here: cython.Py_ssize_t = at[0]
    stop: cython.Py_ssize_t
    if here >= size:
        return None
    stop = here + 1 + p[here]
    if stop >= size:
        return None
    stop += 3 + p[stop]
    if stop > size:
        return None
    found = known.get(PyBytes_FromStringAndSize(cython.cast(cython.p_char, p + here), stop - here))
    if found is not None:
        at[0] = stop
    return found


def _read_body(kind, shapes: bytes, readers: list, inside: list, body: bytes):
    n: cython.Py_ssize_t = len(shapes)
    size: cython.Py_ssize_t = len(body)
    shape_at: cython.p_uchar = cython.cast(cython.p_uchar, PyBytes_AS_STRING(shapes))
    p: cython.p_uchar = cython.cast(cython.p_uchar, PyBytes_AS_STRING(body))
    at: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    made = bk_tuple_of(kind, n)
    for i in range(n):
        value = _read_field(shape_at[i], p, size, cython.address(at), readers, inside, i)
        if value is None:
            value, where = readers[i](body, at)
            at = where
            if at < 0:
                raise ValueError("a reader went back")
        _put(made, i, value)
    if at != size:
        raise ValueError("the body is not one of its kind")
    bk_tuple_filled(made)
    return made


@cython.cfunc
@cython.inline
def _read_field(
    shape: cython.uchar,
    p: cython.p_uchar,
    size: cython.Py_ssize_t,
    where: cython.pointer(cython.Py_ssize_t),
    readers: list,
    inside: list,
    i: cython.Py_ssize_t,
):
    """The field at ``where``, which is moved behind it; None, and nothing is moved, if its reader is to be asked.

    Raises ValueError if the bytes end before it does, or it is impossible.
    """
    at: cython.Py_ssize_t = where[0]
    left: cython.Py_ssize_t = size - at
    count: cython.Py_ssize_t
    if shape == _I64:
        if left < 8:
            raise ValueError("the body ends too early")
        where[0] = at + 8
        return get64(p + at)
    if shape == _STRING:
        if left < 2:
            raise ValueError("the body ends too early")
        count = p[at] << 8 | p[at + 1]
        if count > left - 2:
            raise ValueError("the body ends too early")
        if not _is_ascii(p + at + 2, count):
            return None
        where[0] = at + 2 + count
        return p[at + 2 : at + 2 + count].decode("ascii")
    if shape in (_I8, _I16, _I32, _BOOL):
        return _read_small(shape, p + at, left, where)
    if shape == _MESSAGE:
        if left < 1:
            raise ValueError("the body ends too early")
        if p[at]:
            return None
        where[0] = at + 1
        return ()
    if shape == _CLIENT_ID:
        if left < 2:
            raise ValueError("the body ends too early")
        count = p[at] << 8 | p[at + 1]
        if count > left - 2 or (count != 0 and count != 16):
            raise ValueError("a client's id has 16 bytes or none")
        where[0] = at + 2 + count
        return PyBytes_FromStringAndSize(cython.cast(cython.p_char, p + at + 2), count)
    if shape in (_COUNTED, _TRIPLES):
        return _read_counted(shape == _TRIPLES, p + at, left, where, inside[i])
    if shape == _RISING:
        return _rising(inside[i], p, size, where)
    if shape == _KNOWN:
        return _known(inside[i], p, size, where)
    if shape == _ABSENT:
        return 0
    return None


@cython.cfunc
@cython.inline
def _read_small(
    shape: cython.uchar, p: cython.p_uchar, left: cython.Py_ssize_t, where: cython.pointer(cython.Py_ssize_t)
):
    """The integer or flag at ``p``, where ``left`` bytes are; ``where`` is moved behind it. Raises ValueError."""
    size: cython.Py_ssize_t = 4 if shape == _I32 else 2 if shape == _I16 else 1
    if left < size:
        raise ValueError("the body ends too early")
    where[0] += size
    if shape == _I32:
        return cython.cast(cython.int, get32(p))
    if shape == _I16:
        return cython.cast(cython.short, p[0] << 8 | p[1])
    if shape == _I8:
        return cython.cast(cython.schar, p[0])
    if p[0] > 1:
        raise ValueError("a flag is neither 0 nor 1")
    return p[0] == 1


@cython.cfunc
def _read_counted(
    triples: cython.bint,
    p: cython.p_uchar,
    left: cython.Py_ssize_t,
    where: cython.pointer(cython.Py_ssize_t),
    kind,
):
    """As _read_field, for elements behind their number at ``p``."""
    count: cython.Py_ssize_t
    if left < 4:
        raise ValueError("the body ends too early")
    count = get32(p)
    if count == 0:
        where[0] += 4
        return ()
    if not triples or count > _FEW or 24 * count > left - 4:
        return None
    where[0] += 4 + 24 * count
    return _triples(kind, p + 4, count)
