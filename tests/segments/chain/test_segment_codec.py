from __future__ import annotations

import pytest

from segments.chain import StreamSegment
from segments.chain.segment_codec import NONE, ROW, pack_segment, read_back, stored, unpack_segment
from tests.segments.chain.pages import many


@pytest.mark.parametrize("segment", [*many(2), StreamSegment(3, 4, 5, 6)])
def test_a_segment_is_a_row_of_116_bytes(segment: StreamSegment) -> None:
    row = pack_segment(segment)
    assert len(row) == ROW.size == 116
    assert unpack_segment(ROW.unpack(row)) == segment


def test_no_number_is_told_from_every_number() -> None:
    assert stored(None) == NONE and read_back(NONE) is None
    assert [read_back(stored(number)) for number in (0, -1, 2**63 - 1)] == [0, -1, 2**63 - 1]
