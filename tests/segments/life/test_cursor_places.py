"""Where cursors stand, as retention and the checker see it."""

from __future__ import annotations

from bookkeeper import BookKeeper
from segments.life.cursor_places import cursor_needs, cursor_places
from tests.segments.life.streams import make_stream, run


def test_a_stream_without_cursors() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client)
        assert await cursor_places(client.metadata_store, record.stream_id, "orders") == ()
        assert await cursor_places(client.metadata_store, "gone", "gone") == ()
        assert await cursor_needs(client.metadata_store, record.stream_id) == {}

    run(story)
