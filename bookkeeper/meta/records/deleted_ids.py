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
    BookKeeperError,
    ClientClosedError,
    KeyExistsError,
    MetadataConflictError,
    MetadataError,
    MetadataFormatError,
    MetadataUnavailableError,
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
    Versioned,
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

    async def add(self, ledger_id: LedgerId, path: str) -> bool:
        """Mark the id of a ledger that is gone from ``path``. Returns whether it is marked and still gone.

        A ledger that comes back meanwhile stays unmarked: whoever brings one back, or makes one, changes the value of
        its id or looks for the mark after its metadata were written; this looks for the metadata after the mark was.

        Raises: MetadataUnavailableError.
        """
        marked = False
        while not await self.has(ledger_id, fresh=True):
            if await self._store.exists(path) is not None:
                return False
            try:
                await self._store.create(self.mark(ledger_id), parents=True)
                marked = True
            except KeyExistsError:
                pass
            except OUTCOME_UNKNOWN:
                continue
        if await self._store.exists(path) is None:
            return True
        if marked:
            await self._unmark(ledger_id, path)
        return False

    async def _unmark(self, ledger_id: LedgerId, path: str) -> None:
        """Remove the mark of a ledger that is there. After a conflict it is looked at again."""
        for _ in range(LOST_MAX):
            operations = await self.removal(ledger_id)
            if not operations or await get_or_none(self._store, path) is None:
                return
            try:
                await self._store.multi([Check(path, None), *operations])
                return
            except (MetadataConflictError, NoSuchKeyError):
                await self._store.sync(path)
            except OUTCOME_UNKNOWN:
                if not await self.has(ledger_id, fresh=True):
                    return
        raise MetadataUnavailableError(
            f"ledger {ledger_id} is there, and its id is marked as that of a deleted one: {LOST_MAX} attempts to "
            "remove the mark failed; try again later"
        )

    async def delete(
        self, path: str, ledger_id: LedgerId, found: Versioned[bytes], record: Create | None = None
    ) -> None:
        """Delete a ledger's metadata and mark its id, in one transaction. Returns when it is certainly done.

        The transaction is repeated only over the metadata that were ``found``. It makes the mark, or changes it; all
        that takes marks away changes the value of the ids around it, which was read before the metadata. So an attempt
        cannot be done behind one that was done already, whatever has come back or was made anew since.

        Args:
            record: is written by the same transaction; it replaces what is at its path.

        Raises:
            MetadataConflictError: the metadata have another version.
            NoSuchKeyError: they are gone, or others were made since, before this has tried anything.
            MetadataUnavailableError: it is not known whether it was done; with ``record`` also after ``LOST_MAX``
                attempts without an answer.
        """
        lost, unknown = 0, BookKeeperError()
        with_it: list[Operation] = [Create(self.mark(ledger_id)), *([record] if record else [])]
        while True:
            try:
                await self._store.multi([Delete(path, found.version), *with_it])
                break
            except OUTCOME_UNKNOWN as error:
                lost, unknown = lost + 1, error
            except NoSuchKeyError:
                pass  # the metadata, or the parents of the mark or of the record
            except KeyExistsError:
                pass  # the mark: it was done, or a client that knows no marks has made a ledger of this id anew
            except MetadataConflictError:
                pass  # the metadata, or a mark that somebody has changed
            with_it = await self._with_it(ledger_id, record)
            there = await get_or_none(self._store, path)
            if there is None and lost:
                await self.add(ledger_id, path)
                break
            if there is None or there.created_txn != found.created_txn:
                if lost:
                    break
                raise NoSuchKeyError(f"{path} was deleted meanwhile")
            if there.version != found.version:
                raise MetadataConflictError(f"{path} has version {there.version}, not {found.version}")
            if record and lost >= LOST_MAX:
                raise unknown
        if not self._rng.randrange(0, MERGE_CHANCE):
            with suppress(MetadataError, ClientClosedError):  # the ledger is deleted even if this fails
                await self.merge(self.place(ledger_id))

    async def _with_it(self, ledger_id: LedgerId, record: Create | None) -> list[Operation]:
        """What the transaction does besides the deletion, as the store stands now. It fails when somebody has deleted
        the ledger since this was read."""
        place, mark = self.place(ledger_id), self.mark(ledger_id)
        await self._store.sync(place)
        if (around := await self._store.exists(place)) is None:
            await make(self._store, place)
            around = Version(0)
        if record and await self._store.exists(parent_of(record.path)) is None:
            await make(self._store, parent_of(record.path))
        marked = await self._store.exists(mark)
        found: list[Operation] = [Check(place, around)]
        found.append(Create(mark) if marked is None else Set(mark, b"", marked))
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
