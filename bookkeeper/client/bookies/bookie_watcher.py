"""Which bookies are registered, and which are better avoided for now.

A watch keeps the lists of writable and read-only bookies fresh, and a timer does, because watches can be lost. While
the metadata store does not answer, the last lists are used. Quarantine is a preference: a bookie that failed is offered
last for some time, but is never withheld.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol

from bookkeeper.client.config import ClientConfig
from bookkeeper.client.tasks import Tasks
from bookkeeper.errors import MetadataError
from bookkeeper.ids import BookieId
from bookkeeper.ledger.placement import Candidates
from bookkeeper.meta import Watch
from bookkeeper.seams import Rng

_log = logging.getLogger(__name__)


RETRY_S: Final = 1.0
"""Seconds between two attempts to read the lists. It is short: a writer may wait for a bookie that registered."""


class BookieDirectory(Protocol):
    """The part of :class:`bookkeeper.meta.Bookies` that the watcher needs."""

    def writable(self) -> Awaitable[list[BookieId]]: ...
    def read_only(self) -> Awaitable[list[BookieId]]: ...
    def known(self) -> Awaitable[list[BookieId]]: ...
    def watch(self, callback: Callable[[], None]) -> Watch: ...


class BookieWatcher:
    """The bookies of the cluster as one client sees them."""

    def __init__(self, bookies: BookieDirectory, rng: Rng, config: ClientConfig) -> None:
        self._bookies = bookies
        self._rng = rng
        self._config = config
        self._quarantined: dict[BookieId, float] = {}
        self._listeners: dict[int, Callable[[frozenset[BookieId]], None]] = {}
        self._listener_ids = 0
        self._changed = asyncio.Event()
        self._watch: Watch | None = None
        self._tasks = Tasks("bookie watcher")
        self.writable: tuple[BookieId, ...] = ()
        """Bookies that take new entries, sorted, as last read."""
        self.read_only: tuple[BookieId, ...] = ()
        self.weights: Mapping[BookieId, float] | None = None
        """How often each should be chosen, in relation to the others; None: all equally often."""

    async def start(self) -> None:
        """Read the lists once and follow them from then on. Raises: MetadataError."""
        self._watch = self._bookies.watch(self._changed.set)
        await self.refresh()
        self._tasks.start(self._follow(), "follow")

    async def close(self) -> None:
        if self._watch is not None:
            self._watch.close()
        await self._tasks.close()

    def candidates(self) -> Candidates:
        """Writable bookies in random order, those in quarantine last."""
        quarantined = self.quarantined()
        if not quarantined:
            return Candidates(self.writable, (), self._rng, self.weights)
        healthy = tuple(bookie for bookie in self.writable if bookie not in quarantined)
        doubtful = [bookie for bookie in self.writable if bookie in quarantined]
        return Candidates(healthy, doubtful, self._rng, self.weights)

    def quarantined(self) -> frozenset[BookieId]:
        """The bookies that are in quarantine now."""
        if self._quarantined:
            now = asyncio.get_running_loop().time()
            self._quarantined = {bookie: until for bookie, until in self._quarantined.items() if until > now}
        return frozenset(self._quarantined)

    @property
    def has_quarantined(self) -> bool:
        """Whether any bookie may be in quarantine."""
        return bool(self._quarantined)

    def is_quarantined(self, bookie: BookieId) -> bool:
        return self._quarantined.get(bookie, 0.0) > asyncio.get_running_loop().time()

    def quarantine(self, bookie: BookieId) -> None:
        """This bookie failed for a ledger: offer it last for a while."""
        self._quarantined[bookie] = asyncio.get_running_loop().time() + self._config.quarantine_ms / 1000

    async def known_absent(self) -> list[BookieId]:
        """Bookies that have a cookie of this cluster and are not registered now, in random order."""
        known = await self._bookies.known()
        absent = [bookie for bookie in known if bookie not in self.writable and bookie not in self.read_only]
        self._rng.shuffle(absent)
        return absent

    def on_appeared(self, callback: Callable[[frozenset[BookieId]], None]) -> Callable[[], None]:
        """Call ``callback`` with bookies whenever they become writable. Returns a function that ends this."""
        self._listener_ids += 1
        key = self._listener_ids
        self._listeners[key] = callback
        return lambda: (self._listeners.pop(key, None), None)[1]

    async def refresh(self) -> None:
        """Read the lists now. Raises: MetadataError."""
        self._changed.clear()
        writable = tuple(await self._bookies.writable())
        self.read_only = tuple(await self._bookies.read_only())
        appeared = frozenset(writable) - frozenset(self.writable)
        self.writable = writable
        if appeared:
            for callback in list(self._listeners.values()):
                try:
                    callback(appeared)
                except Exception:  # an error in one handle must not keep the news from the others
                    _log.exception(
                        "a ledger handle failed when it was told of new bookies: %s", ", ".join(sorted(appeared))
                    )

    async def _follow(self) -> None:
        period = self._config.bookies_poll_ms / 1000
        away = False
        while True:
            try:
                async with asyncio.timeout(RETRY_S if away else period):
                    await self._changed.wait()
            except TimeoutError:
                pass
            try:
                await self.refresh()
                away = False
            except MetadataError as error:
                level = logging.DEBUG if away else logging.WARNING  # retried every second, reported once
                _log.log(
                    level, "the list of bookies cannot be read; the last known list is used until it can: %s", error
                )
                away = True
                await asyncio.sleep(RETRY_S)
