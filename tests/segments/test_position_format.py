from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segments.errors import PositionFormatError
from segments.position import Position
from segments.position_format import decode_position, encode_position, from_dlsn, to_dlsn

numbers = st.integers(min_value=-1, max_value=2**63 - 1)
positions = st.builds(Position, numbers, numbers, numbers)


@given(positions)
def test_a_position_survives_25_bytes_and_base64(position: Position) -> None:
    """SEG-02 version-1 position round-trips as 25 bytes and as base64"""
    assert len(to_dlsn(position)) == 25 and len(encode_position(position)) == 36
    assert from_dlsn(to_dlsn(position)) == position
    assert decode_position(encode_position(position)) == position


def test_the_bytes_are_those_of_a_dlsn() -> None:
    """SEG-02 the fields are big-endian behind a byte with the version"""
    assert to_dlsn(Position(1, 2, 3)) == b"".join((b"\1", *(n.to_bytes(8, "big") for n in (1, 2, 3))))
    assert encode_position(Position(1, 2, 3)) == "AQAAAAAAAAABAAAAAAAAAAIAAAAAAAAAAw=="


@given(positions)
def test_the_old_form_of_200_bytes_is_read_and_written(position: Position) -> None:
    """SEG-03 version-0 position (200 bytes) is readable and writable"""
    old = to_dlsn(position, version=0)
    assert len(old) == 200 and old[25:] == bytes(175)
    assert from_dlsn(old) == position


@pytest.mark.parametrize(
    "raw",
    [b"", b"\1", to_dlsn(Position(1, 2, 3)) + b"\0", to_dlsn(Position(1, 2, 3), version=0)[:-1], b"\2" + bytes(24)],
)
def test_another_version_or_length_is_refused(raw: bytes) -> None:
    """SEG-02 wrong version or length refused"""
    with pytest.raises(PositionFormatError):
        from_dlsn(raw)


@pytest.mark.parametrize("text", ["", "not base64!", "AQAA", "1:2:3"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(PositionFormatError):
        decode_position(text)


def test_a_version_or_a_number_that_cannot_be_is_refused() -> None:
    with pytest.raises(PositionFormatError, match="version 0 or 1"):
        to_dlsn(Position(1, 2, 3), version=2)
    with pytest.raises(PositionFormatError, match="64 bits"):
        to_dlsn(Position(2**63, 0, 0))
