"""Compressing bytes. Only this module uses the libraries for it, and imports each when it is needed."""

from __future__ import annotations

from enum import IntEnum
from functools import cache
from typing import Any, Final

from bookkeeper.errors import ConfigError, CorruptionError
from bookkeeper.install import how_to_install
from bookkeeper.seams import Buffer

_NOT_TOLD: Final = -1
"""What the library says of a zstd frame that does not tell how large its content is."""


class DamagedBytesError(CorruptionError):
    """Compressed bytes are damaged, or have another size than was said."""


class Compression(IntEnum):
    """How bytes are compressed. The numbers are stored."""

    NONE = 0
    LZ4 = 1
    """A block without a frame."""
    ZSTD = 2

    @classmethod
    def named(cls, name: str) -> Compression:
        """``"none"``, ``"lz4"`` or ``"zstd"``. Raises: KeyError."""
        return cls[name.upper()]


def require_library(codec: Compression) -> None:
    """Make sure that this process can compress so. Raises: ConfigError: names what to install."""
    compress(codec, b"")


def compress(codec: Compression, body: Buffer) -> Buffer:
    """The bytes, compressed.

    Raises:
        ConfigError: the library is missing; names what to install.
    """
    if codec is Compression.LZ4:
        packed: bytes = _lz4().compress(body, store_size=False)
        return packed
    if codec is Compression.ZSTD:
        frame: bytes = _zstd().ZstdCompressor(level=1).compress(body)
        return frame
    return body


def decompress(codec: Compression, stored: memoryview, size: int) -> bytes | memoryview:
    """The ``size`` bytes that were compressed. The caller has looked whether so many are possible: there is room made
    for as many, and for no more, whatever the bytes say.

    Raises:
        DamagedBytesError: the bytes are damaged, or have another size.
        ConfigError: the library is missing; names what to install.
    """
    if codec is Compression.NONE:
        body: bytes | memoryview = stored
    elif codec is Compression.LZ4:
        library = _lz4()
        try:
            body = library.decompress(stored, uncompressed_size=size)
        except Exception as error:  # the library has an error of its own for each version
            raise DamagedBytesError(f"an LZ4 block is damaged: {error}") from error
    else:
        library = _zstd()
        try:
            told = library.frame_content_size(stored)  # where the frame tells it, the library makes room for as much
            if told not in (size, _NOT_TOLD):
                raise DamagedBytesError(f"a zstd frame has {told} bytes, and {size} were announced")
            body = library.ZstdDecompressor().decompress(stored, max_output_size=size)
        except (library.ZstdError, MemoryError) as error:
            raise DamagedBytesError(f"a zstd frame is damaged: {error}") from error
    if len(body) != size:
        raise DamagedBytesError(f"there are {len(body)} bytes, and {size} were announced")
    return body


@cache
def _lz4() -> Any:
    try:
        import lz4.block
    except ImportError as error:
        raise ConfigError(f"lz4 is not installed: {how_to_install('streams')}") from error
    return lz4.block


@cache
def _zstd() -> Any:
    try:
        import zstandard
    except ImportError as error:
        raise ConfigError(f"zstandard is not installed: {how_to_install('streams')}") from error
    return zstandard
