"""What readers share of a stream."""

from __future__ import annotations

import pytest

from bookkeeper.errors import BookieUnavailableError
from segments.errors import StreamUnavailableError
from tests.segments.read.built_stream import BuiltStream, simulated


def test_segments_are_opened_without_recovery_and_errors_are_those_of_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(stream: BuiltStream) -> None:
        await stream.start()
        await stream.add(1)
        segment = (await stream.chain()).segments[0]
        handle = await stream.source.open_segment(segment)
        assert handle is not None
        await handle.close()
        await stream.add(1)  # its writer was not fenced
        await stream.complete()
        await stream.client.delete_ledger(segment.ledger_id)
        assert await stream.source.open_segment(segment) is None
        assert stream.source.name == "built" and stream.source.stream_id == "built" and stream.source.now_ms() > 0

        async def fails(*args: object, **options: object) -> None:
            raise BookieUnavailableError("away")

        monkeypatch.setattr(stream.client, "open_ledger", fails)
        with pytest.raises(StreamUnavailableError, match="opening segment 1"):
            await stream.source.open_segment(segment)

    simulated(story)
