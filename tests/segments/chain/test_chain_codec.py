from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.codec import crc32c
from segments.chain import RemovedLedger, SegmentContents, StreamChain, StreamSegment, decode_chain, encode_chain
from segments.chain.chain_codec import VERSION, WITH_PUBLISHED
from segments.chain.stream_chain import REMOVING_MAX, SEGMENTS_MAX
from segments.errors import ChainCorruptError, UnsupportedStreamFormatError
from segments.position import Position
from tests.segments.chain.test_stream_chain import chain_of

numbers = st.integers(0, 2**62)
maybe = st.none() | numbers
small = st.integers(0, 2**31 - 1)
CONTENTS = st.builds(
    SegmentContents,
    st.just(5),
    numbers,
    small,
    st.none() | st.tuples(small, small),
    maybe,
    maybe,
    maybe,
    maybe,
    maybe,
    maybe,
    st.none() | small,
)


@given(CONTENTS, st.text(max_size=9), maybe, maybe, st.booleans(), st.lists(st.builds(RemovedLedger, small, numbers)))
def test_every_field_survives(
    contents: SegmentContents,
    text: str,
    seq: int | None,
    ledger: int | None,
    sealed: bool,
    removing: list[RemovedLedger],
) -> None:
    text = text.encode("utf-8", "ignore").decode()
    chain = StreamChain(
        text,
        3,
        text,
        text,
        text,
        (StreamSegment(4, 5, 6, 7, 8, 9, contents), StreamSegment(5, 1, 11, 2)),
        Position(1, 2, -1),
        seq,
        6,
        ledger,
        tuple(removing),
        sealed,
        11,
        seq,
    )
    assert decode_chain(encode_chain(chain)) == chain


def test_the_largest_chain_fits_into_a_value_of_the_store() -> None:
    done = SegmentContents(1, 1, 1, (1, 0), 1, 1, 1, 1, 1, 1, 1)
    segments = tuple(StreamSegment(n + 1, n, n, 1, 1, 1, done) for n in range(SEGMENTS_MAX))
    removing = tuple(RemovedLedger(0, 9_000 + n) for n in range(REMOVING_MAX))
    chain = StreamChain(
        "x" * 32, recent=segments, removing=removing, next_number=9_000, records=SEGMENTS_MAX, owner="x" * 500
    )
    assert len(encode_chain(chain)) < 1_000_000
    assert decode_chain(encode_chain(chain)) == chain


@pytest.mark.parametrize("at", range(0, len(encode_chain(chain_of(3, opened=True))), 3))
def test_a_changed_byte_is_noticed(at: int) -> None:
    data = bytearray(encode_chain(chain_of(3, opened=True)))
    data[at] ^= 0x20
    with pytest.raises((ChainCorruptError, UnsupportedStreamFormatError)):
        decode_chain(bytes(data))


@pytest.mark.parametrize("size", [0, 3, 5, 6, 40, -1])
def test_a_record_that_is_cut_short_is_noticed(size: int) -> None:
    with pytest.raises(ChainCorruptError):
        decode_chain(encode_chain(chain_of(3))[:size])


def test_a_record_of_a_newer_program_is_refused() -> None:
    """SEG-09 metadata of every version parses; too new refused with the right error"""
    data = bytearray(encode_chain(chain_of(3)))
    data[4:6] = (VERSION + 1).to_bytes(2, "little")
    with pytest.raises(UnsupportedStreamFormatError, match=f"format {VERSION + 1}"):
        decode_chain(bytes(data))


def test_a_record_that_breaks_its_own_rules_is_refused() -> None:
    """SEG-18 a missing or impossible number is an error, not a reset"""
    chain = chain_of(3, 3)
    for wrong in (replace(chain, records=5), replace(chain, next_number=2)):
        with pytest.raises(ChainCorruptError, match="rules"):
            decode_chain(encode_chain(wrong))


def test_bytes_behind_the_end_of_a_record_are_noticed_although_its_checksum_is_right() -> None:
    body = encode_chain(chain_of(3))[:-4] + b"\0"
    with pytest.raises(ChainCorruptError, match=f"it has {len(body)} bytes, and {len(body) - 1} are announced"):
        decode_chain(body + crc32c(body).to_bytes(4, "little"))


@pytest.mark.rule("X18")
def test_a_password_is_in_a_format_of_its_own_that_earlier_programs_refuse() -> None:
    """Without one the record is as they wrote it, and they read it."""
    chain = replace(chain_of(3, opened=True), password=bytes(range(32)))
    data = encode_chain(chain)
    assert decode_chain(data) == chain and "password" not in repr(chain)
    assert int.from_bytes(data[4:6], "little") == VERSION > WITH_PUBLISHED
    plain = encode_chain(replace(chain, password=b""))
    assert int.from_bytes(plain[4:6], "little") <= WITH_PUBLISHED and len(plain) < len(data) - 32


def test_a_record_of_the_format_with_a_password_has_one() -> None:
    data = bytearray(encode_chain(replace(chain_of(3), password=b"p"))[:-4])
    at = data.index(b"\x01\x00p")
    data[at : at + 3] = b"\x00\x00"
    with pytest.raises(ChainCorruptError, match="empty password"):
        decode_chain(bytes(data) + crc32c(data).to_bytes(4, "little"))
