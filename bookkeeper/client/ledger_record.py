"""A ledger's metadata as one handle last saw it, with the version that a change must name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bookkeeper.errors import MetadataRolledBackError, NoSuchLedgerError
from bookkeeper.ids import LedgerId
from bookkeeper.ledger import LedgerMetadata
from bookkeeper.meta import Ledgers, Versioned
from bookkeeper.meta.store import Check


class LedgerRecord:
    """Read and compare-and-set of one ledger's metadata."""

    def __init__(self, ledgers: Ledgers, ledger_id: LedgerId, versioned: Versioned[LedgerMetadata]) -> None:
        self._ledgers = ledgers
        self.ledger_id = ledger_id
        self.versioned = versioned

    @property
    def metadata(self) -> LedgerMetadata:
        return self.versioned.value

    async def refresh(self, *, fresh: bool = True) -> LedgerMetadata:
        """Read it again, after a sync if ``fresh``.

        Raises:
            NoSuchLedgerError: it was deleted; also if there is another one by now, made anew under its id.
            MetadataRolledBackError: ``fresh``, and it is older than what was seen before, or it is gone with
                what the store had seen.
            MetadataUnavailableError.
        """
        before = self.versioned
        try:
            found = await self._ledgers.read(self.ledger_id, fresh=fresh)
        except NoSuchLedgerError:
            await self._ledgers.check_gone(self.ledger_id)
            raise
        if fresh and before.created_txn in (0, found.created_txn) and found.version < before.version:
            raise MetadataRolledBackError(
                f"the metadata of ledger {self.ledger_id} are those of version {found.version}, and version "
                f"{before.version} was seen before: they were put back to an older state"
            )
        if self.versioned.created_txn and found.created_txn != self.versioned.created_txn:
            raise NoSuchLedgerError(f"ledger {self.ledger_id} was deleted, and another one was made under its id")
        if found.version >= self.versioned.version:  # another task of this handle may have written meanwhile
            self.versioned = found
        return self.versioned.value

    async def write(
        self,
        metadata: LedgerMetadata,
        over: Versioned[LedgerMetadata],
        *,
        same_creation: bool = False,
        only_if: Sequence[Check] = (),
    ) -> LedgerMetadata:
        """Replace ``over``, from which ``metadata`` was made. ``same_creation``: not in a ledger that was made anew
        under this id meanwhile and has come to the same version; in ZooKeeper that costs two more requests.
        ``only_if``: all of this holds in the moment of the write.

        Raises:
            MetadataConflictError, NoSuchLedgerError, MetadataUnavailableError (outcome unknown).
            MetadataRolledBackError: it is gone with what the store had seen before.
        """
        created_txn = over.created_txn if same_creation else 0
        try:
            versioned = await self._ledgers.write(
                self.ledger_id, metadata, over.version, created_txn=created_txn, only_if=only_if
            )
        except NoSuchLedgerError:
            await self._ledgers.check_gone(self.ledger_id)
            raise
        self.versioned = replace(versioned, created_txn=over.created_txn)
        return self.versioned.value
