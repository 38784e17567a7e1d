"""What the console knows of a cluster at one moment, and how it is read."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from bookkeeper.access import Mode
from bookkeeper.autorecovery.cluster_status import BookiesStatus, bookies_status
from bookkeeper.autorecovery.marked import MarkedLedger, marked_ledgers
from bookkeeper.autorecovery.status import AutorecoveryStatus, status_of
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.operators import READS_AT_ONCE
from bookkeeper.console.ledger_list import BookieSets, LedgerList, LedgerRow, ledger_row
from bookkeeper.errors import BookKeeperError, MetadataFormatError, NoSuchKeyError, NoSuchLedgerError, in_words
from bookkeeper.ids import NO_ENTRY, BookieId, LedgerId
from bookkeeper.ledger import LedgerMetadata
from bookkeeper.ledger.location import DEFAULT_LOCATION
from bookkeeper.meta import Metadata
from bookkeeper.meta.access_coverage import not_following, policy_mode
from bookkeeper.meta.records.deleted_ledgers import DeletedLedger

ROWS_A_TURN: Final = 2000
"""Rows that are put into a list in one turn of the loop."""


@dataclass(frozen=True, slots=True)
class BookiesPicture:
    """The bookies, autorecovery and the access policy."""

    status: BookiesStatus
    places: Mapping[BookieId, str]
    """In which rack each bookie stands."""
    autorecovery: AutorecoveryStatus
    access: Mode | None
    """The mode of the access policy; None: it cannot be read."""
    not_enforcing: tuple[BookieId, ...]
    """With a policy that is not off: the registered bookies that do not follow it."""


@dataclass(frozen=True, slots=True)
class DeletedRow:
    """A deleted ledger that can be brought back."""

    ledger_id: LedgerId
    deleted_ms: int
    until_ms: int
    size: int | None
    entries: int | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class LedgersPicture:
    """All ledgers."""

    ledgers: LedgerList
    marked: tuple[MarkedLedger, ...]
    deleted: tuple[DeletedRow, ...]
    read_anew: int = 0
    """How many of them were read for this picture; of the others it was known that they are as they were."""


async def picture_of_bookies(client: BookKeeper) -> BookiesPicture:
    """Look at the bookies now. Raises: MetadataError."""
    metadata = client.metadata_store
    status = await bookies_status(client)
    places = await metadata.locations.read()
    mode = await policy_mode(metadata)
    return BookiesPicture(
        status,
        {each.bookie: str(places.get(each.bookie, DEFAULT_LOCATION)) for each in status.bookies},
        await status_of(metadata),
        mode,
        () if mode is Mode.OFF else tuple(await not_following(metadata)),
    )


class LedgersReader:
    """Reads the metadata of all ledgers, again and again: all of them at first and when contact was lost, later those
    that were written since, and those that name a bookie that came or went."""

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata
        self._followed = metadata.ledgers.follow()
        self._rows: dict[LedgerId, LedgerRow] = {}
        self._sets: BookieSets = {}
        self._up: frozenset[BookieId] = frozenset()
        """The bookies that were registered when the rows were judged."""
        self._doubtful: set[LedgerId] = set()
        """Ledgers whose metadata could not be read, and may be at the next try."""
        self._deleted: dict[LedgerId, DeletedRow] = {}
        self._last: LedgersPicture | None = None
        self.read_so_far = 0
        """Ledgers of the reading that is under way."""

    def close(self) -> None:
        """Follow nothing any more."""
        self._followed.close()

    async def picture(self) -> LedgersPicture:
        """All of them now. Raises: MetadataError."""
        metadata, self.read_so_far = self._metadata, 0
        up = frozenset(await metadata.bookies.registered())
        await self._forget_changed(up)
        ledgers = [ledger_id async for ledger_id in metadata.ledgers.list()]
        anew, gone = await self._read(ledgers)
        marked = tuple(await marked_ledgers(metadata))
        deleted = await self._deleted_rows()
        last = self._last
        if last is not None and not anew and not gone and last.marked == marked:
            self._last = replace(last, deleted=deleted, read_anew=0)
        else:
            listed = await self._listed(ledgers, [each.ledger_id for each in marked])
            self._last = LedgersPicture(listed, marked, deleted, anew)
        return self._last

    async def _forget_changed(self, up: frozenset[BookieId]) -> None:
        """Forget the rows that are read anew."""
        changed = await self._followed.changed()
        if changed is None:
            self._rows.clear()
            self._deleted.clear()
            self._sets.clear()
        else:
            ledgers, deleted = changed
            for ledger_id in ledgers | self._doubtful:
                self._rows.pop(ledger_id, None)
            for ledger_id in deleted:
                self._deleted.pop(ledger_id, None)
        self._doubtful.clear()
        if moved := up ^ self._up:
            self._rows = {key: row for key, row in self._rows.items() if moved.isdisjoint(row.bookies)}
        self._up = up

    async def _read(self, ledgers: list[LedgerId]) -> tuple[int, int]:
        """Read what is not known of these, which are all. Returns how many were read, and how many are gone."""
        missing = [ledger_id for ledger_id in ledgers if ledger_id not in self._rows]
        self.read_so_far = len(ledgers) - len(missing)
        for at in range(0, len(missing), READS_AT_ONCE):
            some = missing[at : at + READS_AT_ONCE]
            await asyncio.gather(*map(self._read_one, some))
            self.read_so_far += len(some)
        before, there = len(self._rows), frozenset(ledgers)
        if gone := [ledger_id for ledger_id in self._rows if ledger_id not in there]:
            for ledger_id in gone:
                del self._rows[ledger_id]
        return len(missing), before - len(self._rows)

    async def _read_one(self, ledger_id: LedgerId) -> None:
        found: LedgerMetadata | BookKeeperError
        try:
            found = await self._followed.read(ledger_id)
        except NoSuchLedgerError:
            return  # it was deleted since the listing
        except BookKeeperError as error:
            found = error
            if not isinstance(error, MetadataFormatError):
                self._doubtful.add(ledger_id)
        self._rows[ledger_id] = ledger_row(ledger_id, found, self._up, self._sets)

    async def _listed(self, ledgers: list[LedgerId], marked: list[LedgerId]) -> LedgerList:
        """The list of the rows; in turns, so that pages are answered meanwhile."""
        listed = LedgerList()
        for at, ledger_id in enumerate(ledgers):
            if (row := self._rows.get(ledger_id)) is not None:
                listed.add(row)
            if at % ROWS_A_TURN == ROWS_A_TURN - 1:
                await asyncio.sleep(0)
        return listed.seal(marked)

    async def _deleted_rows(self) -> tuple[DeletedRow, ...]:
        """The deleted ledgers that can be brought back, without those whose time is over."""
        records = self._metadata.ledgers.restorable
        there = [ledger_id async for ledger_id in records.all()]
        missing = [ledger_id for ledger_id in there if ledger_id not in self._deleted]
        for at in range(0, len(missing), READS_AT_ONCE):
            await asyncio.gather(*map(self._read_deleted, missing[at : at + READS_AT_ONCE]))
        now_ms, left = await records.now_ms() if there else 0, frozenset(there)
        self._deleted = {key: row for key, row in self._deleted.items() if key in left}
        rows = (self._deleted[key] for key in sorted(self._deleted))
        return tuple(row for row in rows if not row.until_ms or row.until_ms > now_ms)

    async def _read_deleted(self, ledger_id: LedgerId) -> None:
        try:
            self._deleted[ledger_id] = _deleted(await self._followed.read_deleted(ledger_id))
        except NoSuchKeyError:
            return
        except MetadataFormatError as error:
            self._deleted[ledger_id] = DeletedRow(ledger_id, 0, 0, None, None, in_words(error))


def _deleted(each: DeletedLedger) -> DeletedRow:
    try:
        found = each.metadata
    except MetadataFormatError as error:
        return DeletedRow(each.ledger_id, each.deleted_ms, each.until_ms, None, None, in_words(error))
    entries = int(found.last_entry) - int(NO_ENTRY) if found.is_closed else None
    return DeletedRow(
        each.ledger_id, each.deleted_ms, each.until_ms, found.length if found.is_closed else None, entries
    )
