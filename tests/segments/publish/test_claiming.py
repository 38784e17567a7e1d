"""Who publishes batches owns the stream, and takes it from nobody who may be alive."""

from __future__ import annotations

import pytest

from segments import BatchKey, StagedRows, StreamOwnedError
from segments.entries.columns import RecordColumns
from segments.errors import OwnershipLostError
from segments.stream import Stream
from tests.segments.publish.cluster import Programs, story, values_of


async def rows_of(stream: Stream, value: bytes) -> list[StagedRows]:
    writer = stream.stage(value.decode(), "a")
    await writer.add(RecordColumns.of_values([value]))
    return [await writer.finish()]


@story
async def test_a_writer_that_has_the_stream_open_is_not_overtaken(programs: Programs) -> None:
    async with programs.stream() as stream, programs.stream() as other:
        async with stream.writer(owner="feeder") as writer:
            await writer.append(b"x")
            with pytest.raises(StreamOwnedError, match="open for writing by feeder"):
                await other.publisher()
            await writer.append(b"y")
        publisher = await other.publisher()
        await publisher.publish(BatchKey("a", "q", 0), await rows_of(other, b"z"))
        assert await values_of(stream) == [b"x", b"y", b"z"]


@story
async def test_with_take_over_the_writer_appends_no_more(programs: Programs) -> None:
    async with programs.stream() as stream, programs.stream() as other:
        writer = await stream.writer(owner="feeder")
        await writer.append(b"x")
        publisher = await other.publisher(take_over=True)
        with pytest.raises(OwnershipLostError):
            await writer.append(b"y")
        await publisher.publish(BatchKey("a", "q", 0), await rows_of(other, b"z"))
        assert await values_of(other) == [b"x", b"z"]
