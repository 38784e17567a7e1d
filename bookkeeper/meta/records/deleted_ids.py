"""Which ledger ids were given out and deleted: none is ever given out again, whoever chose it.

Bookies hold the data of a deleted ledger until they collect it, and refuse its id from then on. So deleting a ledger
leaves a mark, in the very transaction that removes its metadata; our own state beside the root::

    <root>-py/deleted/<id / 2**26>/<id / 2**13>          8192 ids: those marked, as ranges: ``0-17,19``
    <root>-py/deleted/<id / 2**26>/<id / 2**13>/<rest>   one id, marked and not yet in the ranges

A mark is a value of its own first, so that those who delete at the same time do not meet; now and then whoever deletes
takes a few dozen of them into the ranges, by one compare-and-set. A value of 8192 ids has at most 20 KiB.

A new ledger's id is looked up *after* its metadata were created: the session that wrote sees then every mark that is
older, without a sync, and a younger one is that of this very ledger.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from bookkeeper.errors import (
    ClientClosedError,
    KeyExistsError,
    MetadataConflictError,
    MetadataError,
    MetadataFormatError,
    MetadataUnavailableError,
    NoSuchKeyError,
    NotEmptyError,
)
from bookkeeper.ids import IdRanges, LedgerId
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.store import Create, Delete, MetadataStore, Operation, Set, Version, settled_delete
from bookkeeper.seams import Rng

IDS: Final = 1 << 13
"""Of one value."""

MERGE_CHANCE: Final = 16
"""One of so many deletions looks whether there are marks to take into the ranges."""

MERGE_MIN: Final = 32
MERGE_MAX: Final = 256
"""Marks taken at once."""


def encode(ranges: Iterable[tuple[int, int]]) -> bytes:
    """Ranges of ids as text: ``0-17,19``."""
    return ",".join(f"{first}-{last}" if last > first else f"{first}" for first, last in ranges).encode()


def decode(data: bytes, what: str) -> IdRanges:
    """The reverse of encode. Raises: MetadataFormatError."""
    ranges = IdRanges()
    try:
        for part in filter(None, data.decode().split(",")):
            first, _, last = part.partition("-")
            ranges.add(int(first), int(last or first))
    except ValueError as error:
        raise MetadataFormatError(f"{what} lists no ranges of deleted ledgers: {data[:100]!r}") from error
    return ranges


class DeletedIds:
    """The marks of one cluster."""

    def __init__(self, store: MetadataStore, paths: Paths, rng: Rng) -> None:
        self._store = store
        self._paths = paths
        self._rng = rng

    def place(self, ledger_id: int) -> str:
        """The value that an id belongs to."""
        return self._paths.own("deleted", f"{ledger_id >> 26:x}", f"{(ledger_id >> 13) % IDS:04x}")

    def mark(self, ledger_id: int) -> str:
        """The value that marks one id."""
        return f"{self.place(ledger_id)}/{ledger_id % IDS:04x}"

    async def has(self, ledger_id: LedgerId, *, fresh: bool = False) -> bool:
        """Is it marked? ``fresh``: by anybody, up to now."""
        place, rest = self.place(ledger_id), ledger_id % IDS
        if fresh:
            await self._store.sync(place)
        try:
            found = await self._store.get(place)
        except NoSuchKeyError:
            return False
        if rest in decode(found.value, place):
            return True
        if await self._store.exists(self.mark(ledger_id)) is not None:
            return True
        if await self._store.exists(place) == found.version:
            return False
        return rest in decode((await self._store.get(place)).value, place)  # taken into the ranges in between

    async def add(self, ledger_id: LedgerId) -> None:
        """Mark an id whose ledger is gone. Raises: MetadataUnavailableError."""
        while not await self.has(ledger_id, fresh=True):
            try:
                await self._store.create(self.mark(ledger_id), parents=True)
            except KeyExistsError:
                pass
            except MetadataUnavailableError:
                continue

    async def delete(self, path: str, ledger_id: LedgerId, expected: Version | None) -> None:
        """Delete a ledger's metadata and mark its id, in one transaction; know that it is done.

        Raises:
            MetadataConflictError, NoSuchKeyError: as the store's ``delete``.
        """
        unsure = False
        while True:
            try:
                await self._store.multi([Delete(path, expected), Create(self.mark(ledger_id))])
            except KeyExistsError:  # somebody who knows no marks has made a ledger of this id anew
                await settled_delete(self._store, path, expected)
            except MetadataUnavailableError:
                unsure = True
                await self._store.sync(path)
                if await self._store.exists(path) is not None:
                    continue
                await self.add(ledger_id)
            except NoSuchKeyError:
                await self._store.sync(path)
                if await self._store.exists(path) is not None:
                    await self._make_place(ledger_id)
                    continue
                if not unsure:
                    raise
                await self.add(ledger_id)
            break
        if not self._rng.randrange(0, MERGE_CHANCE):
            with suppress(MetadataError, ClientClosedError):  # the ledger is deleted, whatever comes of this
                await self.merge(self.place(ledger_id))

    async def near(self, ledgers: Iterable[int]) -> IdRanges:
        """All marked ids that share a value with one of these."""
        found = IdRanges()
        for place, base in {self.place(ledger): ledger - ledger % IDS for ledger in ledgers}.items():
            try:
                names = await self._store.children(place)
                value = (await self._store.get(place)).value  # after the names: a mark is in one of the two
            except NoSuchKeyError:
                continue
            for first, last in decode(value, place):
                found.add(base + first, base + last)
            for name in names:
                found.add(base + int(name, 16))
        return found

    async def merge(self, place: str) -> None:
        """Take marks into the ranges, if there are many. Whoever loses against another leaves it to that one."""
        try:
            names = await self._store.children(place)
            while len(names) >= MERGE_MIN:
                some, names = names[:MERGE_MAX], names[MERGE_MAX:]
                found = await self._store.get(place)
                ranges = decode(found.value, place)
                for name in some:
                    ranges.add(int(name, 16))
                gone: list[Operation] = [Delete(f"{place}/{name}", None) for name in some]
                await self._store.multi([Set(place, encode(ranges), found.version), *gone])
        except (MetadataConflictError, NoSuchKeyError, NotEmptyError, MetadataUnavailableError):
            return

    async def _make_place(self, ledger_id: LedgerId) -> None:
        try:
            await self._store.create(self.place(ledger_id), parents=True)
        except (KeyExistsError, MetadataUnavailableError):
            pass
