"""One client for all that this process opens at one address: it is closed with the last user."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from bookkeeper import BookKeeper


class SharedClient:
    """A client in use."""

    def __init__(self, client: BookKeeper, let_go: Callable[[], Awaitable[None]] | None = None) -> None:
        self.client = client
        self._let_go = let_go

    async def close(self) -> None:
        """End this use. A client that the application gave stays open. Idempotent."""
        let_go, self._let_go = self._let_go, None
        if let_go is not None:
            await let_go()


@dataclass(eq=False, slots=True)
class _Entry:
    users: int = 0
    """Those who have the client, wait for it, or are closing it."""
    client: BookKeeper | None = None
    changing: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while the client is opened or closed. A cluster inside this process can be opened again only after that."""


Key = tuple[asyncio.AbstractEventLoop, str]
_entries: Final[dict[Key, _Entry]] = {}


async def shared_client(metadata_uri: str) -> SharedClient:
    """The client of this loop at an address; the first use opens it.

    Raises:
        BookKeeperError: as ``BookKeeper.connect``. The next use tries again.
    """
    for key in [key for key in _entries if key[0].is_closed()]:
        del _entries[key]  # its loop ended before it was closed
    key = (asyncio.get_running_loop(), metadata_uri)
    entry = _entries.setdefault(key, _Entry())
    entry.users += 1
    try:
        async with entry.changing:
            if entry.client is None:
                entry.client = await BookKeeper.connect(metadata_uri)
            return SharedClient(entry.client, lambda: _let_go(key, entry))
    except BaseException:
        await _let_go(key, entry)
        raise


async def _let_go(key: Key, entry: _Entry) -> None:
    try:
        async with entry.changing:
            if entry.users == 1 and entry.client is not None:
                client, entry.client = entry.client, None
                await client.close()
    finally:
        entry.users -= 1
        if entry.users == 0 and _entries.get(key) is entry:
            del _entries[key]
