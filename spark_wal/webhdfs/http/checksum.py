"""HDFS's checksum of a file: MD5 of the MD5s of each block's CRC32Cs, one for each 512 bytes.

HDFS computes the last MD5 over its whole buffer, which begins with 32 bytes and doubles. So the zeros behind the
blocks' MD5s count, also here.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Final

import crc32c

BYTES_PER_CRC: Final = 512
_BUFFER: Final = 32


class CompositeChecksum:
    """Computes the checksum of a file whose bytes come in order."""

    def __init__(self, block_size: int) -> None:
        self._block_size = block_size
        self._in_block = 0
        self._rest = bytearray()
        self._block = hashlib.md5(usedforsecurity=False)
        self._blocks = bytearray()
        self.length = 0

    def add(self, data: bytes) -> None:
        self.length += len(data)
        self._rest += data
        at = 0
        while len(self._rest) - at >= BYTES_PER_CRC or self._block_size - self._in_block <= len(self._rest) - at:
            size = min(BYTES_PER_CRC, self._block_size - self._in_block)
            self._crc(bytes(self._rest[at : at + size]))
            at += size
        del self._rest[:at]

    def _crc(self, data: bytes) -> None:
        self._block.update(struct.pack(">I", crc32c.crc32c(data)))
        self._in_block += len(data)
        if self._in_block == self._block_size:
            self._end_block()

    def _end_block(self) -> None:
        self._blocks += self._block.digest()
        self._block = hashlib.md5(usedforsecurity=False)
        self._in_block = 0

    def finish(self) -> tuple[str, str, int]:
        """Algorithm, bytes in hexadecimal and their length, as FileChecksum has them."""
        if self._rest:
            self._crc(bytes(self._rest))
        if self._in_block:
            self._end_block()
        capacity = _BUFFER
        while capacity < len(self._blocks):
            capacity *= 2
        padded = bytes(self._blocks).ljust(capacity, b"\0")
        digest = hashlib.md5(padded, usedforsecurity=False).hexdigest()
        if self.length == 0:
            return "MD5-of-0MD5-of-0CRC32", _hexadecimal(0, 0, digest), 28
        crcs_per_block = 0 if self.length <= self._block_size else self._block_size // BYTES_PER_CRC
        name = f"MD5-of-{crcs_per_block}MD5-of-{BYTES_PER_CRC}CRC32C"
        return name, _hexadecimal(BYTES_PER_CRC, crcs_per_block, digest), 28


def _hexadecimal(bytes_per_crc: int, crcs_per_block: int, digest: str) -> str:
    return struct.pack(">IQ", bytes_per_crc, crcs_per_block).hex() + digest + "00000000"
