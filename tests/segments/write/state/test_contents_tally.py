"""What a segment holds, counted as it grows."""

from __future__ import annotations

from segments.chain import SegmentContents
from segments.write.state.contents_tally import ContentsTally


def test_entries_and_records_are_counted_and_the_extremes_are_kept() -> None:
    tally = ContentsTally()
    assert tally.contents() == SegmentContents()
    tally.add_entry(0, 100)  # a snapshot
    tally.add_entry(1, 200)
    tally.add_records(3, 50, (None, None), (7, 9))
    tally.add_entry(2, 10)
    tally.add_records(0, 60)  # a producer was opened
    tally.add_entry(3, 300)
    tally.add_records(1, 70, (4, 5), (2, 8))
    contents = tally.contents(4)
    assert contents == SegmentContents(4, 610, 3, (3, 0), 4, 5, 50, 70, 2, 9, 4)
