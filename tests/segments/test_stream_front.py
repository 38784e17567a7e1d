"""What streams share, near and behind gateways."""

from __future__ import annotations

import pytest

from segments.errors import SeekFormatError
from segments.remote import RemoteStream
from segments.stream import Stream
from segments.stream_front import StreamFront
from tests.segments.fake import Cluster, stream_on
from tests.spark_wal.webhdfs.virtual import in_virtual_time


def test_what_both_sides_do_in_the_same_way_is_written_once() -> None:
    shared = ("find", "count", "first", "tail_position", "splits", "truncate", "hold", "close", "__repr__", "__aexit__")
    for name in (*shared, "explain_retention", "apply_retention"):
        assert getattr(Stream, name) is getattr(RemoteStream, name) is getattr(StreamFront, name)


@in_virtual_time
async def test_a_place_that_is_none_is_refused_before_anything_is_done() -> None:
    stream = await stream_on(Cluster())
    place = "earliest"
    for call in (stream.find, stream.count, stream.truncate):
        with pytest.raises(SeekFormatError, match="is a text and no position"):
            await call(place)  # type: ignore[arg-type]
    with pytest.raises(SeekFormatError, match="is a text and no position"):
        await stream.hold("h", place)  # type: ignore[arg-type]
    assert await stream.holds() == ()
    with pytest.raises(ValueError, match="at least one range"):
        await stream.splits(target=0)
