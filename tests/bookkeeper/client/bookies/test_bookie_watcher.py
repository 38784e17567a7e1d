"""Who is there, and who is better left out for now."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from random import Random

import pytest

from bookkeeper.client.bookies.bookie_watcher import BookieWatcher
from bookkeeper.client.config import ClientConfig
from bookkeeper.errors import MetadataUnavailableError
from bookkeeper.ids import BookieId
from bookkeeper.testing import World


class Directory:
    """A list of bookies that tests change."""

    def __init__(self, *writable: str) -> None:
        self.there = [BookieId(name) for name in writable]
        self.callback: Callable[[], None] | None = None
        self.away = False
        self.closed = False

    async def writable(self) -> list[BookieId]:
        if self.away:
            raise MetadataUnavailableError("away")
        return list(self.there)

    async def read_only(self) -> list[BookieId]:
        return [BookieId("ro")]

    async def known(self) -> list[BookieId]:
        return [BookieId(name) for name in ("b1", "b2", "b3", "b4", "ro")]

    def watch(self, callback: Callable[[], None]) -> Directory:
        self.callback = callback
        return self

    def close(self) -> None:
        self.closed = True

    def change(self, *writable: str) -> None:
        self.there = [BookieId(name) for name in writable]
        assert self.callback is not None
        self.callback()


def in_a_world(story: Callable[[Directory, BookieWatcher], AsyncIterator[None]]) -> None:
    async def main() -> None:
        directory = Directory("b1", "b2", "b3")
        watcher = BookieWatcher(directory, Random(1), ClientConfig(quarantine_ms=10_000, bookies_poll_ms=5_000))
        await watcher.start()
        async for _ in story(directory, watcher):
            pass
        await watcher.close()
        assert directory.closed

    with World(1) as world:
        world.run(main())


def test_candidates_come_in_any_order_and_those_in_quarantine_last_for_a_while() -> None:
    async def story(directory: Directory, watcher: BookieWatcher) -> AsyncIterator[None]:
        assert len({tuple(watcher.candidates()) for _ in range(50)}) == 6
        watcher.quarantine(BookieId("b2"))
        assert {tuple(watcher.candidates()) for _ in range(50)} == {("b1", "b3", "b2"), ("b3", "b1", "b2")}
        assert watcher.is_quarantined(BookieId("b2"))
        await asyncio.sleep(11)
        assert not watcher.is_quarantined(BookieId("b2"))
        assert len({tuple(watcher.candidates()) for _ in range(50)}) == 6
        yield

    in_a_world(story)


@pytest.mark.rule("W13")
def test_quarantine_never_withholds_anyone() -> None:
    async def story(directory: Directory, watcher: BookieWatcher) -> AsyncIterator[None]:
        for bookie in watcher.writable:
            watcher.quarantine(bookie)
        assert sorted(watcher.candidates()) == ["b1", "b2", "b3"]
        yield

    in_a_world(story)


@pytest.mark.rule("Z5")
def test_who_appears_is_told_by_the_watch_and_by_the_timer_if_the_watch_is_lost() -> None:
    async def story(directory: Directory, watcher: BookieWatcher) -> AsyncIterator[None]:
        heard: list[frozenset[BookieId]] = []
        stop = watcher.on_appeared(heard.append)
        directory.change("b1", "b2", "b3", "b4")
        await asyncio.sleep(0.1)
        assert heard == [frozenset({"b4"})]
        directory.there = [BookieId("b1"), BookieId("b5")]  # and nobody says so
        await asyncio.sleep(6)
        assert heard[1:] == [frozenset({"b5"})] and watcher.writable == ("b1", "b5")
        stop()
        directory.change("b6")
        await asyncio.sleep(0.1)
        assert len(heard) == 2
        yield

    in_a_world(story)


@pytest.mark.rule("Z12")
def test_while_the_store_is_away_the_last_lists_stand() -> None:
    async def story(directory: Directory, watcher: BookieWatcher) -> AsyncIterator[None]:
        directory.away = True
        directory.change()
        await asyncio.sleep(20)
        assert list(watcher.writable) == ["b1", "b2", "b3"]
        directory.away = False
        await asyncio.sleep(11)
        assert not watcher.candidates()
        yield

    in_a_world(story)


@pytest.mark.rule("Z5")
def test_news_that_come_while_the_store_is_away_are_found_soon_after_it_is_back() -> None:
    async def story(directory: Directory, watcher: BookieWatcher) -> AsyncIterator[None]:
        heard: list[frozenset[BookieId]] = []
        watcher.on_appeared(heard.append)
        directory.away = True
        directory.change("b1", "b2", "b3", "b4")
        await asyncio.sleep(3.3)
        assert not heard
        directory.away = False
        await asyncio.sleep(1.1)
        assert heard == [{"b4"}]
        yield

    in_a_world(story)


def test_known_and_absent_are_those_with_a_cookie_and_without_a_registration() -> None:
    async def story(directory: Directory, watcher: BookieWatcher) -> AsyncIterator[None]:
        assert await watcher.known_absent() == ["b4"]
        yield

    in_a_world(story)


@pytest.mark.rule("P7")
def test_a_listener_that_breaks_keeps_nobody_else_from_the_news() -> None:
    async def story(directory: Directory, watcher: BookieWatcher) -> AsyncIterator[None]:
        heard: list[frozenset[BookieId]] = []

        def breaks(appeared: frozenset[BookieId]) -> None:
            raise ValueError("nobody expects this")

        watcher.on_appeared(breaks)
        watcher.on_appeared(heard.append)
        for name in ("b4", "b5"):
            directory.change(*directory.there, name)
            await asyncio.sleep(1)
        assert heard == [{"b4"}, {"b5"}]
        yield

    in_a_world(story)
