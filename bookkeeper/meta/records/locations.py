"""Where bookies stand: the last known network location of each, also of one that is gone.

    <root>-py/locations     {"bk1:3181": "/rack1", "bk2:3181": "/rack2"}

A bookie writes its own at its start, if its settings have one; ``bk bookies place`` writes any. It outlives the
registration and every process, so that a repair knows from where a copy is missing. Java's clients do not read it: they
ask a script or a file of their own (``networkTopologyScriptFileName``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Final

from bookkeeper.amounts import counted
from bookkeeper.errors import ConfigError, MetadataFormatError
from bookkeeper.ids import BookieId
from bookkeeper.ledger.location import Location
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.store import MetadataStore, Watch, ensure_created, get_or_none, update

SIZE_MAX: Final = 768 * 1024
"""Bytes of all locations together at most; a value of ZooKeeper has 1 MiB."""


class Locations:
    """The locations of one cluster's bookies. Methods raise MetadataError."""

    def __init__(self, store: MetadataStore, paths: Paths) -> None:
        self._store = store
        self._path = paths.own("locations")

    async def read(self, *, fresh: bool = False) -> dict[BookieId, Location]:
        """All that are known, read after a sync if they have to be ``fresh``.

        Raises:
            MetadataFormatError: the record cannot be read.
        """
        found = await get_or_none(self._store, self._path, fresh=fresh)
        return {} if found is None else decode(found.value)

    async def put(self, bookie: BookieId, location: Location | None) -> bool:
        """Note where a bookie stands; None: forget it. Returns whether that is news. Idempotent.

        Raises:
            ConfigError: the record has no room for it.
        """
        known = await self.read(fresh=True)
        if known.get(bookie) == location:
            return False
        await ensure_created(self._store, self._path, encode({}))

        def change(data: bytes) -> bytes:
            places = decode(data)
            places.pop(bookie, None)
            return encode(places if location is None else {**places, bookie: location})

        await update(self._store, self._path, change)
        return True

    def watch(self, callback: Callable[[], None]) -> Watch:
        """Call back when a location has changed."""
        return self._store.watch(self._path, callback)


def encode(places: Mapping[BookieId, Location]) -> bytes:
    """The bytes that are stored. Raises: ConfigError: they would be more than :data:`SIZE_MAX`."""
    data = json.dumps({bookie: str(places[bookie]) for bookie in sorted(places)}, separators=(",", ":")).encode()
    if len(data) > SIZE_MAX:
        raise ConfigError(
            f"the locations of {counted(len(places), 'bookie')} would have {len(data)} bytes; {SIZE_MAX} have room"
        )
    return data


def decode(data: bytes) -> dict[BookieId, Location]:
    """Read what :func:`encode` wrote. Raises: MetadataFormatError: it is something else."""
    try:
        if len(data) > SIZE_MAX:
            raise ValueError(f"it has {len(data)} bytes, more than {SIZE_MAX}")
        body = json.loads(data)
        return {BookieId(str(bookie)): Location.parse(place) for bookie, place in body.items()}
    except (ValueError, TypeError, AttributeError, RecursionError, ConfigError) as error:
        raise MetadataFormatError(f"the locations of the bookies cannot be read: {error}") from error
