"""The deleted ledgers that can still be brought back: their metadata, kept for a grace time beside the cluster's root::

    <root>-py/deleted/ledgers/<id / 2**26>/<id / 2**13>/<rest>

A value is a line of JSON (``{"grace_s": 86400, "version": 3}``), then the bytes that were the ledger's metadata.

* The transaction that deletes a ledger writes its record. The transaction that brings it back removes the record.
* The metadata come back in a higher version than they ever had: ``version`` is the last one. So a writer or a recovery
  that has slept since before the deletion cannot replace them, and open a closed ledger again.
* While the record exists, our bookies keep the ledger's data. So it is removed first, and the data go afterwards:
  nobody compares clocks to decide whether data may go.
* Its grace is over when the store's own clock has advanced by ``grace_s`` since the record was created. Whoever looks
  through the records then removes it: bookies that collect garbage, whoever lists them, now and then a client that
  deletes. A store whose clock jumps ahead shortens the grace by as much. A copy into another store begins it anew.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from bookkeeper.errors import (
    ClientClosedError,
    KeyExistsError,
    LedgerExistsError,
    MetadataConflictError,
    MetadataError,
    MetadataFormatError,
    MetadataUnavailableError,
    NoSuchKeyError,
    NoSuchLedgerError,
    in_words,
)
from bookkeeper.ids import IdRanges, LedgerId
from bookkeeper.ledger.metadata import LedgerMetadata
from bookkeeper.meta.records.deleted_ids import IDS, DeletedIds, make
from bookkeeper.meta.records.ledger_format import decode as decode_metadata
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

READS: Final = 100
"""Records that are read or removed at a time."""

UNKNOWN: Final = Version(-1)
"""No version."""

VERSIONS_MAX: Final = 4096
"""So many versions at most are made up for metadata that come back; each is some 100 bytes of one transaction. A ledger
whose metadata changed more often is no more guarded from what has slept since its deletion."""

LOOKS: Final = 32
"""Records that a client that deletes looks at, when its turn has come."""

OVER_FOR_MS: Final = 86_400_000
"""How long a grace must be over before a client that deletes removes the record: a clock that is wrong for a minute
must not end it. Bookies do it sooner, by several clocks and two looks."""

_HEX: Final = frozenset("0123456789abcdef")


@dataclass(frozen=True, slots=True)
class DeletedLedger:
    """The record of one deleted ledger."""

    ledger_id: LedgerId
    grace_s: int
    value: bytes
    """The ledger's metadata as they were stored."""
    deleted_ms: int = 0
    """When it was deleted, by the store's clock, in milliseconds since 1970."""
    version: Version = UNKNOWN
    """The last version of the metadata; UNKNOWN: an earlier release wrote the record, and did not say."""

    @property
    def until_ms(self) -> int:
        """Until when it can be brought back at least, by the store's clock."""
        return self.deleted_ms + 1000 * self.grace_s

    @property
    def metadata(self) -> LedgerMetadata:
        """Raises: MetadataFormatError."""
        return decode_metadata(self.value)

    def encode(self) -> bytes:
        return json.dumps({"grace_s": self.grace_s, "version": self.version}).encode() + b"\n" + self.value


def decode(ledger_id: LedgerId, data: bytes, deleted_ms: int = 0) -> DeletedLedger:
    """The reverse of ``encode``. Raises: MetadataFormatError."""
    head, newline, value = data.partition(b"\n")
    try:
        found = json.loads(head)
        grace_s, version = found["grace_s"], found.get("version", UNKNOWN)
        if not newline or type(grace_s) is not int or grace_s < 0 or type(version) is not int:
            raise ValueError("it says no grace time, or no version")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise MetadataFormatError(f"the record of deleted ledger {ledger_id} is damaged: {in_words(error)}") from error
    return DeletedLedger(ledger_id, grace_s, value, deleted_ms, Version(version))


class DeletedLedgers:
    """The records of one cluster."""

    def __init__(self, store: MetadataStore, paths: Paths, marks: DeletedIds) -> None:
        self._store = store
        self._marks = marks
        self._root = paths.own("deleted", "ledgers")

    def place(self, ledger_id: int) -> str:
        """The path below which a ledger's record lies."""
        return f"{self._root}/{ledger_id >> 26:x}/{(ledger_id >> 13) % IDS:04x}"

    def path(self, ledger_id: int) -> str:
        """The path of a ledger's record."""
        return f"{self.place(ledger_id)}/{ledger_id % IDS:04x}"

    def ledger_at(self, path: str) -> LedgerId | None:
        """The reverse of :meth:`path`; None: no record lies at this path."""
        parts = path.removeprefix(f"{self._root}/").split("/")
        if len(parts) != 3 or not all(part and _HEX.issuperset(part) for part in parts):
            return None
        high, middle, rest = (int(part, 16) for part in parts)
        ledger_id = LedgerId(high << 26 | middle << 13 | rest)
        return ledger_id if self.path(ledger_id) == path else None

    async def has(self, ledger_id: LedgerId, *, fresh: bool = False) -> bool:
        """Whether there is a record; with ``fresh`` every record that was written before this call is seen."""
        if fresh:
            await self._store.sync(self._root)
        return await self._store.exists(self.path(ledger_id)) is not None

    async def read(self, ledger_id: LedgerId) -> DeletedLedger:
        """Read a record. Raises: NoSuchKeyError, MetadataFormatError."""
        found = await self._store.get(self.path(ledger_id))
        return decode(ledger_id, found.value, found.created_ms)

    async def all(self) -> AsyncIterator[LedgerId]:
        """All deleted ledgers that have a record, ascending, read after a sync. An error ends the listing."""
        await self._store.sync(self._root)
        for high in sorted(await self._numbers(self._root)):
            for middle in await self._numbers(f"{self._root}/{high:x}"):
                base = high << 26 | middle << 13
                for rest in await self._numbers(self.place(base)):
                    yield LedgerId(base | rest)

    async def near(self, ledger_id: int) -> list[LedgerId]:
        """The deleted ledgers whose records lie beside that of ``ledger_id``, ascending."""
        base = ledger_id - ledger_id % IDS
        return [LedgerId(base | rest) for rest in await self._numbers(self.place(ledger_id))]

    async def _numbers(self, path: str) -> list[int]:
        return sorted(int(name, 16) for name in await names_below(self._store, path) if _HEX.issuperset(name))

    # -- the end of the grace time -------------------------------------------------------------------------

    async def now_ms(self) -> int:
        """The store's clock, in milliseconds since 1970."""
        path, _ = await self._store.create(f"{self._root}-now-", ephemeral=True, sequential=True, parents=True)
        try:
            return (await self._store.get(path)).created_ms
        finally:
            try:
                await self._store.delete(path, None)
            except (MetadataError, ClientClosedError):
                pass  # it goes with the session

    async def remove_expired(self, ledgers: Iterable[LedgerId], now_ms: int) -> set[LedgerId]:
        """Remove the records whose grace is over. Returns the ledgers that have no record any more.

        A record that cannot be read, or that changes meanwhile, stays.
        """
        some, gone = sorted(ledgers), set[LedgerId]()
        for at in range(0, len(some), READS):
            chunk = some[at : at + READS]
            ends = await asyncio.gather(*(self._remove_if_expired(each, now_ms) for each in chunk))
            gone |= {ledger for ledger, ended in zip(chunk, ends, strict=True) if ended}
        return gone

    async def remove_some(self) -> None:
        """Remove those of the oldest ledgers' records whose grace has been over for long: where no bookie does it, and
        by one look at one clock, which may be wrong."""
        some: list[LedgerId] = []
        async for ledger_id in self.all():
            some.append(ledger_id)
            if len(some) == LOOKS:
                break
        if some:
            await self.remove_expired(some, await self.now_ms() - OVER_FOR_MS)

    async def _remove_if_expired(self, ledger_id: LedgerId, now_ms: int) -> bool:
        marks = self._marks.place(ledger_id)
        version = await self._store.exists(marks)  # every undeletion changes it
        try:
            record = await self.read(ledger_id)
        except NoSuchKeyError:
            return True
        except MetadataFormatError:
            return False
        if now_ms < record.until_ms:
            return False
        return await self._remove(ledger_id, [] if version is None else [Check(marks, version)])

    async def remove(self, ledger_id: LedgerId) -> None:
        """Remove a record, whatever its grace. A missing one counts as removed. One that a later deletion has written
        stays. Raises: MetadataUnavailableError: it is not known whether it is removed; or the store gave no answer, and
        it is still there."""
        marks, created_txn = self._marks.place(ledger_id), 0
        for _ in range(LOST_MAX):
            await self._store.sync(marks)
            version = await self._store.exists(marks)  # every undeletion changes it
            found = await get_or_none(self._store, self.path(ledger_id))
            if found is None or (created_txn and found.created_txn != created_txn):
                return
            created_txn = found.created_txn
            if await self._remove(ledger_id, [] if version is None else [Check(marks, version)]):
                return
        raise MetadataUnavailableError(
            f"deleted ledger {ledger_id} can still be brought back: the store gave no answer to {LOST_MAX} attempts to "
            "end that; try again later"
        )

    async def _remove(self, ledger_id: LedgerId, conditions: Sequence[Check]) -> bool:
        path = self.path(ledger_id)
        try:
            await self._store.multi([*conditions, Delete(path, None)])
        except MetadataConflictError:
            return False
        except NoSuchKeyError:
            pass
        except OUTCOME_UNKNOWN:
            await self._store.sync(path)
        if await self._store.exists(path) is not None:
            return False
        await self._remove_parents(ledger_id)
        return True

    async def _remove_parents(self, ledger_id: LedgerId) -> None:
        for parent in (self.place(ledger_id), parent_of(self.place(ledger_id))):
            try:
                await self._store.delete(parent, None)
            except (MetadataError, ClientClosedError):
                return

    async def without_restorable(self, ledgers: Collection[LedgerId]) -> IdRanges:
        """The marked ids that share a value with one of ``ledgers``, without those that have a record.

        An undeletion in between would make a ledger that lives look like one that is gone for good. It changes the
        version of the value, and then this looks again; after ``LOST_MAX`` times it returns no ids.
        """
        places = {self._marks.place(ledger): ledger for ledger in ledgers}
        for _ in range(LOST_MAX):
            before = [await self._store.exists(place) for place in places]
            found = await self._marks.near(ledgers)
            for ledger in places.values():
                for restorable in await self.near(ledger):
                    found.discard(restorable)
            if before == [await self._store.exists(place) for place in places]:
                return found
        return IdRanges()

    # -- bringing back --------------------------------------------------------------------------------------

    async def restore(self, ledger_id: LedgerId, path: str) -> None:
        """Put a ledger's metadata back at ``path``, as they were, and remove its record and the mark of its deletion.

        Raises:
            NoSuchLedgerError: there is no record.
            LedgerExistsError: somebody has made a ledger under this id meanwhile.
            MetadataUnavailableError: it is not known whether it was done; call again.
        """
        for _ in range(LOST_MAX):
            await self._store.sync(path)
            # before the record: one that is brought back and deleted again has another record, in the same version
            operations = await self._marks.removal(ledger_id)
            present = await get_or_none(self._store, path)
            record = await get_or_none(self._store, self.path(ledger_id))
            if record is None:
                why = "it is not deleted" if present else "it was not deleted, or the time for that is over"
                raise NoSuchLedgerError(f"ledger {ledger_id} cannot be brought back: {why}")
            if present is not None:
                raise LedgerExistsError(
                    f"ledger {ledger_id} cannot be brought back: somebody has made another ledger under its id"
                )
            was = decode(ledger_id, record.value)
            try:
                again = _created_again(path, was.value, was.version)
                await self._store.multi([Delete(self.path(ledger_id), record.version), *again, *operations])
            except OUTCOME_UNKNOWN:
                if not await self._was_brought_back(ledger_id, path, record.created_txn):
                    continue
            except NoSuchKeyError:
                await make(self._store, parent_of(path))
                continue
            except (MetadataConflictError, KeyExistsError):
                continue
            await self._remove_parents(ledger_id)
            return
        raise MetadataUnavailableError(
            f"ledger {ledger_id} was not brought back: {LOST_MAX} attempts failed; try again later"
        )

    async def _was_brought_back(self, ledger_id: LedgerId, path: str, created_txn: int) -> bool:
        """Whether a ledger has come back since its record, which this write created, was read. It may have been changed
        or deleted again since: that stays as it is."""
        await self._store.sync(path)
        if (record := await get_or_none(self._store, self.path(ledger_id))) is not None:
            return record.created_txn != created_txn
        return await self._store.exists(path) is not None or await self.has(ledger_id)


def deleted_among(paths: Paths, values: Iterable[str]) -> Iterator[LedgerId]:
    """The ledgers whose records are among these paths."""
    form = re.compile(re.escape(paths.own("deleted", "ledgers")) + "/([0-9a-f]+)/([0-9a-f]{4})/([0-9a-f]{4})")
    for path in values:
        if found := form.fullmatch(path):
            high, middle, low = (int(part, 16) for part in found.groups())
            yield LedgerId(high << 26 | middle << 13 | low)


def _created_again(path: str, value: bytes, version: Version) -> list[Operation]:
    """The part of a transaction that creates a value whose version is higher than ``version``: a new one begins with 0,
    and each replacement counts."""
    above = min(version, VERSIONS_MAX) + 1
    if above <= 0:
        return [Create(path, value)]
    return [Create(path), *[Set(path, b"", None)] * (above - 1), Set(path, value, None)]
