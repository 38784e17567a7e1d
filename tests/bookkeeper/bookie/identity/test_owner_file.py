"""The bytes of the file ``owners``."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.access import Resource
from bookkeeper.bookie.identity.owner_file import decode_owners, encode_group, refuse_damage
from bookkeeper.errors import CorruptionError, UnsupportedFormatError
from bookkeeper.storage.base.durable_file import stamp

A, B = Resource.parse("ledgers:a"), Resource.parse("paths:/ä")
ONE, TWO = encode_group({A: [1, 2**62], B: [5]}), encode_group({B: [1]})


def owned(data: bytes) -> list[tuple[str, list[int]]]:
    return [(str(owner), list(ledgers)) for owner, ledgers in decode_owners(data, "owners").parts]


def test_what_is_written_is_read_in_its_order() -> None:
    assert owned(ONE + TWO) == [("ledgers:a", [1, 2**62]), ("paths:/ä", [5]), ("paths:/ä", [1])]
    assert decode_owners(b"", "owners").end == 0


@given(st.integers(0, len(TWO) - 1), st.booleans())
def test_a_torn_last_group_is_cut(size: int, zeros: bool) -> None:
    torn = TWO[:size] + (bytes(len(TWO) - size) if zeros else b"")
    if torn == TWO:
        return
    found = decode_owners(ONE + torn, "owners")
    assert found.damage is None and found.end == len(ONE) and len(found.parts) == 2


@given(st.integers(0, len(ONE) - 1), st.integers(1, 255))
def test_a_damaged_group_with_a_good_one_behind_it_is_damage(at: int, flip: int) -> None:
    bad = bytearray(ONE)
    bad[at] ^= flip
    found = decode_owners(bytes(bad) + TWO, "owners")
    assert found.damage is not None and owned(bytes(bad) + TWO) == [("paths:/ä", [1])]
    with pytest.raises(CorruptionError, match="offset 0"):
        refuse_damage(bytes(bad) + TWO, "owners")


def test_a_later_version_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedFormatError, match="owners"):
        decode_owners(ONE + stamp(b"BKOW", 2, b"?"), "owners")


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    for data in (body, stamp(b"BKOW", 1, body)):
        found = decode_owners(data, "owners")
        assert 0 <= found.end <= len(data)


def test_a_group_that_ends_before_its_last_ledger_is_none() -> None:
    """Its checksum is right: whoever wrote it has counted more ledgers than it holds."""
    text = str(A).encode()
    cut = stamp(b"BKOW", 1, struct.pack(">HI", len(text), 2) + text + struct.pack(">q", 7))
    found = decode_owners(ONE + cut, "owners")
    assert found.end == len(ONE) and len(found.parts) == 2
    assert decode_owners(ONE + cut + TWO, "owners").damage is not None
