"""A ledger's metadata as one handle last saw it, with the version that a change must name (M1)."""

from __future__ import annotations

from bookkeeper.ids import LedgerId
from bookkeeper.ledger import LedgerMetadata
from bookkeeper.meta import Ledgers, Versioned


class LedgerRecord:
    """Read and compare-and-set of one ledger's metadata."""

    def __init__(self, ledgers: Ledgers, ledger_id: LedgerId, stored: Versioned[LedgerMetadata]) -> None:
        self._ledgers = ledgers
        self.ledger_id = ledger_id
        self.stored = stored

    @property
    def metadata(self) -> LedgerMetadata:
        return self.stored.value

    async def refresh(self, *, fresh: bool = True) -> LedgerMetadata:
        """Read it again, after a sync if ``fresh`` (Z6). Raises: NoSuchLedgerError, MetadataUnavailableError."""
        found = await self._ledgers.read(self.ledger_id, fresh=fresh)
        if found.version >= self.stored.version:  # another task of this handle may have written meanwhile
            self.stored = found
        return self.stored.value

    async def write(self, metadata: LedgerMetadata, over: Versioned[LedgerMetadata]) -> LedgerMetadata:
        """Replace ``over``, from which ``metadata`` was made.

        Raises:
            MetadataConflictError, NoSuchLedgerError, MetadataUnavailableError (outcome unknown).
        """
        self.stored = await self._ledgers.write(self.ledger_id, metadata, over.version)
        return self.stored.value
