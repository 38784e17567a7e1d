from __future__ import annotations

from segments.chain import StreamChain, StreamSegment
from segments.checks.overview import overview_of
from segments.config import DEFAULTS
from segments.position import Position
from segments.retention.holds import Hold
from segments.retention.retention import CursorPosition


def test_an_overview_is_one_moment_of_the_record() -> None:
    segment = StreamSegment(2, 7, 5, 1000, completed_ms=2000)
    chain = StreamChain("id", owner="me", epoch=4, location="h:1", recent=(segment,), next_number=3, next_ledger=9)
    chain = chain.with_segments([segment])
    cursor, hold = CursorPosition("c", Position(2, 0, 0)), Hold("h")
    shown = overview_of("s", chain, DEFAULTS, (cursor,), (hold,), 77)
    assert (shown.info.name, shown.info.owner, shown.info.epoch, shown.location) == ("s", "me", 4, "h:1")
    assert (shown.segments, shown.next_ledger, shown.removing, shown.at_ms) == ((segment,), 9, (), 77)
    assert (shown.cursors, shown.holds, shown.config) == ((cursor,), (hold,), DEFAULTS)
