"""A session with a metadata service that begins when something is asked of it.

Whoever knows from others what the metadata say needs no session, until what it knows is not enough any more. A watch
asks nothing: it is set once there is a session, and called then, because something may have changed before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from bookkeeper.errors import ClientClosedError, MetadataRolledBackError
from bookkeeper.meta.store import MetadataStore, Operation, SessionState, ValueFollower, Version, Versioned, Watch

_CLOSED: Final = "the metadata store is closed"


class LateStore:
    """Opens a store at the first call that needs it. An attempt that fails is made again by the next call.

    Args:
        open_store: opens it.
    """

    def __init__(self, open_store: Callable[[], Awaitable[MetadataStore]]) -> None:
        self._open_store = open_store
        self._store: MetadataStore | None = None
        self._opening: asyncio.Task[MetadataStore] | None = None
        self._watches: dict[_LateWatch, None] = {}
        self._closed = False
        self.on_opened: Callable[[], None] = lambda: None
        """Called once, when it is open."""

    @property
    def is_open(self) -> bool:
        """Whether there is a session."""
        return self._store is not None

    async def _opened(self) -> MetadataStore:
        if self._closed:
            raise ClientClosedError(_CLOSED)
        if self._store is not None:
            return self._store
        if (attempt := self._opening) is None:
            attempt = self._opening = asyncio.get_running_loop().create_task(self._open())
            attempt.add_done_callback(self._on_attempted)
        try:
            return await asyncio.shield(attempt)
        except asyncio.CancelledError:
            if attempt.cancelled():
                raise ClientClosedError(_CLOSED) from None
            raise

    async def _open(self) -> MetadataStore:
        store = self._store = await self._open_store()
        for watch in list(self._watches):
            watch.begin(store)
        self._watches.clear()
        self.on_opened()
        return store

    def _on_attempted(self, attempt: asyncio.Task[MetadataStore]) -> None:
        self._opening = None
        if not attempt.cancelled():
            attempt.exception()  # every waiter has it; where they were all cancelled, nobody needs it

    def _watch(self, begin: Callable[[MetadataStore], Watch], again: Callable[[], None]) -> Watch:
        if self._store is not None:
            return begin(self._store)
        watch = _LateWatch(begin, again, self._watches)
        self._watches[watch] = None
        return watch

    # -- a store ------------------------------------------------------------------------------------------

    @property
    def session(self) -> SessionState:
        return SessionState.SUSPENDED if self._store is None else self._store.session

    @property
    def session_id(self) -> int:
        return 0 if self._store is None else self._store.session_id

    @property
    def last_transaction(self) -> int:
        return 0 if self._store is None else self._store.last_transaction

    @property
    def rolled_back(self) -> MetadataRolledBackError | None:
        return None if self._store is None else self._store.rolled_back

    async def get(self, path: str) -> Versioned[bytes]:
        return await (await self._opened()).get(path)

    async def exists(self, path: str) -> Version | None:
        return await (await self._opened()).exists(path)

    async def owner(self, path: str) -> int | None:
        return await (await self._opened()).owner(path)

    async def children(self, path: str) -> list[str]:
        return await (await self._opened()).children(path)

    async def create(
        self,
        path: str,
        value: bytes = b"",
        *,
        ephemeral: bool = False,
        sequential: bool = False,
        parents: bool = False,
    ) -> tuple[str, Version]:
        store = await self._opened()
        return await store.create(path, value, ephemeral=ephemeral, sequential=sequential, parents=parents)

    async def create_numbered(self, prefix: str, count: int) -> list[str]:
        return await (await self._opened()).create_numbered(prefix, count)

    async def set(self, path: str, value: bytes, expected: Version | None, *, created_txn: int = 0) -> Version:
        return await (await self._opened()).set(path, value, expected, created_txn=created_txn)

    async def delete(self, path: str, expected: Version | None) -> None:
        await (await self._opened()).delete(path, expected)

    async def multi(self, operations: Sequence[Operation]) -> list[Version | None]:
        return await (await self._opened()).multi(operations)

    async def sync(self, path: str) -> None:
        await (await self._opened()).sync(path)

    async def check_not_rolled_back(self, transaction: int) -> None:
        await (await self._opened()).check_not_rolled_back(transaction)

    def watch(self, path: str, callback: Callable[[], None]) -> Watch:
        return self._watch(lambda store: store.watch(path, callback), callback)

    def watch_children(self, path: str, callback: Callable[[], None]) -> Watch:
        return self._watch(lambda store: store.watch_children(path, callback), callback)

    def follow_values(self) -> ValueFollower:
        return _LateFollower(self._opened)

    def on_session(self, callback: Callable[[SessionState], None]) -> Watch:
        return self._watch(lambda store: store.on_session(callback), lambda: callback(SessionState.CONNECTED))

    async def close(self) -> None:
        self._closed = True
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait([self._opening])
        if self._store is not None:
            await self._store.close()


class _LateFollower:
    """A reader that waits for its store."""

    def __init__(self, opened: Callable[[], Awaitable[MetadataStore]]) -> None:
        self._opened = opened
        self._follower: ValueFollower | None = None

    async def _begun(self) -> ValueFollower:
        store = await self._opened()
        if self._follower is None:
            self._follower = store.follow_values()
        return self._follower

    async def get(self, path: str) -> Versioned[bytes]:
        return await (await self._begun()).get(path)

    async def changed(self) -> Sequence[str] | None:
        return await (await self._begun()).changed()

    def close(self) -> None:
        if self._follower is not None:
            self._follower.close()


class _LateWatch:
    """A watch that waits for its store."""

    def __init__(
        self, begin: Callable[[MetadataStore], Watch], again: Callable[[], None], waiting: dict[_LateWatch, None]
    ) -> None:
        self._begin, self._again, self._waiting = begin, again, waiting
        self._watch: Watch | None = None
        self._closed = False

    def begin(self, store: MetadataStore) -> None:
        """There is a store: watch it, and call back once, never inside a call of the store."""
        self._watch = self._begin(store)
        asyncio.get_running_loop().call_soon(self._call)

    def _call(self) -> None:
        if not self._closed:
            self._again()

    def close(self) -> None:
        self._closed = True
        self._waiting.pop(self, None)
        if self._watch is not None:
            self._watch.close()
