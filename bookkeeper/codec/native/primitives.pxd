# What adds, reads and records share, inlined into each: numbers, varints, headers of v3, digests, records.
#
# No state, no I/O, no locks; every length is checked before it is followed, because the bytes come from anyone.
from bookkeeper.codec.native.crc cimport bk_crc32, bk_crc32c
from cpython cimport array
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.string cimport memcpy

ctypedef const unsigned char *Bytes
ctypedef unsigned char *Room


# -- big-endian numbers ----------------------------------------------------------------------------------


cdef inline unsigned int get32(Bytes p) noexcept:
    return <unsigned int>p[0] << 24 | <unsigned int>p[1] << 16 | <unsigned int>p[2] << 8 | <unsigned int>p[3]


cdef inline long long get64(Bytes p) noexcept:
    cdef unsigned long long high = get32(p)
    return <long long>(high << 32 | get32(p + 4))


cdef inline void put32(Room p, unsigned int value) noexcept:
    p[0] = <unsigned char>(value >> 24)
    p[1] = <unsigned char>(value >> 16)
    p[2] = <unsigned char>(value >> 8)
    p[3] = <unsigned char>value


cdef inline void put64(Room p, long long value) noexcept:
    cdef unsigned long long bits = <unsigned long long>value
    put32(p, <unsigned int>(bits >> 32))
    put32(p + 4, <unsigned int>bits)


# -- varints ---------------------------------------------------------------------------------------------


cdef inline Py_ssize_t varint(Bytes p, Py_ssize_t at, Py_ssize_t stop, unsigned long long *value) noexcept:
    """Where the varint at ``at`` ends; -1 if not before ``stop``, over 64 bits, or not in its shortest form."""
    cdef unsigned long long result = 0
    cdef int shift = 0
    cdef unsigned long long byte
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


cdef inline Py_ssize_t varint_size(unsigned long long value) noexcept:
    cdef Py_ssize_t n = 1
    while value > 0x7F:
        value >>= 7
        n += 1
    return n


cdef inline Room put_varint(Room p, unsigned long long value) noexcept:
    while value > 0x7F:
        p[0] = <unsigned char>((value & 0x7F) | 0x80)
        value >>= 7
        p += 1
    p[0] = <unsigned char>value
    return p + 1


# -- headers of protocol v3 ------------------------------------------------------------------------------


cdef inline Py_ssize_t v3_header(
    Bytes p, Py_ssize_t body, Py_ssize_t stop, unsigned char op, unsigned long long *txn
) noexcept:
    """Where header{3, op, txn} ends (before ``stop``); -1 if the body begins otherwise."""
    cdef Py_ssize_t at
    if stop - body < 8 or p[body] != 0x0A:
        return -1
    if p[body + 2] != 8 or p[body + 3] != 3 or p[body + 4] != 0x10 or p[body + 5] != op or p[body + 6] != 0x18:
        return -1
    at = varint(p, body + 7, stop, txn)
    if at < 0 or at >= stop or at != body + 2 + p[body + 1]:
        return -1
    return at


cdef inline Room put_header(Room p, unsigned char op, unsigned long long txn) noexcept:
    """header{3, op, txn}"""
    p[0] = 0x0A
    p[1] = <unsigned char>(5 + varint_size(txn))
    p[2] = 8
    p[3] = 3
    p[4] = 0x10
    p[5] = op
    p[6] = 0x18
    return put_varint(p + 7, txn)


# -- digests and records ---------------------------------------------------------------------------------


cdef inline Py_ssize_t digest_size(int digest) noexcept:
    return 8 if digest == 1 else 20 if digest == 2 else 4 if digest == 3 else 0


cdef inline void put_digest(Room p, int digest, Bytes header, Bytes payload, Py_ssize_t n) noexcept:
    """CRC32 (1) and CRC32C (3); the others have none here."""
    if digest == 3:
        put32(p, bk_crc32c(bk_crc32c(0, header, 32), payload, n))
    elif digest == 1:
        put32(p, 0)
        put32(p + 4, bk_crc32(bk_crc32(0, header, 32), payload, n))


cdef inline void put_record(Room p, Bytes entry, Py_ssize_t n) noexcept:
    """A disk record: length, checksum over length and entry, entry."""
    put32(p, <unsigned int>n)
    memcpy(p + 8, entry, n)
    put32(p + 4, bk_crc32c(bk_crc32c(0, p, 4), p + 8, n))


cdef inline bint has_crc(Bytes p, Py_ssize_t n) noexcept:
    """Of a whole record at ``p`` whose entry has ``n`` bytes."""
    return get32(p + 4) == bk_crc32c(bk_crc32c(0, p, 4), p + 8, n)


# -- objects of Python -----------------------------------------------------------------------------------


cdef inline object new_bytes(Py_ssize_t n):
    """Uninitialised bytes to be filled at once."""
    return PyBytes_FromStringAndSize(NULL, n)


cdef inline Room bytes_at(object data) noexcept:
    return <Room>PyBytes_AS_STRING(data)


cdef inline int check_bounds(Py_ssize_t total, Py_ssize_t start, Py_ssize_t end) except -1:
    if not (0 <= start <= end <= total):
        raise ValueError(f"{start}..{end} of {total}")
    return 0


cdef inline array.array longs(object values):
    if not isinstance(values, array.array) or (<array.array>values).ob_descr.typecode != c"q":
        raise TypeError("array('q') expected")
    return <array.array>values


cdef inline array.array ulongs(object values):
    if not isinstance(values, array.array) or (<array.array>values).ob_descr.typecode != c"Q":
        raise TypeError("array('Q') expected")
    return <array.array>values
