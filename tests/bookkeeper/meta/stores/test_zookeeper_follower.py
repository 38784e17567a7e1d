"""Values in ZooKeeper that are followed by the watches that reads leave behind; with a real one: the contract."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from kazoo.protocol.states import EventType, KeeperState, WatchedEvent

from bookkeeper.errors import MetadataUnavailableError, NoSuchKeyError
from bookkeeper.meta.store import SessionState
from bookkeeper.meta.stores.watches import SessionWatches
from bookkeeper.meta.stores.zookeeper_follower import ZooKeeperFollower


class Script:
    """As much of a session as a follower uses; it keeps the watches that were asked for."""

    def __init__(self) -> None:
        self.states = SessionWatches(asyncio.get_running_loop(), SessionState.CONNECTED)
        self.client = self
        self.watches: dict[str, Callable[[Any], None]] = {}
        self.plain: list[str] = []
        self.fails = False
        self.gone: set[str] = set()

    def get_async(self, path: str, watch: Callable[[Any], None] | None = None) -> str:
        if watch is None:
            self.plain.append(path)
        elif not self.fails:
            self.watches[path] = watch
        return path

    async def read(self, what: str, send: Callable[[], str]) -> tuple[bytes, Any]:
        path = send()
        if path in self.gone:
            raise NoSuchKeyError(path)
        if self.fails:
            raise MetadataUnavailableError("no answer")
        return path.encode(), SimpleNamespace(version=1, ctime=2, mzxid=3, czxid=4)

    def hop(self, job: Callable[..., None], *arguments: object) -> None:
        job(*arguments)

    def fire(self, path: str) -> None:
        self.watches.pop(path)(WatchedEvent(EventType.CHANGED, KeeperState.CONNECTED, path))

    def lose_connection(self) -> None:
        """The client calls every watch, and the session tells its state."""
        watches, self.watches = self.watches, {}
        for watch in watches.values():
            watch(WatchedEvent(EventType.NONE, KeeperState.CONNECTING, None))
        self.states.change(SessionState.SUSPENDED)
        self.states.change(SessionState.CONNECTED)


async def follower_of(script: Script, watches_max: int = 100) -> ZooKeeperFollower:
    follower = ZooKeeperFollower(script, watches_max)  # type: ignore[arg-type]
    assert await follower.changed() is None
    return follower


async def test_a_read_watches_once_and_who_reads_again_watches_again() -> None:
    script = Script()
    follower = await follower_of(script)
    assert (await follower.get("/a")).value == b"/a" and await follower.changed() == []
    script.fire("/a")
    assert await follower.changed() == ["/a"] and await follower.changed() == []
    assert script.watches == {}, "nothing is asked for by itself"
    await follower.get("/a")
    script.fire("/a")
    assert await follower.changed() == ["/a"]


async def test_after_a_lost_connection_everything_may_have_changed_once() -> None:
    script = Script()
    follower = await follower_of(script)
    await follower.get("/a")
    script.lose_connection()
    await asyncio.sleep(0)
    assert await follower.changed() is None and await follower.changed() == []
    await follower.get("/a")
    script.fire("/a")
    assert await follower.changed() == ["/a"]


async def test_what_is_not_watched_for_their_number_counts_as_changed() -> None:
    script = Script()
    follower = await follower_of(script, watches_max=2)
    for path in ("/a", "/b", "/c", "/d"):
        await follower.get(path)
    assert set(script.watches) == {"/a", "/b"} and script.plain == ["/c", "/d"]
    assert await follower.changed() == ["/c", "/d"]
    script.fire("/a")
    for path in ("/c", "/d"):
        await follower.get(path)
    assert set(script.watches) == {"/b", "/c"} and await follower.changed() == ["/a", "/d"]


async def test_a_read_that_failed_leaves_its_place_to_another() -> None:
    script = Script()
    follower = await follower_of(script, watches_max=1)
    script.fails = True
    with pytest.raises(MetadataUnavailableError):
        await follower.get("/a")
    script.fails = False
    await follower.get("/b")
    assert set(script.watches) == {"/b"} and await follower.changed() == ["/a"]


async def test_a_read_that_failed_does_not_hide_the_next_write_from_who_has_read_before() -> None:
    script = Script()
    follower = await follower_of(script)
    await follower.get("/a")
    script.fails = True
    with pytest.raises(MetadataUnavailableError):
        await follower.get("/a")
    assert await follower.changed() == ["/a"]


async def test_a_value_that_is_not_there_is_not_named_at_each_look() -> None:
    script = Script()
    follower = await follower_of(script, watches_max=1)
    script.gone.add("/a")
    with pytest.raises(NoSuchKeyError):
        await follower.get("/a")
    assert await follower.changed() == []
    await follower.get("/b")
    script.fire("/b")
    assert await follower.changed() == ["/b"], "its place was left to another"


async def test_a_closed_one_knows_nothing() -> None:
    script = Script()
    follower = await follower_of(script)
    await follower.get("/a")
    follower.close()
    script.fire("/a")
    assert await follower.changed() is None
