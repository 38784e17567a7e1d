"""Bytes come back; those that are damaged, or say that they are larger, do not. Streams' own tests look closer."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from bookkeeper import compression
from bookkeeper.compression import Compression, DamagedBytesError, compress, decompress
from bookkeeper.errors import ConfigError

BODY = b"some bytes that repeat, " * 40


@pytest.mark.parametrize("codec", Compression)
def test_bytes_come_back(codec: Compression) -> None:
    assert bytes(decompress(codec, memoryview(compress(codec, BODY)), len(BODY))) == BODY
    assert Compression.named(codec.name.lower()) is codec


@pytest.mark.rule("X40")
@pytest.mark.parametrize("codec", [Compression.LZ4, Compression.ZSTD])
def test_damaged_bytes_are_noticed(codec: Compression) -> None:
    packed = bytes(compress(codec, BODY))
    for bad, size in ((packed[:-3], len(BODY)), (b"\xff" * 20, 10), (packed, len(BODY) + 1), (packed, len(BODY) - 1)):
        with pytest.raises(DamagedBytesError):
            decompress(codec, memoryview(bad), size)


@pytest.mark.parametrize(("codec", "library"), [(Compression.LZ4, "lz4.block"), (Compression.ZSTD, "zstandard")])
def test_a_missing_library_is_named(codec: Compression, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    no_library: Any = None
    monkeypatch.setitem(sys.modules, library, no_library)
    compression._lz4.cache_clear()
    compression._zstd.cache_clear()
    try:
        with pytest.raises(ConfigError, match=r"pip install '\.\[streams\]'"):
            compression.require_library(codec)
    finally:
        compression._lz4.cache_clear()
        compression._zstd.cache_clear()
