"""Where bookies stand, as one client knows it: from the cluster's metadata, or from a source of its own.

The metadata are read at the start and followed by a watch and a timer. While they cannot be read, or what they hold
cannot, the last known places are used. A bookie of which nothing is known stands in the default rack, as with Apache's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from bookkeeper.client.config import ClientConfig
from bookkeeper.client.tasks import Tasks
from bookkeeper.errors import MetadataError
from bookkeeper.ids import BookieId
from bookkeeper.ledger.location import DEFAULT_LOCATION, Location
from bookkeeper.meta import Watch

_log = logging.getLogger(__name__)


class KnownLocations(Protocol):
    """The part of :class:`bookkeeper.meta.records.locations.Locations` that is needed."""

    def read(self) -> Awaitable[Mapping[BookieId, Location]]: ...
    def watch(self, callback: Callable[[], None]) -> Watch: ...


class BookiePlaces:
    """The places of a cluster's bookies."""

    def __init__(self, locations: KnownLocations, config: ClientConfig) -> None:
        self._locations = locations
        self._config = config
        self._known: Mapping[BookieId, Location] = {}
        self._version = 0
        self._away = False
        self._changed = asyncio.Event()
        self._watch: Watch | None = None
        self._tasks = Tasks("bookie places")

    @property
    def version(self) -> int:
        """Another number after every change of a place."""
        return self._version

    def of(self, bookie: BookieId) -> Location:
        """The place of a bookie, also of one that is gone."""
        return self._known.get(bookie, DEFAULT_LOCATION)

    async def start(self) -> None:
        """Read the places once and follow them from then on. That they cannot be read stops nothing."""
        self._watch = self._locations.watch(self._changed.set)
        await self.refresh()
        self._tasks.start(self._follow(), "follow")

    async def close(self) -> None:
        if self._watch is not None:
            self._watch.close()
        await self._tasks.close()

    async def refresh(self) -> None:
        """Read the places now; those known stay if that fails, which is logged once."""
        self._changed.clear()
        try:
            known = await self._locations.read()
        except MetadataError as error:
            level = logging.DEBUG if self._away else logging.WARNING
            _log.log(
                level, "where the bookies stand cannot be read; the last known places are used until it can: %s", error
            )
            self._away = True
            return
        self._away = False
        if known != self._known:
            self._known = known
            self._version += 1

    async def _follow(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._config.bookies_poll_ms / 1000):
                    await self._changed.wait()
            except TimeoutError:
                pass
            await self.refresh()
            if self._away:
                await asyncio.sleep(1.0)
