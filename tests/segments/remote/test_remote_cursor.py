"""Cursors through a gateway in the same loop."""

from __future__ import annotations

from pathlib import Path

import pytest

from segments.errors import CursorConflictError, CursorNotFoundError
from segments.record import StoredRecord
from segments.remote import RemoteReader, connect
from segments.seek import AtSeqNo
from tests.segments.gateway.clusters import CONFIG, served


async def records_of(reader: RemoteReader) -> list[StoredRecord]:
    async with reader:
        return [record async for record in reader if isinstance(record, StoredRecord)]


async def test_a_cursor_moves_and_is_read_from(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        async with stream.writer() as writer:
            await writer.append_batch([b"%d" % number for number in range(10)])
        with pytest.raises(CursorNotFoundError):
            await stream.cursor("billing", create=False).open()
        async with stream.cursor("billing", start=AtSeqNo(2)) as cursor:
            records = await records_of(cursor.read())
            assert [record.seq_no for record in records] == list(range(2, 10))
            await cursor.ack(records[2], records[1].position)
            assert await cursor.position() == records[0].position
            moved = await cursor.advance(records[0], expect=records[0].position)
            assert moved.position == records[3].position == (await cursor.state()).position
            with pytest.raises(CursorConflictError):
                await cursor.advance(records[5], expect=records[0].position)
            assert [record.seq_no for record in await records_of(cursor.read(stop=AtSeqNo(8)))] == [5, 6, 7]
            assert await cursor.reset(AtSeqNo(1)) == (await stream.find(AtSeqNo(1)))
            history = await cursor.history()
            assert history[0].version > history[-1].version and history[0].changed_ms is not None
        async with stream.cursor("billing") as again:
            assert (await stream.cursors()).keys() == {"billing"} and await again.position() == history[0].position
            await again.delete(missing_ok=False)
            await again.delete()
            with pytest.raises(CursorNotFoundError):
                await again.delete(missing_ok=False)
        assert await stream.cursors() == {}
