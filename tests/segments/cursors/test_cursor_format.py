"""A cursor's node as bytes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segments.cursors.acked_ranges import AckedRange, FrozenRanges, Mark
from segments.cursors.cursor_format import FORMAT, decode_cursor, encode_cursor
from segments.cursors.cursor_state import BY_PROPERTY, CursorChange, CursorState, CursorVersion
from segments.errors import CursorFullError, StreamCorruptError, UnsupportedStreamFormatError
from segments.position import EARLIEST, Position

INT = st.integers(0, 2**62)
POSITIONS = st.builds(Position, INT, INT, INT)
MARKS = st.builds(Mark, INT, POSITIONS)
VERSIONS = st.builds(
    CursorVersion,
    INT,
    INT,
    st.sampled_from(CursorChange),
    MARKS,
    st.lists(st.builds(AckedRange, INT, INT, POSITIONS), max_size=5).map(FrozenRanges.of),
)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=30)
STATES = st.builds(
    CursorState,
    VERSIONS,
    INT,
    TEXTS,
    TEXTS,
    st.dictionaries(TEXTS, TEXTS, max_size=3),
    st.lists(VERSIONS, max_size=12).map(tuple),
    TEXTS,
)
SMALL = CursorState.create(Mark(7, Position(2, 3, 4)), 1_700_000_000_000).claim("host", "n").with_properties({"a": "b"})


@given(STATES)
def test_it_round_trips(state: CursorState) -> None:
    assert decode_cursor(encode_cursor(state)) == state


def test_programs_that_do_not_know_whose_a_cursor_is_carry_it_on() -> None:
    """To them it is a property, which they keep when they move the cursor."""
    theirs = replace(SMALL, properties={"a": "b", BY_PROPERTY: "etl"})
    ours = replace(SMALL, by="etl")
    assert encode_cursor(theirs) == encode_cursor(ours)
    assert decode_cursor(encode_cursor(theirs)) == ours


def test_any_damage_is_told() -> None:
    """SEG-88: an unreadable cursor is an error, and never another place."""
    raw = encode_cursor(SMALL)
    for i in range(len(raw)):
        for bad in (raw[:i], raw[:i] + bytes([raw[i] ^ 0x10]) + raw[i + 1 :]):
            with pytest.raises((StreamCorruptError, UnsupportedStreamFormatError)):
                decode_cursor(bad)
    with pytest.raises(StreamCorruptError):
        decode_cursor(raw + b"x")


def test_a_newer_format_is_refused_by_name() -> None:
    raw = bytearray(encode_cursor(SMALL))
    raw[4] = FORMAT + 1
    with pytest.raises(UnsupportedStreamFormatError, match="newer program"):
        decode_cursor(bytes(raw))


def test_ten_thousand_ranges_fit_and_what_does_not_is_refused() -> None:
    """SEG-97: as many ranges as a cursor may have fit into the store, now and in its history."""
    many = FrozenRanges.of(
        [AckedRange(7919 * i, 7919 * i + i % 100 + 1, Position(3, 13 * i, i % 7)) for i in range(1, 10_001)]
    )
    version = CursorVersion(5, 0, CursorChange.ACKNOWLEDGED, Mark(0, EARLIEST), many)
    state = CursorState(version, history=(version,))
    raw = encode_cursor(state)
    assert len(raw) < 500_000 and decode_cursor(raw) == state
    with pytest.raises(CursorFullError):
        encode_cursor(CursorState(version, owner="".join(map(chr, range(0x4E00, 0x9E00))) * 30))


def test_golden_bytes() -> None:
    """The format does not change by accident."""
    assert encode_cursor(SMALL).hex() == GOLDEN


GOLDEN = (
    "424b6375010000005c000000a04c9521010000000000000004000000686f7374010000006e01000000010000006101000000620100000001"
    "000000000000000068e5cf8b01000000070000000000000002000000000000000300000000000000040000000000000000000000"
)
