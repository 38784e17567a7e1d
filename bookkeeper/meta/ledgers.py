"""The metadata of ledgers: create, read, compare-and-set, delete, list, watch.

* **M1** A write names the version that its author read.
* **M5** A creation carries a random token, so "exists" after a lost reply is told from a clash.
* **M8** A write whose reply was lost is read again and compared before anything else happens.
* **M6** An id is issued once: by the generator Java uses too (ledger_ids.py), or by the caller.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

from bookkeeper.ids import LedgerId
from bookkeeper.meta.store import Version, Versioned, Watch

if TYPE_CHECKING:
    from bookkeeper.ledger.metadata import LedgerMetadata


class Ledgers:
    """The ledgers of one cluster."""

    async def create(
        self, metadata: LedgerMetadata, ledger_id: LedgerId | None = None
    ) -> tuple[LedgerId, Versioned[LedgerMetadata]]:
        """Record a new ledger under a new id, or under the caller's. A creator token is drawn for it.

        Raises:
            LedgerExistsError: the caller's id is taken.
            MetadataUnavailableError: unknown whether it was recorded; nobody else knows of it.
        """
        raise NotImplementedError

    async def read(self, ledger_id: LedgerId, *, fresh: bool = False) -> Versioned[LedgerMetadata]:
        """The present metadata; ``fresh`` syncs first (Z6).

        Raises:
            NoSuchLedgerError, MetadataFormatError.
        """
        raise NotImplementedError

    async def write(
        self, ledger_id: LedgerId, metadata: LedgerMetadata, expected: Version
    ) -> Versioned[LedgerMetadata]:
        """Replace the metadata that was read as version ``expected``.

        Raises:
            MetadataConflictError: someone else wrote; re-read and decide again.
            NoSuchLedgerError: deleted.
            MetadataUnavailableError: unknown, and the store could not be asked again.
        """
        raise NotImplementedError

    async def delete(self, ledger_id: LedgerId, expected: Version | None = None) -> None:
        """Delete it and parents left empty; a ledger that is not there counts as deleted.

        Raises:
            MetadataConflictError: another version.
        """
        raise NotImplementedError

    def list(self) -> AsyncIterator[LedgerId]:
        """Every ledger, in ascending order, as of a sync at the start; a page that fails ends it by an error (Z10)."""
        raise NotImplementedError

    def watch(self, ledger_id: LedgerId, callback: Callable[[], None]) -> Watch:
        """Call back (on the loop) when the metadata may have changed or gone: re-read."""
        raise NotImplementedError
