"""What the console knows of a cluster at one moment, and how it is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bookkeeper.access import Mode
from bookkeeper.autorecovery.cluster_status import BookiesStatus, bookies_status
from bookkeeper.autorecovery.marked import MarkedLedger, marked_ledgers
from bookkeeper.autorecovery.status import AutorecoveryStatus, status_of
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.operators import Operator
from bookkeeper.console.ledger_list import LedgerList
from bookkeeper.errors import MetadataFormatError, in_words
from bookkeeper.ids import NO_ENTRY, BookieId, LedgerId
from bookkeeper.ledger.location import DEFAULT_LOCATION
from bookkeeper.meta.access_coverage import not_following, policy_mode
from bookkeeper.meta.records.deleted_ledgers import DeletedLedger


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
    """Reads the metadata of all ledgers, again and again."""

    def __init__(self, client: BookKeeper) -> None:
        self._client = client
        self.read_so_far = 0
        """Ledgers of the reading that is under way."""

    async def picture(self) -> LedgersPicture:
        """Read all of them now. Raises: MetadataError."""
        metadata, operator = self._client.metadata_store, Operator(self._client)
        self.read_so_far = 0
        ledgers = LedgerList(frozenset(await metadata.bookies.registered()))
        async for ledger_id, found in operator.all_metadata():
            ledgers.add(ledger_id, found)
            self.read_so_far += 1
        marked = tuple(await marked_ledgers(metadata))
        deleted = [_deleted(each) async for each in operator.deleted_ledgers()]
        return LedgersPicture(ledgers.seal([each.ledger_id for each in marked]), marked, tuple(deleted))


def _deleted(each: DeletedLedger) -> DeletedRow:
    try:
        found = each.metadata
    except MetadataFormatError as error:
        return DeletedRow(each.ledger_id, each.deleted_ms, each.until_ms, None, None, in_words(error))
    entries = int(found.last_entry) - int(NO_ENTRY) if found.is_closed else None
    return DeletedRow(
        each.ledger_id, each.deleted_ms, each.until_ms, found.length if found.is_closed else None, entries
    )
