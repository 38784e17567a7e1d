"""A look at single entries of a segment."""

from __future__ import annotations

import pytest

from segments.entries.entry import encode_payload
from segments.entries.layout import PIECE, EntryKind
from segments.errors import EntryCorruptError, PositionTruncatedError, StreamCorruptError
from segments.position import Position
from segments.read.source.segment_entries import SegmentEntries
from tests.segments.read.built_stream import BuiltStream, simulated


@pytest.mark.rule("X40")
@pytest.mark.parametrize("number", [2, 1_000_000])
def test_a_last_piece_is_not_believed_how_many_came_before(number: int) -> None:
    """All entries of the segment were read for it, and entries before the first were asked for."""
    lying = encode_payload(EntryKind.PIECE, PIECE.pack(number, number + 1, 99) + b"p", next_seq_no=2, append_ms=0)

    async def story(stream: BuiltStream) -> None:
        await stream.start()
        await stream.add(2)
        await stream.control()
        await stream.raw(lying)
        segment = (await stream.chain()).segments[0]
        async with SegmentEntries(stream.source, segment) as entries:
            with pytest.raises(EntryCorruptError, match="belong together"):
                await entries.read(entries.last_entry)

    simulated(story)


def test_entries_pieces_and_the_last_record() -> None:
    async def story(stream: BuiltStream) -> None:
        await stream.start()
        await stream.add(2)
        await stream.add_pieces(b"x" * 3_000_000)
        await stream.control()
        await stream.raw(b"broken")
        segment = (await stream.chain()).segments[0]
        async with SegmentEntries(stream.source, segment) as entries:
            assert (await entries.read(0)).values() == [b"0", b"1"]
            assert (await entries.read(3)).values() == [b"x" * 3_000_000]
            assert (await entries.header(3)).piece is not None
            with pytest.raises(EntryCorruptError):
                await entries.read(5)
            last = await entries.last_with_records()
            assert last is not None and last.entry == 3
            assert await entries.last_with_records(4) is None
            assert await entries.end_seq_no() == 3

    simulated(story)


def test_a_ledger_that_is_gone_is_truncated_or_lost() -> None:
    async def story(stream: BuiltStream) -> None:
        await stream.segment(2)
        await stream.segment(2)
        first, second = (await stream.chain()).segments
        for each in (first, second):
            await stream.client.delete_ledger(each.ledger_id)
        await stream.change(lambda chain: chain.truncate(Position(2, 0, 0), 2).remove(1))
        with pytest.raises(PositionTruncatedError):
            async with SegmentEntries(stream.source, first):
                pass
        with pytest.raises(StreamCorruptError):
            async with SegmentEntries(stream.source, second):
                pass

    simulated(story)
