"""Compressing a payload before it is sealed: nothing can be compressed afterwards.

    u8   0: the payload follows as it is, because it does not become smaller
         1: u32, big-endian: the payload's size; then the payload, compressed

The libraries are in :mod:`bookkeeper.compression`.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from bookkeeper.compression import Compression as Compression
from bookkeeper.compression import DamagedBytesError, compress, decompress
from bookkeeper.compression import require_library as require_library
from bookkeeper.errors import DecryptionError
from bookkeeper.seams import Buffer

_HEAD: Final = Struct(">BI")
_AS_IT_IS: Final = b"\0"


def pack(compression: Compression, payload: Buffer) -> bytes:
    """The payload as it is sealed: never more than a byte longer."""
    packed = compress(compression, payload)
    if len(packed) + _HEAD.size < len(payload) + 1:
        return _HEAD.pack(1, len(payload)) + packed
    return _AS_IT_IS + payload


def unpack(compression: Compression, packed: bytes, size_max: int) -> bytes:
    """The payload again. Its size is looked at before anything is made room for.

    Raises: DecryptionError: this is nothing that ``pack`` has made, or is larger than ``size_max``.
    """
    if packed[:1] == _AS_IT_IS:
        return packed[1:]
    try:
        if len(packed) < _HEAD.size or packed[0] != 1:
            raise DamagedBytesError("its first byte is none that this program knows")
        size = _HEAD.unpack_from(packed)[1]
        if size > size_max:
            raise DamagedBytesError(f"it has {size} bytes, and an entry has at most {size_max}")
        return bytes(decompress(compression, memoryview(packed)[_HEAD.size :], size))
    except DamagedBytesError as error:
        raise DecryptionError(f"an entry was decrypted and cannot be unpacked: {error}") from error
