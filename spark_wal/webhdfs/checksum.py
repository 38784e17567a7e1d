"""HDFS's checksum of a file: MD5 of the MD5s of each block's CRC32Cs, one for each 512 bytes."""

from __future__ import annotations

import hashlib
import struct
from typing import Final

import crc32c

BYTES_PER_CRC: Final = 512
EMPTY_MD5: Final = "70bc8f4b72a86921468bf8e8441dce51"
"""What HDFS says of a file without a block."""


class CompositeChecksum:
    """Takes a file's bytes in order."""

    def __init__(self, block_size: int) -> None:
        self._block_size = block_size
        self._in_block = 0
        self._rest = bytearray()
        self._block = hashlib.md5(usedforsecurity=False)
        self._whole = hashlib.md5(usedforsecurity=False)
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
        self._whole.update(self._block.digest())
        self._block = hashlib.md5(usedforsecurity=False)
        self._in_block = 0

    def finish(self) -> tuple[str, str, int]:
        """Algorithm, bytes in hexadecimal and their length, as FileChecksum has them."""
        if self.length == 0:
            return "MD5-of-0MD5-of-0CRC32", "00000000" + "00" * 8 + EMPTY_MD5 + "00000000", 28
        if self._rest:
            self._crc(bytes(self._rest))
        if self._in_block:
            self._end_block()
        crcs_per_block = 0 if self.length <= self._block_size else self._block_size // BYTES_PER_CRC
        head = struct.pack(">IQ", BYTES_PER_CRC, crcs_per_block).hex()
        name = f"MD5-of-{crcs_per_block}MD5-of-{BYTES_PER_CRC}CRC32C"
        return name, head + self._whole.hexdigest() + "00000000", 28
