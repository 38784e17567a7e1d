"""Q6: a client follows where bookies stand, and keeps the last known places."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

import pytest

from bookkeeper.client.bookies.bookie_places import BookiePlaces
from bookkeeper.client.config import ClientConfig
from bookkeeper.errors import MetadataFormatError
from bookkeeper.ids import BookieId
from bookkeeper.ledger.location import DEFAULT_LOCATION, Location
from bookkeeper.testing import World

B1, R1, R2 = BookieId("b1"), Location.parse("/r1"), Location.parse("/r2")


class _Record:
    def __init__(self) -> None:
        self.places: Mapping[BookieId, Location] = {B1: R1}
        self.callback: Callable[[], None] | None = None
        self.damaged = self.closed = False

    async def read(self) -> Mapping[BookieId, Location]:
        if self.damaged:
            raise MetadataFormatError("garbage")
        return dict(self.places)

    def watch(self, callback: Callable[[], None]) -> _Record:
        self.callback = callback
        return self

    def close(self) -> None:
        self.closed = True


@pytest.mark.rule("Q6")
def test_places_are_followed_by_a_watch_and_by_a_timer(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        record = _Record()
        places = BookiePlaces(record, ClientConfig(bookies_poll_ms=5_000))
        assert places.of(B1) == DEFAULT_LOCATION
        await places.start()
        assert places.of(B1) == R1 and places.of(BookieId("b9")) == DEFAULT_LOCATION
        seen = places.version

        record.places = {B1: R2}
        assert record.callback is not None
        record.callback()
        await asyncio.sleep(0.1)
        assert places.of(B1) == R2 and places.version != seen

        record.places, seen = {B1: R1}, places.version
        await asyncio.sleep(6)
        assert places.of(B1) == R1 and places.version != seen

        seen = places.version
        await asyncio.sleep(60)
        assert places.version == seen, "nothing has changed"

        record.damaged = True
        with caplog.at_level(logging.WARNING):
            await asyncio.sleep(60)
        assert places.of(B1) == R1 and places.version == seen
        assert caplog.text.count("the last known places are used") == 1
        record.damaged, record.places = False, {}
        await asyncio.sleep(10)
        assert places.of(B1) == DEFAULT_LOCATION
        await places.close()
        assert record.closed

    with World(1) as world:
        world.run(main())
