"""Compressing the body of an entry. Only this module uses the libraries for it, and imports each when it is needed."""

from __future__ import annotations

from enum import IntEnum
from functools import cache
from typing import Any, Final

from bookkeeper.install import how_to_install
from segments.entries.layout import BODY_MAX
from segments.errors import EntryCorruptError, MissingLibraryError, UnsupportedStreamFormatError

_NOT_TOLD: Final = -1
"""What the library says of a zstd frame that does not tell how large its content is."""


class Compression(IntEnum):
    """How the body of an entry is stored."""

    NONE = 0
    LZ4 = 1
    """A block without a frame."""
    ZSTD = 2

    @classmethod
    def named(cls, name: str) -> Compression:
        """``"none"``, ``"lz4"`` or ``"zstd"``. Raises: KeyError."""
        return cls[name.upper()]


def require_library(codec: Compression) -> None:
    """Make sure that this process can compress so. Raises: MissingLibraryError: names what to install."""
    compress(codec, b"")


def compress(codec: Compression, body: bytes) -> bytes:
    """The body, compressed.

    Raises:
        MissingLibraryError: names what to install.
    """
    if codec is Compression.LZ4:
        packed: bytes = _lz4().compress(body, store_size=False)
        return packed
    if codec is Compression.ZSTD:
        frame: bytes = _zstd().ZstdCompressor(level=1).compress(body)
        return frame
    return body


def decompress(codec: int, stored: memoryview, size: int) -> bytes | memoryview:
    """The body of ``size`` bytes.

    Nothing is unpacked before it is known to be so large, and no larger than a body can be: the sizes come
    with the bytes, and some hundred bytes may say that they are gigabytes.

    Raises:
        UnsupportedStreamFormatError: an unknown codec. EntryCorruptError: the bytes are damaged, or have another size.
        MissingLibraryError: names what to install.
    """
    if codec != Compression.NONE and not 0 <= size <= BODY_MAX:
        raise EntryCorruptError(f"an entry's body has {size} bytes by its header, and at most {BODY_MAX} are possible")
    if codec == Compression.NONE:
        body: bytes | memoryview = stored
    elif codec == Compression.LZ4:
        library = _lz4()
        try:
            body = library.decompress(stored, uncompressed_size=size)
        except Exception as error:  # the library has an error of its own for each version
            raise EntryCorruptError(f"an entry's LZ4 block is damaged: {error}") from error
    elif codec == Compression.ZSTD:
        library = _zstd()
        try:
            told = library.frame_content_size(stored)  # where the frame tells it, the library makes room for as much
            if told not in (size, _NOT_TOLD):
                raise EntryCorruptError(f"an entry's zstd frame has {told} bytes, and its header says {size}")
            body = library.ZstdDecompressor().decompress(stored, max_output_size=size)
        except (library.ZstdError, MemoryError) as error:
            raise EntryCorruptError(f"an entry's zstd frame is damaged: {error}") from error
    else:
        raise UnsupportedStreamFormatError(
            f"an entry is compressed with codec {codec}, which this program does not know"
        )
    if len(body) != size:
        raise EntryCorruptError(f"an entry's body has {len(body)} bytes, and its header says {size}")
    return body


@cache
def _lz4() -> Any:
    try:
        import lz4.block
    except ImportError as error:
        raise MissingLibraryError(f"lz4 is not installed: {how_to_install('streams')}") from error
    return lz4.block


@cache
def _zstd() -> Any:
    try:
        import zstandard
    except ImportError as error:
        raise MissingLibraryError(f"zstandard is not installed: {how_to_install('streams')}") from error
    return zstandard
