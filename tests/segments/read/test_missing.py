from __future__ import annotations

from segments.chain import SegmentContents, StreamSegment
from segments.position import Position
from segments.read.missing import lost_before, lost_with, truncated
from segments.record import GapKind

SEGMENT = StreamSegment(3, 7, 100, 0, completed_ms=1, contents=SegmentContents(records=20, last_entry=4, last=(4, 0)))


def test_what_was_truncated_ends_directly_before_the_beginning() -> None:
    gap = truncated(Position(1, 0, 0), Position(2, 5, 3), 17)
    assert (gap.first, gap.last, gap.kind, gap.records) == (
        Position(1, 0, 0),
        Position(2, 5, 2),
        GapKind.TRUNCATED,
        17,
    )


def test_records_are_lost_between_the_expected_one_and_the_segment() -> None:
    gap = lost_before(SEGMENT, 90)
    assert gap is not None and gap.records == 10 and gap.kind is GapKind.LOST
    assert lost_before(SEGMENT, 100) is None
    assert lost_before(SEGMENT, None) is None


def test_a_ledger_that_is_gone_takes_the_rest_of_its_segment() -> None:
    gap = lost_with(SEGMENT, Position(3, 2, 0), 105)
    assert (gap.first, gap.records) == (Position(3, 2, 0), 15)
    assert gap.last < Position(4, 0, 0)
    assert lost_with(SEGMENT, Position(3, 2, 0), None).records is None
