"""What the entries of a segment are: records, pieces, control entries, the footer."""

from __future__ import annotations

import asyncio

from bookkeeper.errors import (
    BookieUnavailableError,
    BookKeeperError,
)
from segments.entries.footer import SegmentFooter
from segments.entries.layout import EntryKind
from segments.entries.stored_entry import decode_entry
from segments.position import Position
from segments.record import Record
from tests.segments.entries.test_footer import may_have
from tests.segments.fake import AT_ONCE, Cluster, FakeWriter, chain_of, check_stream, stream_on, values_of
from tests.spark_wal.webhdfs.virtual import in_virtual_time


@in_virtual_time
async def test_a_large_record_whose_pieces_were_torn_apart_is_written_anew_as_a_whole() -> None:
    cluster = Cluster()
    large = bytes(3_000_000)
    broken = False

    def second_piece(writer: FakeWriter, payload: bytes) -> BookKeeperError | None:
        nonlocal broken
        piece = decode_entry(payload).piece
        if not broken and piece is not None and piece.number == 1:
            broken = True
            return BookieUnavailableError("gone")
        return None

    cluster.breaks = second_piece
    stream = await stream_on(cluster)
    async with stream.writer() as writer:
        before = await writer.append(b"before")
        after = await writer.append(large)
        assert (before.position.segment, after.position) == (1, Position(2, 2, 0))
    assert await values_of(cluster, stream) == [b"before", large]
    await check_stream(cluster, stream)


@in_virtual_time
async def test_a_completed_segment_ends_with_a_footer_that_finds_its_records() -> None:
    cluster = Cluster()
    stream = await stream_on(cluster)
    async with stream.writer() as writer:
        for number in range(10):
            await writer.append(Record(bytes(30_000), txid=number, key=b"k%d" % number))
    (segment,) = (await chain_of(stream)).segments
    payload = cluster.ledgers[segment.ledger_id].entries[-1]
    assert segment.contents.footer_entry == segment.contents.last_entry
    footer = SegmentFooter.decode(decode_entry(payload).payload)
    assert may_have(footer, b"k3")
    assert footer.keyed == 10
    found = footer.entry_for_txid(5)
    assert found is not None
    assert 0 < found <= 5


@in_virtual_time
async def test_a_control_entry_makes_the_last_record_visible_and_counts_nowhere() -> None:
    """SEG-44 SEG-45"""
    cluster = Cluster()
    config = AT_ONCE.patched({"flush.visibility": "control"})
    stream = await stream_on(cluster, config=config)
    async with stream.writer() as writer:
        await writer.append(b"0", txid=3)
        await asyncio.sleep(0.1)
        ledger = cluster.ledgers[(await chain_of(stream)).segments[0].ledger_id]
        kinds = [decode_entry(payload).kind for payload in ledger.entries]
        assert kinds == [EntryKind.DATA, EntryKind.CONTROL]
        assert (await writer.append(b"1")).seq_no == 1
        await writer.commit()
    (segment,) = (await chain_of(stream)).segments
    assert (segment.records, segment.contents.last_txid) == (2, 3)
    await check_stream(cluster, stream)
