from __future__ import annotations

import struct

import lz4.block
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_wal.checkpoints.lz4_blocks import MAGIC, BlockStreamError, decompress, read_stream, xxhash32
from tests.spark_wal.checkpoints.samples import SampleStore

BYTES = st.binary(max_size=300) | st.builds(lambda piece, n: piece * n, st.binary(max_size=9), st.integers(0, 90))


@given(BYTES)
def test_a_block_of_the_library_is_read(plain: bytes) -> None:
    assert decompress(lz4.block.compress(plain, store_size=False), len(plain)) == plain


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(packed: bytes) -> None:
    try:
        decompress(packed, 64)
    except IndexError:
        pass


def test_the_published_values_of_the_hash() -> None:
    assert xxhash32(b"", 0) == 0x02CC5D05
    assert xxhash32(b"Nobody inspects the spammish repetition", 0) == 0xE2293B2F


def stream(*plain: bytes) -> bytes:
    found = b""
    for each in plain:
        head = struct.pack("<BIII", 0x15, len(each), len(each), xxhash32(each, 0x9747B28C) & 0xFFFFFFF if each else 0)
        found += MAGIC + head + each
    return found


def test_blocks_that_are_stored_as_they_are() -> None:
    assert read_stream(stream(b"one", b"two", b"")) == b"onetwo"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (stream(b"one"), "the block that ends it is missing"),
        (stream(b"one")[:-1], "cut short"),
        (stream(b"one", b"") + b"x", "1 bytes follow its end"),
        (stream(b"one", b"").replace(b"one", b"onf"), "does not match its checksum"),
        (stream(b"one", b"").replace(b"\x15\x03", b"\x35\x03"), "damaged"),
        (stream(b"one") + b"x" * 21, "no block of LZ4"),
    ],
)
def test_what_is_wrong_is_said(data: bytes, text: str) -> None:
    with pytest.raises(BlockStreamError, match=text):
        read_stream(data)


def test_a_real_delta_ends_with_minus_one() -> None:
    assert read_stream(SampleStore("hdfs").files["state/0/0/9.delta"]).endswith(b"\xff\xff\xff\xff")
