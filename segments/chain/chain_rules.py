"""What must hold of every version of a stream's node (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from segments.chain.segment_page import SegmentPage
from segments.chain.stream_segment import StreamSegment
from segments.errors import check


def check_segments(segments: Sequence[StreamSegment], next_number: int, records: int) -> None:
    """Check that these segments, the last ones of a node, keep the rules.

    Raises:
        StreamInvariantError: names the rule.
    """
    for one, two in pairwise(segments):
        check(not one.is_open, "C3", f"segment {one} is open, but segment {two} follows it")
        check(one.number < two.number, "C4", f"segment {two} follows segment {one}")
        check(one.end_seq_no == two.start_seq_no, "C7", f"segment {two} does not begin where segment {one} ends")
    if segments:
        last = segments[-1]
        check(last.number < next_number, "C7", f"segment {last} has a number that is to be used next")
        end = last.start_seq_no if last.is_open else last.end_seq_no
        check(end == records, "C7", f"the record counts {records} records, and segment {last} ends at {end}")


def check_pages(pages: Sequence[SegmentPage], recent: Sequence[StreamSegment]) -> None:
    """Check that the pages follow each other, and that the recent segments follow them."""
    for page in pages:
        fits = page.gone < page.stored and page.first <= page.first_listed <= page.last and page.records >= 0
        check(fits, "C4", f"page {page.key} lists {page.count} segments from number {page.first_listed} on")
    for one, two in pairwise(pages):
        check(one.last < two.first, "C4", f"page {two.key} follows page {one.key}")
        check(one.end_seq_no == two.start_seq_no, "C7", f"page {two.key} does not begin where page {one.key} ends")
    last = pages[-1]
    check(bool(recent), "C7", f"no segment follows page {last.key}")
    first = recent[0]
    check(last.last < first.number, "C4", f"segment {first} follows page {last.key}")
    check(last.end_seq_no == first.start_seq_no, "C7", f"segment {first} does not begin where page {last.key} ends")
