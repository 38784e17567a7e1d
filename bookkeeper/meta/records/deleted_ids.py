"""The ids of deleted ledgers: none of them is ever given out again, whoever chose it.

Bookies hold the data of a deleted ledger until they collect it, and refuse its id from then on. So the transaction that
removes a ledger's metadata leaves a mark, beside the cluster's root::

    <root>-py/deleted/<id / 2**26>/<id / 2**13>          8192 ids: those marked, as ranges: ``0-17,19``
    <root>-py/deleted/<id / 2**26>/<id / 2**13>/<rest>   one id, marked and not yet in the ranges

A mark is first a value of its own, so that clients that delete at the same time do not conflict. Now and then a client
that deletes merges a few dozen marks into the ranges, by one compare-and-set. A value of 8192 ids has at most 20 KiB.

A new ledger's id is looked up *after* its metadata were created. The session that wrote them then sees every older mark
without a sync, and a younger mark can only come from a deletion of this very ledger.
Who makes many ledgers has the transaction that creates one fail instead if its id is marked (:meth:`DeletedIds.guard`).
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
    NoSuchKeyError,
    NotEmptyError,
    in_words,
)
from bookkeeper.ids import IdRanges, LedgerId
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.store import (
    LOST_MAX,
    OUTCOME_UNKNOWN,
    Check,
    Create,
    Delete,
    MetadataStore,
    Operation,
    Set,
    Version,
    get_or_none,
    names_below,
    parent_of,
)
from bookkeeper.seams import Rng

IDS: Final = 1 << 13
"""Ids of one value."""

MERGE_CHANCE: Final = 16
"""One deletion in so many checks whether there are marks to merge."""

MERGE_MIN: Final = 32
MERGE_MAX: Final = 256
"""Marks that are merged at once."""


def encode(ranges: Iterable[tuple[int, int]]) -> bytes:
    """The text of ranges of ids: ``0-17,19``."""
    return ",".join(f"{first}-{last}" if last > first else f"{first}" for first, last in ranges).encode()


def decode(data: bytes, what: str) -> IdRanges:
    """The reverse of encode. Raises: MetadataFormatError."""
    ranges = IdRanges()
    try:
        for part in filter(None, data.decode().split(",")):
            first, _, last = part.partition("-")
            ranges.add(int(first), int(last or first))
    except ValueError as error:
        raise MetadataFormatError(f"{what} cannot be read as ranges of deleted ledgers ({in_words(error)})") from error
    return ranges


class DeletedIds:
    """The marks of one cluster."""

    def __init__(self, store: MetadataStore, paths: Paths, rng: Rng) -> None:
        self._store = store
        self._paths = paths
        self._rng = rng
        self._seen: tuple[str, Version, IdRanges] | None = None
        """The value of ids that was read last: its path, its version, the ids that it marks."""

    def guard(self, ledger_id: LedgerId) -> list[Operation] | None:
        """Operations that fail if the id is marked, and change nothing, to be part of a transaction. None: call
        :meth:`prepare` first, or the id is marked."""
        place = self.place(ledger_id)
        if self._seen is None or self._seen[0] != place or ledger_id % IDS in self._seen[2]:
            return None
        mark = self.mark(ledger_id)
        return [Check(place, self._seen[1]), Create(mark), Delete(mark, Version(0))]

    async def prepare(self, ledger_id: LedgerId) -> None:
        """Read the value of the ids near ``ledger_id`` for :meth:`guard`, and make it if there is none. Raises:
        MetadataUnavailableError."""
        place = self.place(ledger_id)
        if (found := await get_or_none(self._store, place)) is None:
            await make(self._store, place)
            found = await self._store.get(place)
        self._seen = place, found.version, decode(found.value, place)

    def forget(self) -> None:
        """Something else is stored than :meth:`guard` expects."""
        self._seen = None

    def place(self, ledger_id: int) -> str:
        """The path of the value to which an id belongs."""
        return self._paths.own("deleted", f"{ledger_id >> 26:x}", f"{(ledger_id >> 13) % IDS:04x}")

    def mark(self, ledger_id: int) -> str:
        """The path of the value that marks one id."""
        return f"{self.place(ledger_id)}/{ledger_id % IDS:04x}"

    async def has(self, ledger_id: LedgerId, *, fresh: bool = False) -> bool:
        """Whether the id is marked. With ``fresh`` every mark made before this call is seen."""
        place, rest = self.place(ledger_id), ledger_id % IDS
        if (found := await get_or_none(self._store, place, fresh=fresh)) is None:
            return False
        if rest in decode(found.value, place):
            return True
        if await self._store.exists(self.mark(ledger_id)) is not None:
            return True
        if await self._store.exists(place) == found.version:
            return False
        return rest in decode((await self._store.get(place)).value, place)  # taken into the ranges in between

    async def add(self, ledger_id: LedgerId) -> None:
        """Mark the id of a ledger that was deleted. Raises: MetadataUnavailableError."""
        while not await self.has(ledger_id, fresh=True):
            try:
                await self._store.create(self.mark(ledger_id), parents=True)
            except KeyExistsError:
                pass
            except OUTCOME_UNKNOWN:
                continue

    async def delete(
        self, path: str, ledger_id: LedgerId, expected: Version | None, record: Create | None = None
    ) -> None:
        """Delete a ledger's metadata and mark its id, in one transaction. Returns when it is certainly done.

        Args:
            record: is written by the same transaction; it replaces what is at its path.

        Raises:
            MetadataConflictError, NoSuchKeyError: as the store's ``delete``.
            MetadataUnavailableError: it is not known whether it was done; with ``record`` also after ``LOST_MAX``
                attempts without an answer.
        """
        lost = 0
        with_it: list[Operation] = [Create(self.mark(ledger_id)), *([record] if record else [])]
        while True:
            try:
                await self._store.multi([Delete(path, expected), *with_it])
            except KeyExistsError:  # a client that knows no marks has made a ledger of this id anew
                with_it = await self._with_it(path, ledger_id, record)
                continue
            except OUTCOME_UNKNOWN:
                lost += 1
                await self._store.sync(path)
                if await self._store.exists(path) is not None:
                    if record and lost == LOST_MAX:
                        raise
                    continue
                await self.add(ledger_id)
            except NoSuchKeyError:
                await self._store.sync(path)
                if await self._store.exists(path) is not None:
                    await make(self._store, self.place(ledger_id))
                    if record:
                        await make(self._store, parent_of(record.path))
                    with_it = await self._with_it(path, ledger_id, record)
                    continue
                if not lost:
                    raise
                await self.add(ledger_id)
            break
        if not self._rng.randrange(0, MERGE_CHANCE):
            with suppress(MetadataError, ClientClosedError):  # the ledger is deleted even if this fails
                await self.merge(self.place(ledger_id))

    async def _with_it(self, path: str, ledger_id: LedgerId, record: Create | None) -> list[Operation]:
        """What the transaction does besides the deletion, as the store stands now."""
        await self._store.sync(path)
        mark = self.mark(ledger_id)
        found: list[Operation] = [] if await self._store.exists(mark) is not None else [Create(mark)]
        if record:
            there = await self._store.exists(record.path) is not None
            found.append(Set(record.path, record.value, None) if there else record)
        return found

    async def removal(self, ledger_id: LedgerId) -> list[Operation]:
        """The part of a transaction that removes an id's mark. It always changes the version of the value to which the
        id belongs: whoever has read that value and marks beside it can tell."""
        place, rest = self.place(ledger_id), ledger_id % IDS
        if (found := await get_or_none(self._store, place)) is None:
            return []
        ranges = decode(found.value, place)
        ranges.discard(rest)
        operations: list[Operation] = [Set(place, encode(ranges), found.version)]
        if await self._store.exists(self.mark(ledger_id)) is not None:
            operations.append(Delete(self.mark(ledger_id), None))
        return operations

    async def near(self, ledgers: Iterable[int]) -> IdRanges:
        """All marked ids that share a value with one of ``ledgers``."""
        found = IdRanges()
        for place, base in {self.place(ledger): ledger - ledger % IDS for ledger in ledgers}.items():
            names = await names_below(self._store, place)
            value = await get_or_none(self._store, place)  # after the names: a mark is in one of the two
            if value is None:
                continue
            for first, last in decode(value.value, place):
                found.add(base + first, base + last)
            for name in names:
                found.add(base + int(name, 16))
        return found

    async def merge(self, place: str) -> None:
        """Merge marks into the ranges, if there are many. After a conflict the other client does it."""
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
        except (MetadataConflictError, NoSuchKeyError, NotEmptyError, *OUTCOME_UNKNOWN):
            return


async def make(store: MetadataStore, path: str) -> None:
    """Create a value and its parents, unless it exists. Whether it was done shows later."""
    try:
        await store.create(path, parents=True)
    except (KeyExistsError, *OUTCOME_UNKNOWN):
        pass
