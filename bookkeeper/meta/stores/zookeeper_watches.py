"""Watches in ZooKeeper, which fires each once and drops them with a connection.

A watch that fired, or was dropped, is set again, and its callback comes *after* that: no change between a caller's read
and the new watch is missed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from bookkeeper.errors import ClientClosedError, MetadataError, NoSuchKeyError
from bookkeeper.meta.store import SessionState, Watch, check_path
from bookkeeper.meta.stores.watches import WatchRegistry
from bookkeeper.meta.stores.zookeeper_session import ZooKeeperSession

VALUE: Final = "value"
FAMILY: Final = "family"


class ZooKeeperWatches:
    """The watches of one session, on values and on families of children."""

    def __init__(self, session: ZooKeeperSession) -> None:
        self._session = session
        self._watched: dict[str, WatchRegistry[str]] = {
            VALUE: WatchRegistry(session.loop),
            FAMILY: WatchRegistry(session.loop),
        }
        self._events: dict[tuple[str, str], Callable[[Any], None]] = {}
        self._arming: dict[tuple[str, str], asyncio.Task[None]] = {}
        session.on_change = self._on_state

    def close(self) -> None:
        """Set no more watches."""
        for task in self._arming.values():
            task.cancel()

    def _on_state(self, state: SessionState) -> None:
        for kind, registry in self._watched.items():
            registry.fire_all()
            if state is SessionState.CONNECTED:
                for path in registry.keys():  # noqa: SIM118
                    self._arm(kind, path)

    def add(self, kind: str, path: str, callback: Callable[[], None]) -> Watch:
        subscription = self._watched[kind].add(check_path(path), callback)
        self._arm(kind, path)
        return subscription

    def _arm(self, kind: str, path: str) -> None:
        key = (kind, path)
        if key not in self._arming and not self._session.closed and path in self._watched[kind]:
            self._arming[key] = task = self._session.loop.create_task(self._set_watch(kind, path))
            task.add_done_callback(lambda done: self._arming.pop(key, None))

    async def _set_watch(self, kind: str, path: str) -> None:
        event = self._events.setdefault((kind, path), partial(self._on_kazoo_event, kind, path))
        exists = partial(self._session.client.exists_async, path, watch=event)
        try:
            if kind == VALUE:
                await self._session.read(f"watch {path}", exists)
            else:
                await self._watch_family(path, event, exists)
        except (MetadataError, ClientClosedError):
            return  # no contact: everything is set again with the next CONNECTED
        self._watched[kind].fire([path])

    async def _watch_family(self, path: str, event: Callable[[Any], None], exists: Callable[[], Any]) -> None:
        while True:
            try:
                await self._session.read(
                    f"watch {path}", partial(self._session.client.get_children_async, path, watch=event)
                )
                return
            except NoSuchKeyError:
                if await self._session.read(f"watch {path}", exists) is None:
                    return

    def _on_kazoo_event(self, kind: str, path: str, event: Any) -> None:
        self._session.hop(self._on_event, kind, path, event.type)

    def _on_event(self, kind: str, path: str, event_type: str) -> None:
        if path not in self._watched[kind]:
            self._events.pop((kind, path), None)
        elif (arming := self._arming.get((kind, path))) is not None:
            arming.add_done_callback(lambda done: self._arm(kind, path))
        elif event_type != "NONE":
            self._arm(kind, path)
