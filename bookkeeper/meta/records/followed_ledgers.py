"""The metadata of ledgers, read by somebody who keeps all of them and looks again now and then."""

from __future__ import annotations

from bookkeeper.errors import NoSuchKeyError, NoSuchLedgerError
from bookkeeper.ids import LedgerId
from bookkeeper.ledger.metadata import LedgerMetadata
from bookkeeper.meta.records.deleted_ledgers import DeletedLedger, DeletedLedgers
from bookkeeper.meta.records.deleted_ledgers import decode as decode_deleted
from bookkeeper.meta.records.layout import Layout
from bookkeeper.meta.records.ledger_format import decode
from bookkeeper.meta.store import MetadataStore


class FollowedLedgers:
    """Reads ledgers and records of deleted ones, and says which were written since they were read here."""

    def __init__(self, store: MetadataStore, root: str, layout: Layout, deleted: DeletedLedgers) -> None:
        self._values, self._root, self._layout, self._deleted = store.follow_values(), root, layout, deleted

    async def changed(self) -> tuple[set[LedgerId], set[LedgerId]] | None:
        """Ledgers and deleted ledgers that may have been written since they were read here; None: all of them. Those
        that are gone are missing in a listing, and need not be named. At most one request.

        Raises:
            MetadataError
        """
        if (paths := await self._values.changed()) is None:
            return None
        ledgers = {found for path in paths if (found := self._layout.ledger_at(self._root, path)) is not None}
        deleted = {found for path in paths if (found := self._deleted.ledger_at(path)) is not None}
        return ledgers, deleted

    async def read(self, ledger_id: LedgerId) -> LedgerMetadata:
        """Raises: NoSuchLedgerError, MetadataError."""
        try:
            found = await self._values.get(self._layout.ledger_path(self._root, ledger_id))
        except NoSuchKeyError:
            raise NoSuchLedgerError(f"there is no ledger {ledger_id}") from None
        return decode(found.value)

    async def read_deleted(self, ledger_id: LedgerId) -> DeletedLedger:
        """Raises: NoSuchKeyError, MetadataError."""
        found = await self._values.get(self._deleted.path(ledger_id))
        return decode_deleted(ledger_id, found.value, found.created_ms)

    def close(self) -> None:
        """Follow nothing any more."""
        self._values.close()
