"""A watch is set again before its callback is called, whatever happened to it. Against a client without a server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from bookkeeper.errors import NoSuchKeyError
from bookkeeper.meta.store import SessionState
from bookkeeper.meta.stores.zookeeper_session import ZooKeeperSession
from bookkeeper.meta.stores.zookeeper_watches import FAMILY, VALUE, ZooKeeperWatches


class _Event:
    type = "CHANGED"


class _Client:
    """Notes which watches are set."""

    def __init__(self) -> None:
        self.set: list[tuple[str, str, Callable[[Any], None]]] = []
        self.exists = True

    def exists_async(self, path: str, watch: Callable[[Any], None]) -> object:
        self.set.append(("exists", path, watch))
        return object() if self.exists else None

    def get_children_async(self, path: str, watch: Callable[[Any], None]) -> object:
        if not self.exists:
            raise NoSuchKeyError(path)
        self.set.append(("children", path, watch))
        return []


class _Session:
    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.closed = False
        self.client = _Client()
        self.on_change: Callable[[SessionState], None] = lambda state: None

    async def read(self, what: str, send: Callable[[], Any]) -> Any:
        return send()

    def hop(self, job: Callable[..., None], *arguments: object) -> None:
        self.loop.call_soon(job, *arguments)


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def made() -> tuple[_Session, ZooKeeperWatches]:
    session = _Session()
    return session, ZooKeeperWatches(cast(ZooKeeperSession, session))


async def test_a_watch_that_fired_is_set_again_before_its_callback() -> None:
    session, watches = made()
    told: list[int] = []
    watches.add(VALUE, "/a", lambda: told.append(len(session.client.set)))
    await turns()
    assert told == [1], "what changed before it was set is told as well"
    session.client.set[0][2](_Event())
    await turns()
    assert told == [1, 2]


async def test_a_loss_is_told_and_every_watch_is_set_again_with_contact() -> None:
    session, watches = made()
    told: list[str] = []
    watches.add(VALUE, "/a", lambda: told.append("a"))
    await turns()
    told.clear()
    session.on_change(SessionState.LOST)
    await turns()
    assert told == ["a"] and len(session.client.set) == 1
    session.on_change(SessionState.CONNECTED)
    await turns()
    assert len(session.client.set) == 2 and told[1:]


async def test_the_children_of_a_node_that_is_missing_are_watched_by_its_existence() -> None:
    session, watches = made()
    session.client.exists = False
    watches.add(FAMILY, "/a", lambda: None)
    await turns()
    assert [kind for kind, _, _ in session.client.set] == ["exists"]


async def test_who_has_left_is_not_told_and_his_watch_is_not_set_again() -> None:
    session, watches = made()
    told: list[str] = []
    watch = watches.add(VALUE, "/a", lambda: told.append("a"))
    await turns()
    watch.close()
    session.client.set[0][2](_Event())
    await turns()
    assert told == ["a"] and len(session.client.set) == 1


async def test_a_closed_session_sets_no_watch() -> None:
    session, watches = made()
    session.closed = True
    watches.add(VALUE, "/a", lambda: None)
    await turns()
    watches.close()
    assert session.client.set == []
