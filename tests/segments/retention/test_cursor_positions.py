"""Where cursors stand, as retention and the checker see it."""

from __future__ import annotations

import pytest

from bookkeeper import BookKeeper
from segments.cursors.acked_ranges import Mark
from segments.cursors.cursor_format import encode_cursor
from segments.cursors.cursor_state import CursorState
from segments.errors import StreamCorruptError
from segments.names import escape_name, stream_path
from segments.retention.cursor_positions import cursor_needs, cursor_positions
from segments.retention.retention import CursorPosition
from tests.segments.retention.chains import at
from tests.segments.retention.streams import make_stream, run


def test_a_stream_without_cursors() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client)
        assert await cursor_positions(client.metadata_store, record.stream_id, "orders") == ()
        assert await cursor_positions(client.metadata_store, "gone", "gone") == ()

    run(story)


def test_every_stored_cursor_counts_and_one_that_cannot_be_read_stops_everything() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client)
        metadata = client.metadata_store
        path = stream_path(metadata, record.stream_id, "cursors")
        state = CursorState.create(Mark(8, at(2, 1)), 5)
        await metadata.store.create(f"{path}/{escape_name('a/b.c')}", encode_cursor(state))
        assert await cursor_positions(metadata, record.stream_id, "orders") == (CursorPosition("a/b.c", at(2, 1)),)
        (place,) = await cursor_positions(metadata, record.stream_id, "orders")
        assert (place.needs, place.seq_no) == (at(2, 1), 8)
        assert await cursor_needs(metadata, record.stream_id) == {"a/b.c": place}
        await metadata.store.create(f"{path}/broken", b"rubbish")
        with pytest.raises(StreamCorruptError):
            await cursor_positions(metadata, record.stream_id, "orders")

    run(story)
