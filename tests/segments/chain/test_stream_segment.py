from __future__ import annotations

import pytest

from segments.chain import SegmentContents, StreamSegment, StreamSegmentState
from segments.errors import ChainStepError
from segments.record import from_ms

OPEN = StreamSegment(3, 40, 100, 1_000, 2)
ENDS = SegmentContents(5, 999, 7, (6, 2))


def test_an_open_segment_has_no_end() -> None:
    assert OPEN.is_open and OPEN.state is StreamSegmentState.OPEN
    assert (OPEN.end_seq_no, OPEN.last, OPEN.completed, OPEN.records) == (None, None, None, 0)
    assert OPEN.first == (3, 0, 0) and OPEN.created == from_ms(1_000) and "open" in str(OPEN)


def test_a_completed_segment_has_one() -> None:
    """SEG-57 last position in metadata is that of the last record"""
    done = OPEN.complete(ENDS, 2_000)
    assert not done.is_open and done.state is StreamSegmentState.COMPLETED
    assert (done.end_seq_no, done.last, done.completed) == (105, (3, 6, 2), from_ms(2_000))
    assert (done.records, done.bytes) == (5, 999) and "5 records" in str(done)


def test_the_end_is_fixed_once() -> None:
    done = OPEN.complete(ENDS, 2_000)
    assert done.complete(ENDS, 3_000) is done
    with pytest.raises(ChainStepError):
        done.complete(SegmentContents(), 3_000)
