"""Offsets say which record comes next, and of which stream."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segments.position import Position
from spark_wal.data_source.offsets import OffsetError, StreamOffset, read_offset

NUMBERS = st.integers(0, 2**62)


@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS)
def test_what_the_checkpoint_keeps_is_read_again(segment: int, entry: int, slot: int, number: int) -> None:
    offset = StreamOffset(number, Position(segment, entry, slot), "id")
    assert read_offset(json.loads(json.dumps(offset.document())), "id", "a") == offset


def test_its_json_says_that_the_place_is_the_next_one() -> None:
    written = StreamOffset(912, Position(3, 17, 0), "id").document()
    assert written == {"format": 1, "stream": "id", "next": "3:17:0", "nextSeqNo": 912}


def test_another_stream_of_the_same_name_is_refused() -> None:
    written = StreamOffset(0, Position(1, 0, 0), "old").document()
    with pytest.raises(
        OffsetError,
        match=r"belongs to another stream: that one has id old, and stream orders has new .*new checkpointLocation",
    ):
        read_offset(written, "new", "orders")


@pytest.mark.parametrize("changed", [{"format": 2}, {"next": "here"}, {"next": "1:2"}])
def test_what_is_no_offset_of_this_version_is_refused(changed: dict[str, object]) -> None:
    with pytest.raises(OffsetError, match=r"cannot read|without a place"):
        read_offset({**StreamOffset(0, Position(1, 0, 0), "id").document(), **changed}, "id", "a")
