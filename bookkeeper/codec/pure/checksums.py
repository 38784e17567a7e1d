"""CRC32C and the digests of entries, for the codec in Python.

``crc32c`` is the package of that name where it is installed (it uses the CPU's instruction), crcmod otherwise.
"""

from __future__ import annotations

import hashlib
import hmac
import zlib
from collections.abc import Callable
from typing import Final

from bookkeeper.codec.shapes import Digest
from bookkeeper.seams import Buffer


def _library() -> Callable[[Buffer, int], int]:
    try:
        import crc32c as package

        return package.crc32c
    except ImportError:
        import crcmod.predefined

        function = crcmod.predefined.mkPredefinedCrcFun("crc-32c")
        return lambda data, seed: int(function(bytes(data), seed))


def _first(data: Buffer, seed: int) -> int:
    """Loads the library and puts its function in the place of this one. With the compiled codec that never comes."""
    global crc32c
    crc32c = _library()
    return crc32c(data, seed)


crc32c: Callable[[Buffer, int], int] = _first
"""``crc32c(data, seed)``: CRC32C of ``data``, continuing ``seed``. Not to be imported by name: it changes once."""

DIGEST_SIZES: Final[dict[int, int]] = {Digest.CRC32: 8, Digest.HMAC: 20, Digest.CRC32C: 4, Digest.DUMMY: 0}


def digest_of(kind: int, mac_key: bytes, header: Buffer, payload: Buffer) -> bytes:
    """The digest field of an entry: over its 32-byte header and its payload.

    Raises:
        KeyError: no such kind.
    """
    match kind:
        case Digest.CRC32C:
            return crc32c(payload, crc32c(header, 0)).to_bytes(4, "big")
        case Digest.CRC32:
            return zlib.crc32(payload, zlib.crc32(header)).to_bytes(8, "big")
        case Digest.HMAC:
            mac = hmac.new(mac_key, header, hashlib.sha1)
            mac.update(payload)
            return mac.digest()
        case Digest.DUMMY:
            return b""
    raise ValueError(f"no digest has the number {kind}")
