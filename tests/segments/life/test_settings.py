"""Settings: changed in the store, followed by running programs, and never half believed."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper import BookKeeper
from segments.config import StreamConfig
from segments.errors import StreamConfigError, StreamNotFoundError
from segments.life.settings import LiveSettings, StreamSettings
from segments.names import stream_path
from tests.segments.life.streams import make_stream, run


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


def test_a_running_program_follows_and_ignores_what_it_cannot_read() -> None:
    """SEG-114 a change reaches a running stream; a bad value is ignored with a warning, the next good one taken."""

    async def story(client: BookKeeper) -> None:
        record = await make_stream(client, segments=0)
        settings = StreamSettings(client.metadata_store, record.stream_id, "orders")
        seen: list[float | None] = []
        live = await LiveSettings.follow(settings, lambda config: seen.append(config.retention.max_age_s))
        running = asyncio.ensure_future(live.run())
        await settings.patch({"retention.max_age_s": 60.0})
        await asyncio.sleep(1)
        assert seen == [60.0] and live.current.retention.max_age_s == 60.0
        path = stream_path(client.metadata_store, record.stream_id, "config")
        good = (await record.store.get(path)).value
        for bad in (b"rubbish", good.replace(b"60.0", b"-60.0"), good.replace(b'"format":1', b'"format":99')):
            assert bad != good
            await record.store.set(path, bad, None)
            await asyncio.sleep(1)
            assert seen == [60.0] and live.current.retention.max_age_s == 60.0
        await record.store.set(path, good.replace(b"60.0", b"70.0"), None)
        await asyncio.sleep(1)
        assert seen == [60.0, 70.0]
        running.cancel()
        live.close()

    run(story)
