"""The gateway's feed, as the story needs it: "tell me when offsets/N is there and commits/N is not".

The feed is followed for the whole run; when the gateway goes away it is taken up again.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Final

import aiohttp

_RETRY_S: Final = 0.1
_PLACE = re.compile(r"/(offsets|commits)/(\d+)$")
_STATE = re.compile(r"/state/\d+/\d+/[^.][^/]*$")


@dataclass(slots=True)
class FeedProgress:
    """What the feed has told so far."""

    offsets: int = -1
    """The last batch planned."""
    commits: int = -1
    """The last batch committed."""
    state_since_offsets: int = 0
    """State files that have appeared since the last batch was planned."""


class Feed:
    """Follows ``/events`` of a gateway and wakes whoever waits for a condition on :class:`FeedProgress`."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.watch = FeedProgress()
        self._changed = asyncio.Condition()

    async def follow(self) -> None:
        """Until cancelled."""
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session:
            while True:
                try:
                    async for event in self._events(session):
                        await self._on_event(event)
                except (aiohttp.ClientError, ConnectionError):
                    pass
                await asyncio.sleep(_RETRY_S)

    async def _events(self, session: aiohttp.ClientSession) -> AsyncIterator[dict[str, Any]]:
        async with session.get(self._url) as reply:
            reply.raise_for_status()
            async for line in reply.content:
                text = line.decode().strip().removeprefix("data:").strip()
                if text.startswith("{"):
                    yield json.loads(text)

    async def _on_event(self, event: dict[str, Any]) -> None:
        path = event.get("destination") or event.get("path") or ""
        if event.get("op") not in ("rename", "create"):
            return
        place = _PLACE.search(path)
        if place is None and not _STATE.search(path):
            return
        async with self._changed:
            if place is None:
                self.watch.state_since_offsets += 1
            elif place[1] == "offsets":
                self.watch.offsets = max(self.watch.offsets, int(place[2]))
                self.watch.state_since_offsets = 0
            else:
                self.watch.commits = max(self.watch.commits, int(place[2]))
            self._changed.notify_all()

    async def until(self, condition: Callable[[FeedProgress], bool]) -> FeedProgress:
        """Wait until the condition holds."""
        async with self._changed:
            await self._changed.wait_for(lambda: condition(self.watch))
            return self.watch
