"""Subscriptions: callbacks that are enqueued onto their loop, at most once per change."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from bookkeeper.meta.store import SessionState

K = TypeVar("K")


class WatchSubscription:
    """One callback. Several changes before it runs cause one call. It runs in the subscriber's context. It knows its
    key, so that ten thousand need no function each."""

    __slots__ = ("_callback", "_context", "_forget", "_pending", "closed", "key")

    def __init__(self, callback: Callable[..., None], forget: Callable[[Any], None], key: Any = None) -> None:
        self._callback = callback
        self._context = contextvars.copy_context()
        self._forget = forget
        self._pending = False
        self.closed = False
        self.key = key

    def fire(self, loop: asyncio.AbstractEventLoop) -> None:
        """Enqueue the callback. Called on the loop's thread."""
        if not self.closed and not self._pending:
            self._pending = True
            loop.call_soon(self._run, context=self._context)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._forget(self)

    def _run(self, *news: SessionState) -> None:
        self._pending = False
        if not self.closed:
            self._callback(*news)


class WatchRegistry(Generic[K]):
    """The subscriptions by key."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._by_key: dict[K, list[WatchSubscription]] = {}

    def add(self, key: K, callback: Callable[[], None]) -> WatchSubscription:
        subscription = WatchSubscription(callback, self._forget, key)
        self._by_key.setdefault(key, []).append(subscription)
        return subscription

    def _forget(self, subscription: WatchSubscription) -> None:
        key = subscription.key
        self._by_key[key].remove(subscription)
        if not self._by_key[key]:
            del self._by_key[key]

    def fire(self, keys: Iterable[K]) -> None:
        """Fire the subscriptions of changed keys. Called on the loop's thread."""
        for key in keys:
            for subscription in self._by_key.get(key, ()):
                subscription.fire(self._loop)

    def fire_all(self) -> None:
        self.fire(list(self._by_key))

    def __contains__(self, key: object) -> bool:
        return key in self._by_key

    def keys(self) -> list[K]:
        """The watched keys, in the order in which they were first watched."""
        return list(self._by_key)


class SessionWatch(WatchSubscription):
    """One callback for session states. It gets every change, in order."""

    __slots__ = ()

    def notify(self, loop: asyncio.AbstractEventLoop, state: SessionState) -> None:
        loop.call_soon(self._run, state, context=self._context)


class SessionWatches:
    """The subscriptions to session states, and the present state."""

    def __init__(self, loop: asyncio.AbstractEventLoop, state: SessionState) -> None:
        self._loop = loop
        self._watches: list[SessionWatch] = []
        self.state = state
        self._connected = asyncio.Event()
        if state is SessionState.CONNECTED:
            self._connected.set()

    def add(self, callback: Callable[[SessionState], None]) -> SessionWatch:
        watch = SessionWatch(callback, self._watches.remove)
        self._watches.append(watch)
        return watch

    def change(self, state: SessionState) -> None:
        """Set the state and tell all subscribers. Called on the loop's thread."""
        if state is self.state:
            return
        self.state = state
        if state is SessionState.CONNECTED:
            self._connected.set()
        else:
            self._connected.clear()
        for watch in list(self._watches):
            watch.notify(self._loop, state)

    async def connected(self, timeout_s: float) -> bool:
        """Wait for CONNECTED. Returns False if it did not come in time."""
        if self._connected.is_set():
            return True
        try:
            async with asyncio.timeout(timeout_s):
                await self._connected.wait()
        except TimeoutError:
            return False
        return True
