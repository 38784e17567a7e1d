from __future__ import annotations

import sys
from typing import Any

import pytest

from segments.entries import compression as module
from segments.entries.compression import Compression, compress, decompress
from segments.errors import EntryCorruptError, MissingLibraryError, UnsupportedStreamFormatError

BODY = b"some bytes that repeat, " * 40


@pytest.mark.parametrize("codec", Compression)
def test_a_body_survives(codec: Compression) -> None:
    assert bytes(decompress(codec, memoryview(compress(codec, BODY)), len(BODY))) == BODY
    assert Compression.named(codec.name.lower()) is codec


@pytest.mark.parametrize("codec", [Compression.LZ4, Compression.ZSTD])
def test_a_damaged_body_is_noticed(codec: Compression) -> None:
    packed = compress(codec, BODY)
    for bad, size in ((packed[:-3], len(BODY)), (b"\xff" * 20, 10), (packed, len(BODY) + 1), (packed, len(BODY) - 1)):
        with pytest.raises(EntryCorruptError):
            decompress(codec, memoryview(bad), size)


def test_an_unknown_codec_is_refused() -> None:
    """SEG-08 unknown codec refused"""
    with pytest.raises(UnsupportedStreamFormatError, match="codec 7"):
        decompress(7, memoryview(b""), 0)


@pytest.mark.parametrize(("codec", "library"), [(Compression.LZ4, "lz4.block"), (Compression.ZSTD, "zstandard")])
def test_a_missing_library_is_named(codec: Compression, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    no_library: Any = None
    monkeypatch.setitem(sys.modules, library, no_library)
    module._lz4.cache_clear()
    module._zstd.cache_clear()
    try:
        with pytest.raises(MissingLibraryError, match=r"pip install '\.\[streams\]'"):
            compress(codec, BODY)
    finally:
        module._lz4.cache_clear()
        module._zstd.cache_clear()
