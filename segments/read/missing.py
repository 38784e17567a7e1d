"""The gaps that a reader finds between segments: what is missing, and from where to where. Pure."""

from __future__ import annotations

from segments.chain import StreamSegment
from segments.position import Position
from segments.record import Gap, GapKind


def truncated(first: Position, beginning: Position, missing: int | None) -> Gap:
    """The stream begins behind ``first`` by now. ``missing`` is the number of records; None: unknown."""
    before = Position(beginning.segment, beginning.entry, beginning.slot - 1)
    text = f"the stream was truncated: it begins at {beginning}"
    return Gap(first, max(first, before), GapKind.TRUNCATED, missing, text)


def lost_before(segment: StreamSegment, expected: int | None) -> Gap | None:
    """The records from number ``expected`` to the beginning of the segment; None if there are none, or nobody knows."""
    if expected is None or segment.start_seq_no <= expected:
        return None
    before = Position(segment.number, 0, -1)
    text = f"segment {segment} begins with record {segment.start_seq_no}, but {expected} is next"
    return Gap(before, before, GapKind.LOST, segment.start_seq_no - expected, text)


def lost_with(segment: StreamSegment, first: Position, expected: int | None) -> Gap:
    """The rest of a segment whose ledger does not exist, from ``first``, the record number ``expected``, on."""
    missing = None
    if segment.end_seq_no is not None and expected is not None:
        missing = segment.end_seq_no - expected
    last = Position(segment.number + 1, 0, -1)
    return Gap(first, last, GapKind.LOST, missing, f"the ledger of segment {segment} does not exist any more")
