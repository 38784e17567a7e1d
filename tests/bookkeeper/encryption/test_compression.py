"""A payload comes back from its packed form, and nothing is unpacked beyond what an entry can be."""

from __future__ import annotations

import tracemalloc

import pytest

from bookkeeper.encryption.compression import Compression, pack, unpack
from bookkeeper.errors import DecryptionError

PACKED = [Compression.LZ4, Compression.ZSTD]


@pytest.mark.rule("X24")
@pytest.mark.parametrize("compression", PACKED)
@pytest.mark.parametrize("payload", [b"", b"x", b"repeat " * 500, bytes(range(256))])
def test_a_payload_comes_back_and_is_at_most_a_byte_longer(compression: Compression, payload: bytes) -> None:
    packed = pack(compression, payload)
    assert unpack(compression, packed, len(payload)) == payload
    assert len(packed) <= len(payload) + 1
    assert payload[:4] != b"repe" or len(packed) < 100


@pytest.mark.rule("X40", "P12")
@pytest.mark.parametrize("compression", PACKED)
def test_nothing_larger_than_an_entry_is_made_room_for(compression: Compression) -> None:
    bomb = pack(compression, bytes(30_000_000))
    tracemalloc.start()
    try:
        for packed in (bomb, bomb[:1] + b"\xff\xff\xff\xff" + bomb[5:], bomb[:1] + (9).to_bytes(4, "big") + bomb[5:]):
            with pytest.raises(DecryptionError, match="cannot be unpacked"):
                unpack(compression, packed, 1_000_000)
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.rule("X40")
@pytest.mark.parametrize("packed", [b"", b"\x01", b"\x01\0\0\0", b"\x02\0\0\0\x01x", b"\x01\0\0\0\x05\xff\xff"])
def test_what_pack_has_not_made_is_refused(packed: bytes) -> None:
    with pytest.raises(DecryptionError):
        unpack(Compression.ZSTD, packed, 100)
