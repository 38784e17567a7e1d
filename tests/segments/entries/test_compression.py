from __future__ import annotations

import sys
import tracemalloc
from typing import Any

import pytest

from bookkeeper import compression as module
from segments.entries.compression import Compression, compress, decompress
from segments.entries.layout import BODY_MAX
from segments.errors import EntryCorruptError, MissingLibraryError, UnsupportedStreamFormatError

BODY = b"some bytes that repeat, " * 40


@pytest.mark.parametrize("codec", Compression)
def test_a_body_survives(codec: Compression) -> None:
    assert bytes(decompress(codec, memoryview(compress(codec, BODY)), len(BODY))) == BODY
    assert Compression.named(codec.name.lower()) is codec


def test_what_is_not_compressed_is_handed_on_as_it_is_and_has_the_size_that_was_told() -> None:
    stored = memoryview(BODY)
    assert decompress(0, stored, len(BODY)) is stored
    for size in (len(BODY) - 1, len(BODY) + 1, 0, -1):
        with pytest.raises(EntryCorruptError):
            decompress(0, stored, size)


@pytest.mark.parametrize("codec", [Compression.LZ4, Compression.ZSTD])
def test_a_damaged_body_is_noticed(codec: Compression) -> None:
    packed = compress(codec, BODY)
    for bad, size in ((packed[:-3], len(BODY)), (b"\xff" * 20, 10), (packed, len(BODY) + 1), (packed, len(BODY) - 1)):
        with pytest.raises(EntryCorruptError):
            decompress(codec, memoryview(bad), size)


@pytest.mark.rule("X40", "P12")
@pytest.mark.parametrize("codec", [Compression.LZ4, Compression.ZSTD])
def test_nothing_is_unpacked_beyond_what_a_body_can_be(codec: Compression) -> None:
    """The size was believed: a kilobyte of zstd became thirty megabytes (or any number) before it was compared with
    the header, for the library goes by what the frame says; and a header of 4 GB was room for as much."""
    bomb = compress(codec, bytes(30_000_000))
    assert len(bomb) < 200_000
    tracemalloc.start()
    try:
        for stored, size in (
            (bomb, 10),
            (bomb, BODY_MAX),
            (bomb, 30_000_000),
            (bomb, BODY_MAX + 1),
            (bomb, (1 << 32) - 1),
            (compress(codec, BODY), (1 << 31) - 1),
            (compress(codec, BODY), -1),
        ):
            with pytest.raises(EntryCorruptError):
                decompress(codec, memoryview(stored), size)
        assert tracemalloc.get_traced_memory()[1] < 2 * BODY_MAX
    finally:
        tracemalloc.stop()


@pytest.mark.rule("X40")
def test_a_zstd_frame_tells_its_size_or_does_not() -> None:
    """One that says 2**60 bytes made the library run out of memory, which is no error of ours."""
    library = module._zstd()
    untold = library.ZstdCompressor(write_content_size=False).compress(BODY)
    assert bytes(decompress(Compression.ZSTD, memoryview(untold), len(BODY))) == BODY
    with pytest.raises(EntryCorruptError):
        decompress(Compression.ZSTD, memoryview(untold), len(BODY) - 1)
    huge = b"\x28\xb5\x2f\xfd\xe0" + (1 << 60).to_bytes(8, "little") + b"\x01\x00\x00"
    with pytest.raises(EntryCorruptError):
        decompress(Compression.ZSTD, memoryview(huge), BODY_MAX)


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
