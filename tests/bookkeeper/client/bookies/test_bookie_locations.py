"""Q6: a client follows where bookies stand, and keeps the last known locations."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import pytest

from bookkeeper.client.bookies.bookie_locations import BookieLocations
from bookkeeper.client.config import ClientConfig
from bookkeeper.errors import MetadataFormatError
from bookkeeper.ids import BookieId
from bookkeeper.ledger.location import DEFAULT_LOCATION, Location
from bookkeeper.seams import Workers
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


class _Bookies:
    async def known(self) -> list[BookieId]:
        return [B1, BookieId("gone")]

    async def registered(self) -> set[BookieId]:
        return {B1, BookieId("new")}


def says(names: Sequence[str]) -> Mapping[str, str]:
    assert names == ["b1", "gone", "new"], "all that are known, also those that are gone"
    if fails:
        raise fails[0]
    return {"b1": "/r2/", "gone": "/a b"}


fails: list[Exception] = []
NO_WORKERS = cast(Workers, None)


@pytest.mark.rule("Q6")
def test_a_source_wins_over_the_metadata_and_what_is_odd_in_it_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    with World(1) as world:

        async def main() -> None:
            record = _Record()
            record.places = {B1: R1, BookieId("new"): R1}
            config = ClientConfig(bookies_poll_ms=5_000, locations_from=f"{__name__}:says", location="/r2")
            places = BookieLocations(record, _Bookies(), config, world.node("client").seams.workers)
            with caplog.at_level(logging.WARNING):
                await places.start()
                assert [str(places.of(each)) for each in (B1, BookieId("new"), BookieId("gone"))] == [
                    "/r2",
                    "/r1",
                    "/default-rack",
                ]
                assert places.distance is not None
                assert [places.distance(each) for each in (B1, BookieId("new"))] == [0, 2]
                fails.append(OSError("no such script"))
                await asyncio.sleep(30)
                fails[0] = KeyError("b1")  # of somebody's function
                await asyncio.sleep(30)
                await places.refresh()
                fails.clear()
            assert str(places.of(B1)) == "/r2", "the last that was known"
            assert caplog.text.count("says of gone: '/a b' is no network location") == 1
            assert caplog.text.count("no such script") == 1
            await places.close()

        world.run(main())


class _Worker:
    """A worker whose one job ends when the test says so."""

    def __init__(self) -> None:
        self.asked = 0
        self.closed = False
        self.answer: asyncio.Future[Mapping[str, str]] | None = None

    def worker(self, name: str) -> _Worker:
        return self

    def call(self, job: Callable[[], object]) -> asyncio.Future[Mapping[str, str]]:
        self.asked += 1
        self.answer = asyncio.get_running_loop().create_future()
        return self.answer

    def close(self) -> None:
        assert self.answer is None or self.answer.done(), "whoever closes a worker waits for its job"
        self.closed = True


@pytest.mark.rule("Q6")
def test_a_source_that_hangs_holds_nobody_up(caplog: pytest.LogCaptureFixture) -> None:
    with World(1) as world:

        async def main() -> None:
            loop, worker = asyncio.get_running_loop(), _Worker()
            config = ClientConfig(bookies_poll_ms=5_000, metadata_timeout_ms=2_000, locations_from=f"{__name__}:says")
            places = BookieLocations(_Record(), _Bookies(), config, cast(Workers, worker))
            began = loop.time()
            await places.start()
            assert loop.time() - began == pytest.approx(2.0), "no longer than for the metadata"
            assert places.of(B1) == R1, "what the metadata say"
            await asyncio.sleep(60)
            assert worker.asked == 1, "nothing more is asked of it meanwhile"
            assert caplog.text.count("has not answered for 2 s") == 1
            began = loop.time()
            await places.refresh()
            assert loop.time() == began, "nobody waits for it again"
            assert worker.answer is not None
            worker.answer.set_result({"b1": "/r2"})
            await asyncio.sleep(20)
            assert places.of(B1) == R2 and worker.asked > 1, "it is asked again when it has answered"
            await places.close()
            assert not worker.closed, "it is closed when it has answered"
            worker.answer.set_result({})
            await asyncio.sleep(0)
            assert worker.closed

        with caplog.at_level(logging.WARNING):
            world.run(main())


def rubbish(names: Sequence[str]) -> object:
    return answers[0]


answers: list[object] = []


@pytest.mark.rule("Q6")
@pytest.mark.parametrize("answer", [None, ["/r2"], {"b1": 7}, {"b1": [7]}, {"b1": b"/r2"}, {7: None}])
def test_a_source_that_gives_rubbish_stops_nothing(answer: object) -> None:
    with World(1) as world:

        async def main() -> None:
            config = ClientConfig(bookies_poll_ms=5_000, locations_from=f"{__name__}:rubbish")
            places = BookieLocations(_Record(), _Bookies(), config, world.node("client").seams.workers)
            answers[:] = [{"b1": "/r2"}]
            await places.start()
            answers[:] = [answer]
            await places.refresh()
            assert places.of(B1) in (R1, R2), "the metadata's, or the last known one"
            answers[:] = [{"b1": "/r3"}]
            await asyncio.sleep(10)
            assert str(places.of(B1)) == "/r3", "it is asked again"
            await places.close()

        world.run(main())


@pytest.mark.rule("Q6")
def test_places_are_followed_by_a_watch_and_by_a_timer(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        record = _Record()
        places = BookieLocations(record, _Bookies(), ClientConfig(bookies_poll_ms=5_000), NO_WORKERS)
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
        assert caplog.text.count("the last known locations are used") == 1
        record.damaged, record.places = False, {}
        await asyncio.sleep(10)
        assert places.of(B1) == DEFAULT_LOCATION
        await places.close()
        assert record.closed

    with World(1) as world:
        world.run(main())
