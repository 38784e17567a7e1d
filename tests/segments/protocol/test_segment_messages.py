from __future__ import annotations

import pytest

from segments.chain import SegmentContents, StreamSegment
from segments.protocol.segment_messages import get_segment, put_segment

CONTENTS = SegmentContents(
    records=3,
    bytes=30,
    last_entry=2,
    last=(1, 2),
    first_txid=0,
    last_txid=9,
    first_append_ms=5,
    last_append_ms=6,
    min_event_ms=-1,
    max_event_ms=8,
    footer_entry=2,
)


@pytest.mark.parametrize(
    "segment",
    [
        StreamSegment(4, 77, 9, 1000, 3, completed_ms=2000, contents=CONTENTS),
        StreamSegment(1, 7, 0, 1000),
        StreamSegment(2, 8, 0, 1000, completed_ms=0),
    ],
    ids=["completed", "open", "empty"],
)
def test_a_segment_comes_back_as_it_was(segment: StreamSegment) -> None:
    assert get_segment(put_segment(segment)) == segment


def test_an_older_gateway_tells_less() -> None:
    message = put_segment(StreamSegment(4, 77, 9, 1000, completed_ms=2000, contents=CONTENTS))
    for field in ("last_entry", "footer_entry", "epoch"):
        message.ClearField(field)
    found = get_segment(message).contents
    assert (found.last, found.last_entry, found.footer_entry) == ((1, 2), 1, None)
