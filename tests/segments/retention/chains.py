"""Chains for the tests of this room: numbers for positions, ten records a segment."""

from __future__ import annotations

from segments.chain import SegmentContents, StreamChain, StreamSegment
from segments.position import Position

HOUR_MS = 3_600_000


def at(segment: int, entry: int = 0, slot: int = 0) -> Position:
    return Position(segment, entry, slot)


def contents(records: int = 10, size: int = 1000) -> SegmentContents:
    if not records:
        return SegmentContents()
    return SegmentContents(records, size, 2, (1, records - 6 if records > 5 else 0))


def chain_of(count: int, *, records: int = 10, size: int = 1000, opened: bool = False, first: int = 1) -> StreamChain:
    """``count`` completed segments from number ``first`` on; number n has ledger 100 + n and was completed at hour n.
    With ``opened`` another one, open."""
    chain = StreamChain("id", 1, "nonce", "me", next_number=first)
    for number in range(first, first + count):
        chain = chain.start_segment(100 + number, (number - 1) * HOUR_MS)
        chain = chain.complete(number, contents(records, size), number * HOUR_MS)
    if opened:
        chain = chain.start_segment(100 + first + count, (first + count - 1) * HOUR_MS)
    return chain


def end_of_records(segment: StreamSegment) -> Position:
    assert segment.last is not None
    return segment.last.next
