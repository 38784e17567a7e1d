"""The stream of LZ4 blocks in which Spark compresses state: lz4-java's frames, which no Python package reads.

Each block is ``LZ4Block``, a byte (method and size), three little-endian numbers (compressed length, length, checksum)
and its bytes. The checksum is xxHash32 of the plain bytes, of which 28 bits are kept. A block of length 0 is the end.
Some 10 MB/s: for checking, not for serving.
"""

from __future__ import annotations

import struct
from typing import Final

MAGIC: Final = b"LZ4Block"
_HEAD: Final = struct.Struct("<8sBIII")
_STORED: Final = 0x10
_COMPRESSED: Final = 0x20
_BLOCK_MAX: Final = 1 << 25
_SEED: Final = 0x9747B28C
_MASK: Final = 0xFFFFFFFF
_P1, _P2, _P3, _P4, _P5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393


class BlockStreamError(Exception):
    """The stream is short or damaged. The text says where."""


def read_stream(data: bytes) -> bytes:
    """The plain bytes of a whole stream.

    Raises:
        BlockStreamError: a block is cut short or damaged, or the end is missing.
    """
    found = bytearray()
    at = 0
    while True:
        if at + _HEAD.size > len(data):
            raise BlockStreamError(f"it is cut short: it has {len(data)} bytes, and the block that ends it is missing")
        magic, token, packed, length, checksum = _HEAD.unpack_from(data, at)
        if magic != MAGIC:
            raise BlockStreamError(f"at byte {at} is no block of LZ4")
        start, at = at, at + _HEAD.size + packed
        if at > len(data):
            raise BlockStreamError(f"it is cut short: the block at byte {start} ends at {at}, the file at {len(data)}")
        if length == 0:
            if at != len(data):
                raise BlockStreamError(f"{len(data) - at} bytes follow its end")
            return bytes(found)
        plain = _plain(data[start + _HEAD.size : at], token & 0xF0, length, start)
        if xxhash32(plain, _SEED) & 0xFFFFFFF != checksum:
            raise BlockStreamError(f"the block at byte {start} does not match its checksum")
        found += plain


def _plain(packed: bytes, method: int, length: int, start: int) -> bytes:
    try:
        if method not in (_STORED, _COMPRESSED) or length > _BLOCK_MAX:
            raise IndexError
        plain = packed if method == _STORED else decompress(packed, length)
    except IndexError:
        plain = b""
    if len(plain) != length:
        raise BlockStreamError(f"the block at byte {start} is damaged")
    return plain


def decompress(packed: bytes, length: int) -> bytes:
    """The plain bytes of one block, at most ``length`` and what its last sequence adds.

    Raises:
        IndexError: the block is damaged.
    """
    found = bytearray()
    at = 0
    while at < len(packed) and len(found) <= length:
        token = packed[at]
        count, at = _count(packed, at + 1, token >> 4)
        found += packed[at : at + count]
        at += count
        if at >= len(packed):
            break
        back = packed[at] | packed[at + 1] << 8
        count, at = _count(packed, at + 2, token & 15)
        if back == 0 or back > len(found) or count > length:
            raise IndexError("a sequence begins before its block")
        count += 4
        while count > 0:
            piece = found[-back:][:count] if back >= count else bytes(found[-back:]) * (count // back + 1)
            found += piece[:count]
            count -= len(piece[:count])
    return bytes(found)


def _count(packed: bytes, at: int, first: int) -> tuple[int, int]:
    if first < 15:
        return first, at
    while (more := packed[at]) == 255:
        first, at = first + 255, at + 1
    return first + more, at + 1


def xxhash32(data: bytes, seed: int) -> int:
    """xxHash32, for blocks of some kilobytes."""
    whole = len(data) & ~15
    if whole:
        a, b, c, d = (seed + _P1 + _P2) & _MASK, (seed + _P2) & _MASK, seed, (seed - _P1) & _MASK
        for w, x, y, z in struct.iter_unpack("<4I", data[:whole]):
            a = (a + w * _P2) & _MASK
            a = ((a << 13 | a >> 19) * _P1) & _MASK
            b = (b + x * _P2) & _MASK
            b = ((b << 13 | b >> 19) * _P1) & _MASK
            c = (c + y * _P2) & _MASK
            c = ((c << 13 | c >> 19) * _P1) & _MASK
            d = (d + z * _P2) & _MASK
            d = ((d << 13 | d >> 19) * _P1) & _MASK
        mixed = _left(a, 1) + _left(b, 7) + _left(c, 12) + _left(d, 18)
    else:
        mixed = seed + _P5
    mixed = (mixed + len(data)) & _MASK
    words = whole + ((len(data) - whole) & ~3)
    for (word,) in struct.iter_unpack("<I", data[whole:words]):
        mixed = _left(mixed + word * _P3, 17) * _P4 & _MASK
    for byte in data[words:]:
        mixed = _left(mixed + byte * _P5, 11) * _P1 & _MASK
    mixed = (mixed ^ mixed >> 15) * _P2 & _MASK
    mixed = (mixed ^ mixed >> 13) * _P3 & _MASK
    return mixed ^ mixed >> 16


def _left(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> (32 - bits)) & _MASK
