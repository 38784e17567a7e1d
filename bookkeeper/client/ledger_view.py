"""A ledger's metadata as one handle last saw them, with the version that a change must name."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import replace

from bookkeeper.errors import DigestMismatchError, MetadataRolledBackError, NoSuchLedgerError, UnauthorizedError
from bookkeeper.ids import LedgerId
from bookkeeper.ledger import DigestScheme, DigestType, LedgerMetadata
from bookkeeper.meta import Ledgers, Versioned
from bookkeeper.meta.store import Check


class LedgerView:
    """Reads one ledger's metadata, and changes them by compare-and-set."""

    def __init__(self, ledgers: Ledgers, ledger_id: LedgerId, versioned: Versioned[LedgerMetadata]) -> None:
        self._ledgers = ledgers
        self.ledger_id = ledger_id
        self.versioned = versioned

    @classmethod
    async def read(cls, ledgers: Ledgers, ledger_id: LedgerId, *, fresh: bool = True) -> LedgerView:
        """Read a ledger's metadata, after a sync if ``fresh``. Raises: NoSuchLedgerError, MetadataError."""
        return cls(ledgers, ledger_id, await ledgers.read(ledger_id, fresh=fresh))

    @property
    def metadata(self) -> LedgerMetadata:
        return self.versioned.value

    def digest(self, password: bytes | None, wanted: DigestType | None) -> DigestScheme:
        """The digest with which the ledger is written.

        Metadata of the oldest formats have neither a password nor a digest type; the digest is CRC32 then.

        Raises:
            UnauthorizedError: the password is not the ledger's. DigestMismatchError: the digest is not ``wanted``.
        """
        metadata = self.metadata
        found = metadata.digest_type or DigestType.CRC32
        if wanted is not None and found is not wanted:
            raise DigestMismatchError(
                f"the metadata of ledger {self.ledger_id} say that its entries have a {found.name} digest, and its "
                f"reader insists on {wanted.name}: nothing was read; either the ledger was made with {found.name}, or "
                "somebody has changed its metadata"
            )
        stored = metadata.password or b""
        if password is None:
            return DigestScheme(found, stored)
        if metadata.has_password and not hmac.compare_digest(stored, password):
            raise UnauthorizedError(f"the password given is not the password of ledger {self.ledger_id}")
        return DigestScheme(found, password)

    async def refresh(self, *, fresh: bool = True) -> LedgerMetadata:
        """Read the metadata again, after a sync if ``fresh``.

        Raises:
            NoSuchLedgerError: the ledger was deleted, also if another one was made under its id since.
            MetadataRolledBackError: with ``fresh``: the metadata are older than before, or are gone because the store
                was put back to an older state.
            MetadataUnavailableError: the store does not answer.
        """
        before = self.versioned
        try:
            found = await self._ledgers.read(self.ledger_id, fresh=fresh)
        except NoSuchLedgerError:
            await self._ledgers.check_deleted(self.ledger_id)
            raise
        if fresh and before.created_txn in (0, found.created_txn) and found.version < before.version:
            raise MetadataRolledBackError(
                f"the metadata of ledger {self.ledger_id} have version {found.version}, but version {before.version} "
                "was seen before: the metadata store was put back to an older state, for instance from a backup"
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
        """Replace ``over``, from which ``metadata`` was made.

        Args:
            same_creation: fail if another ledger was made under this id meanwhile and has reached the same version. In
                ZooKeeper this costs two more requests.
            only_if: conditions that must hold at the moment of the write.

        Raises:
            MetadataConflictError: somebody else wrote, or a condition does not hold.
            NoSuchLedgerError: the ledger was deleted.
            MetadataUnavailableError: it is not known whether the write was done.
            MetadataRolledBackError: the ledger is gone because the store was put back to an older state.
        """
        created_txn = over.created_txn if same_creation else 0
        try:
            versioned = await self._ledgers.write(
                self.ledger_id, metadata, over.version, created_txn=created_txn, only_if=only_if
            )
        except NoSuchLedgerError:
            await self._ledgers.check_deleted(self.ledger_id)
            raise
        if versioned.created_txn != over.created_txn:
            versioned = replace(versioned, created_txn=over.created_txn)
        self.versioned = versioned
        return versioned.value
