"""Settings: changed in the store by name, all or nothing."""

from __future__ import annotations

import pytest

from bookkeeper import BookKeeper
from segments.config import StreamConfig
from segments.directory.settings import StreamSettings
from segments.errors import StreamConfigError, StreamNotFoundError
from tests.segments.retention.streams import make_stream, run


def test_a_patch_changes_what_it_names() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client, segments=0)
        settings = StreamSettings(client.metadata_store, record.stream_id, "orders")
        found = await settings.patch({"retention.max_age_s": 60.0, "compression": "lz4"})
        assert found.retention.max_age_s == 60.0 and found.roll == StreamConfig().roll
        assert await settings.read() == found
        for wrong in ({"compression": "brotli"}, {"retention.max_ages": 1}, {"ensemble": 0}):
            with pytest.raises(StreamConfigError):
                await settings.patch(wrong)
        assert await settings.read() == found
        gone = StreamSettings(client.metadata_store, "gone", "gone")
        for call in (gone.read(), gone.patch({})):
            with pytest.raises(StreamNotFoundError):
                await call

    run(story)
