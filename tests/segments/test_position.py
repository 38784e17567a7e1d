from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segments.errors import PositionFormatError
from segments.position import EARLIEST, LATEST, Position

numbers = st.integers(min_value=-1, max_value=2**63 - 1)
positions = st.builds(Position, numbers, numbers, numbers)


def test_positions_are_ordered_by_segment_then_entry_then_slot() -> None:
    """SEG-01 position order is (segment, entry, slot); special constants keep their order"""
    rising = [
        Position.BEFORE_FIRST,
        EARLIEST,
        Position(1, 0, 1),
        Position(1, 1, 0),
        Position(2, 0, -1),
        Position(2, 0, 0),
        LATEST,
    ]
    assert rising == sorted(rising) and len(set(rising)) == len(rising)
    assert EARLIEST.next == Position(1, 0, 1)
    assert Position.BEFORE_FIRST.next == EARLIEST


@given(positions)
def test_a_position_survives_25_bytes_and_base64(position: Position) -> None:
    """SEG-02 version-1 position round-trips as 25 bytes and as base64"""
    assert len(position.to_dlsn()) == 25 and len(position.encode()) == 36
    assert Position.from_dlsn(position.to_dlsn()) == position
    assert Position.decode(position.encode()) == position
    assert pickle.loads(pickle.dumps(position)) == position and hash(position) == hash(tuple(position))


def test_the_bytes_are_those_of_a_dlsn() -> None:
    """SEG-02 the fields are big-endian behind a byte with the version"""
    assert Position(1, 2, 3).to_dlsn() == b"".join((b"\1", *(n.to_bytes(8, "big") for n in (1, 2, 3))))
    assert Position(1, 2, 3).encode() == "AQAAAAAAAAABAAAAAAAAAAIAAAAAAAAAAw=="


@given(positions)
def test_the_old_form_of_200_bytes_is_read_and_written(position: Position) -> None:
    """SEG-03 version-0 position (200 bytes) is readable and writable"""
    old = position.to_dlsn(version=0)
    assert len(old) == 200 and old[25:] == bytes(175)
    assert Position.from_dlsn(old) == position


@pytest.mark.parametrize(
    "raw",
    [b"", b"\1", Position(1, 2, 3).to_dlsn() + b"\0", Position(1, 2, 3).to_dlsn(version=0)[:-1], b"\2" + bytes(24)],
)
def test_another_version_or_length_is_refused(raw: bytes) -> None:
    """SEG-02 wrong version or length refused"""
    with pytest.raises(PositionFormatError):
        Position.from_dlsn(raw)


@pytest.mark.parametrize("text", ["", "not base64!", "AQAA", "1:2:3"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(PositionFormatError):
        Position.decode(text)


def test_a_version_or_a_number_that_cannot_be_is_refused() -> None:
    with pytest.raises(PositionFormatError, match="version 0 or 1"):
        Position(1, 2, 3).to_dlsn(version=2)
    with pytest.raises(PositionFormatError, match="64 bits"):
        Position(2**63, 0, 0).to_dlsn()
