"""Where bookies stand, as one client knows it: from the cluster's metadata, or from a source of its own.

The metadata are read at the start and followed by a watch and a timer. While they cannot be read, or what they hold
cannot, the last known locations are used. A bookie of which nothing is known stands in the default rack, as with
Apache's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Final, Protocol, cast

from bookkeeper.client.config import ClientConfig
from bookkeeper.client.tasks import Tasks
from bookkeeper.errors import ConfigError, MetadataError, in_words
from bookkeeper.ids import BookieId
from bookkeeper.ledger.location import DEFAULT_LOCATION, Location
from bookkeeper.ledger.placement import PlacementPolicy, RandomChoice, SpreadChoice
from bookkeeper.meta import Watch
from bookkeeper.seams import Workers

_log = logging.getLogger(__name__)

ODD_MAX: Final = 1000
"""Of so many odd locations each is told once; further ones are not."""


class KnownLocations(Protocol):
    """The part of :class:`bookkeeper.meta.records.locations.Locations` that is needed."""

    def read(self) -> Awaitable[Mapping[BookieId, Location]]: ...
    def watch(self, callback: Callable[[], None]) -> Watch: ...


class KnownBookies(Protocol):
    """The part of :class:`bookkeeper.meta.records.bookies.Bookies` that is needed."""

    def known(self) -> Awaitable[list[BookieId]]: ...
    def registered(self) -> Awaitable[Collection[BookieId]]: ...


class BookieLocations:
    """The locations of a cluster's bookies."""

    def __init__(
        self, locations: KnownLocations, bookies: KnownBookies, config: ClientConfig, workers: Workers
    ) -> None:
        self._locations = locations
        self._bookies = bookies
        self._config = config
        self._own = None if config.location is None else Location.parse(config.location)
        self._source = None if config.locations_from is None else location_source(config.locations_from)
        self._worker = None if self._source is None else workers.worker("bookie locations")
        self._odd: set[tuple[str, str]] = set()
        """What the source said that is no location, and was told: each once."""
        self._answer: asyncio.Future[Mapping[str, str]] | None = None
        """What the source is asked for just now."""
        self._is_late = False
        """Its time for that is over: nobody waits for it, and it is not asked for more."""
        self._last_said: Mapping[BookieId, Location] = {}
        self._known: Mapping[BookieId, Location] = {}
        self._version = 0
        self._away = False
        self._changed = asyncio.Event()
        self._watch: Watch | None = None
        self._tasks = Tasks("bookie locations")

    @property
    def version(self) -> int:
        """Another number after every change of a place."""
        return self._version

    def of(self, bookie: BookieId) -> Location:
        """The place of a bookie, also of one that is gone."""
        return self._known.get(bookie, DEFAULT_LOCATION)

    @property
    def distance(self) -> Callable[[BookieId], int] | None:
        """How far from this client a bookie stands: 0 in its rack, 1 in its region, 2 elsewhere. None: where this
        client stands is not known."""
        own = self._own
        return None if own is None else lambda bookie: own.distance(self.of(bookie))

    async def start(self) -> None:
        """Read the locations once and follow them from then on. That they cannot be read stops nothing."""
        self._watch = self._locations.watch(self._changed.set)
        await self.refresh()
        self._tasks.start(self._follow(), "follow")

    async def close(self) -> None:
        if self._watch is not None:
            self._watch.close()
        await self._tasks.close()
        worker, answer = self._worker, self._answer
        if worker is not None and answer is not None:  # it would be waited for: it ends when the source has answered
            answer.add_done_callback(lambda _: worker.close())
        elif worker is not None:
            worker.close()

    async def refresh(self) -> None:
        """Read the locations now. If that fails, the known ones stay, and it is logged once. While the client's own
        source fails or does not answer, its last answer counts, and the metadata for what that omits."""
        self._changed.clear()
        trouble: Exception | None = None
        try:
            known = await self._locations.read()
            names = () if self._source is None else {*await self._bookies.known(), *await self._bookies.registered()}
        except (MetadataError, ConfigError, OSError) as error:
            self._log_trouble(error)
            return
        try:
            self._last_said = await self._source_locations(sorted(names))
        except (ConfigError, OSError) as error:
            trouble = error
        known = {**known, **self._last_said}
        if known != self._known:
            self._known = known
            self._version += 1
        self._log_trouble(trouble)

    def _log_trouble(self, trouble: Exception | None) -> None:
        if trouble is not None:
            level = logging.DEBUG if self._away else logging.WARNING
            said = "where bookies stand cannot be read; the last known locations are used until it can: %s"
            _log.log(level, said, in_words(trouble))
        self._away = trouble is not None

    async def _source_locations(self, names: list[BookieId]) -> Mapping[BookieId, Location]:
        """The source's locations of all bookies. What is no location is left out, and reported once."""
        if self._source is None or self._worker is None:
            return {}
        if self._answer is None:
            self._answer = asyncio.ensure_future(self._worker.call(partial(self._source, names)))
        limit_s = self._config.metadata_timeout_ms / 1000
        await asyncio.wait((self._answer,), timeout=0 if self._is_late else limit_s)
        self._is_late = not self._answer.done()
        if self._is_late:
            raise ConfigError(f"{self._config.locations_from} has not answered for {limit_s:g} s or more")
        answer, self._answer = self._answer, None
        try:
            said = answer.result()
        except (ConfigError, OSError):
            raise
        except Exception as error:  # of somebody's function
            raise ConfigError(f"{self._config.locations_from} failed: {error!r}") from error
        if not isinstance(said, Mapping):
            raise ConfigError(f"{self._config.locations_from} gives a {type(said).__name__}, and no mapping of ids")
        found: dict[BookieId, Location] = {}
        for name in names:
            if (text := said.get(name)) is None:
                continue
            try:
                if not isinstance(text, str):
                    raise ConfigError(f"a {type(text).__name__} is no network location: write it as a text")
                found[name] = Location.parse(text)
            except ConfigError as error:
                text = str(text)
                if (name, text) not in self._odd and len(self._odd) < ODD_MAX:
                    self._odd.add((name, text))
                    _log.warning("%s says of %s: %s", self._config.locations_from, name, error)
        return found

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


def placement_policy(config: ClientConfig, locations: BookieLocations) -> PlacementPolicy:
    """The policy that a client's settings name."""
    if config.placement == "random":
        return RandomChoice()
    return SpreadChoice(
        locations,
        racks_min=config.racks_min,
        enforced=config.racks_enforced,
        by_region=config.placement == "region",
    )


LocationSource = Callable[[Sequence[str]], Mapping[str, str]]
"""Ids of bookies -> the locations of those that are known. It may block, and is called on a worker."""

_BINDINGS: Final = "bookkeeper.real.location_sources"


def location_source(text: str) -> LocationSource:
    """The source that a text names: ``file:/PATH``, ``script:/PATH`` or ``MODULE:FUNCTION``.

    Raises:
        ConfigError: there is no such module or function.
    """
    kind, _, rest = text.partition(":")
    if kind in ("file", "script"):
        bindings = import_module(_BINDINGS)
        return partial(bindings.from_file if kind == "file" else bindings.from_script, rest)
    try:
        return cast(LocationSource, getattr(import_module(kind), rest))
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"locations_from {text}: {error}") from error
