"""A reader of values in ZooKeeper that knows which of them were changed since it has read them.

Each read leaves a watch behind, by the same request. A watch fires once, and the servers forget it with the connection:
then any value may have changed. Nothing is set again by itself, so neither a change nor a lost connection causes
requests; who reads again watches again.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from bookkeeper.errors import NoSuchKeyError
from bookkeeper.meta.store import SessionState, Version, Versioned, check_path
from bookkeeper.meta.stores.zookeeper_session import ZooKeeperSession

WATCHES_MAX: Final = 200_000
"""So many values are watched at most, because each watch takes memory of a server; further ones count as changed each
time."""


class ZooKeeperFollower:
    """See :class:`~bookkeeper.meta.store.ValueFollower`."""

    def __init__(self, session: ZooKeeperSession, watches_max: int = WATCHES_MAX) -> None:
        self._session, self._max = session, watches_max
        self._watched: set[str] = set()
        self._changed: set[str] = set()
        """Values whose watches have fired, and those that are not watched because there are too many."""
        self._in_doubt = True
        self._states = session.states.add(self._on_state)

    async def get(self, path: str) -> Versioned[bytes]:
        """See :class:`~bookkeeper.meta.store.ValueFollower`."""
        client = self._session.client
        if path in self._watched or len(self._watched) < self._max:
            self._watched.add(path)
            ask = partial(client.get_async, check_path(path), watch=self._on_event)
        else:
            self._changed.add(path)
            ask = partial(client.get_async, check_path(path))
        try:
            value, stat = await self._session.read(f"get {path}", ask)
        except NoSuchKeyError:  # a server keeps no watch there, and has fired an earlier one
            self._watched.discard(path)
            raise
        except BaseException:
            if path in self._watched:  # another read may have left a watch, which would be forgotten with this one
                self._fired(path)
            raise
        return Versioned(value, Version(stat.version), stat.ctime, stat.mzxid, stat.czxid)

    async def changed(self) -> list[str] | None:
        """See :class:`~bookkeeper.meta.store.ValueFollower`."""
        doubt, self._in_doubt = self._in_doubt, False
        found, self._changed = self._changed, set()
        return None if doubt else sorted(found)

    def close(self) -> None:
        """See :class:`~bookkeeper.meta.store.ValueFollower`. Watches that are left fire into the void."""
        self._states.close()
        self._watched.clear()
        self._changed.clear()
        self._in_doubt = True

    def _on_state(self, state: SessionState) -> None:
        if state is not SessionState.CONNECTED:
            self._watched.clear()
            self._changed.clear()
            self._in_doubt = True

    def _on_event(self, event: Any) -> None:
        """On the client's thread. With a lost connection comes one event for each watch; the session tells once."""
        if event.path is not None:
            self._session.hop(self._fired, event.path)

    def _fired(self, path: str) -> None:
        if path in self._watched:
            self._watched.discard(path)
            self._changed.add(path)
