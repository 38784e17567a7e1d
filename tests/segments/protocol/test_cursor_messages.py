from __future__ import annotations

import pytest

from segments.cursors.acked_ranges import FrozenRanges, Mark
from segments.cursors.cursor_state import Acknowledgement, CursorChange, CursorState, CursorVersion
from segments.errors import PositionFormatError
from segments.position import Position
from segments.protocol import segments_pb2 as pb
from segments.protocol.cursor_messages import (
    NUMBER_UNKNOWN,
    get_acknowledgements,
    get_cursor,
    get_ranges,
    get_version,
    put_acknowledgements,
    put_cursor,
    put_ranges,
    put_version,
)

RANGES = FrozenRanges((5, 9), (7, 10), (Position(1, 2, 3), Position(2, 0, 1)))
VERSION = CursorVersion(4, 1000, CursorChange.RESTORED, Mark(3, Position(1, 1, 0)), RANGES)


@pytest.mark.parametrize("change", CursorChange)
def test_a_cursor_and_its_versions_come_back_as_they_were(change: CursorChange) -> None:
    version = CursorVersion(4, 1000, change, Mark(3, Position(1, 1, 0)), RANGES)
    assert get_version(put_version(version)) == version
    state = CursorState(version, 7, "me", "nonce", {"a": "b"})
    assert get_cursor(put_cursor("c", state, claimed=True)) == state
    looked_at = put_cursor("c", state)
    assert not looked_at.HasField("claim"), "only its owner may know it"
    assert get_cursor(looked_at) == CursorState(version, 7, "me", "", {"a": "b"})


def test_an_older_gateway_tells_only_place_and_version() -> None:
    state = get_cursor(pb.CursorInfo(name="c", position=pb.Position(segment=1), version=2))
    assert (state.mark, state.version.number, len(state.ranges)) == ((NUMBER_UNKNOWN, Position(1, 0, 0)), 2, 0)
    assert get_version(pb.CursorVersion(version=2, time_ms=5)).mark.seq_no == NUMBER_UNKNOWN


def test_acknowledgements_come_back() -> None:
    changes = [Acknowledgement(Mark(7, Position(1, 2, 3)), 5), Acknowledgement(Mark(3, Position(1, 0, 3)), 0)]
    assert get_acknowledgements(put_acknowledgements(changes)) == changes


def test_ranges_that_cannot_be_are_refused() -> None:
    message = put_ranges(RANGES)
    message.slot.pop()
    with pytest.raises(PositionFormatError, match="different lengths"):
        get_ranges(message)
    for first, end in ((5, 5), (6, 5), (-1, 5)):
        wrong = put_ranges(FrozenRanges((first,), (end,), (Position(1, 0, 0),)))
        with pytest.raises(PositionFormatError, match="no record"):
            get_ranges(wrong)
