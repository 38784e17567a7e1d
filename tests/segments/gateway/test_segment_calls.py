from __future__ import annotations

from pathlib import Path

from segments.chain import SegmentContents, StreamSegment
from segments.gateway.segment_calls import put_hold, put_segment
from segments.life.holds import Hold
from segments.position import Position
from segments.remote import connect
from segments.rpc import segments_pb2 as pb
from tests.segments.gateway.clusters import CONFIG, served


def test_segments_and_holds_have_messages() -> None:
    contents = SegmentContents(records=3, bytes=30, last_entry=1, last=(1, 2), first_txid=0)
    shown = put_segment(StreamSegment(4, 77, 9, 1000, completed_ms=2000, contents=contents))
    assert (shown.number, shown.completed, shown.records, shown.first_txid) == (4, True, 3, 0)
    assert (shown.last.entry, shown.last.slot, shown.HasField("last_txid")) == (1, 2, False)
    assert not put_segment(StreamSegment(1, 7, 0, 1000)).HasField("last")
    hold = put_hold(Hold("h", Position(1, 2, 3), until_ms=5, note="why"))
    assert (hold.name, hold.start.entry, hold.until_ms, hold.note) == ("h", 2, 5, "why")


async def test_every_segment_has_a_reason(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        async with stream.writer() as writer:
            await writer.append(b"v")
        await stream.roll()
        request = pb.ExplainRequest(stream="s")
        reasons = [each async for each in namespace.channels.stream("Segments.ExplainRetention", request)]
        assert [(each.segment, each.kept) for each in reasons] == [(1, True), (2, True)]
        assert all(each.reason for each in reasons)
