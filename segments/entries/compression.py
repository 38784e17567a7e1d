"""Compressing the body of an entry, in the words of streams: the libraries are in :mod:`bookkeeper.compression`."""

from __future__ import annotations

from bookkeeper import compression
from bookkeeper.compression import Compression as Compression
from bookkeeper.errors import ConfigError
from segments.entries.layout import BODY_MAX
from segments.errors import EntryCorruptError, MissingLibraryError, UnsupportedStreamFormatError


def require_library(codec: Compression) -> None:
    """Make sure that this process can compress so. Raises: MissingLibraryError: names what to install."""
    compress(codec, b"")


def compress(codec: Compression, body: bytes) -> bytes:
    """The body, compressed.

    Raises:
        MissingLibraryError: names what to install.
    """
    try:
        return bytes(compression.compress(codec, body))
    except ConfigError as error:
        raise MissingLibraryError(str(error)) from error


def decompress(codec: int, stored: memoryview, size: int) -> bytes | memoryview:
    """The body of ``size`` bytes.

    Nothing is unpacked before it is known to be so large, and no larger than a body can be: the sizes come
    with the bytes, and some hundred bytes may say that they are gigabytes.

    Raises:
        UnsupportedStreamFormatError: an unknown codec. EntryCorruptError: the bytes are damaged, or have another size.
        MissingLibraryError: names what to install.
    """
    if not codec and len(stored) == size:  # most entries are not compressed
        return stored
    if codec != Compression.NONE and not 0 <= size <= BODY_MAX:
        raise EntryCorruptError(f"an entry's body has {size} bytes by its header, and at most {BODY_MAX} are possible")
    try:
        known = Compression(codec)
    except ValueError:
        raise UnsupportedStreamFormatError(
            f"an entry is compressed with codec {codec}, which this program does not know"
        ) from None
    try:
        return compression.decompress(known, stored, size)
    except compression.DamagedBytesError as error:
        raise EntryCorruptError(f"an entry's body cannot be unpacked: {error}") from error
    except ConfigError as error:
        raise MissingLibraryError(str(error)) from error
