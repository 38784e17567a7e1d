"""What one client knows of a cluster and its ledgers, for clients elsewhere that are to read without asking again.

Both kinds of objects can be pickled, and nothing in them is secret: a ledger's password is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bookkeeper.encryption import RECORD_NAME
from bookkeeper.ids import Address, BookieId, EntryId, LedgerId
from bookkeeper.ledger import LedgerMetadata
from bookkeeper.meta import Version, Versioned
from bookkeeper.meta.records.layout import Layout
from bookkeeper.meta.records.ledger_format import decode, encode


@dataclass(frozen=True, slots=True)
class KnownCluster:
    """A cluster as one client knew it."""

    layout: Layout
    instance_id: str
    addresses: Mapping[BookieId, Address]
    """Where bookies are: those that hold what is to be read. One that is down may be missing."""


@dataclass(frozen=True, slots=True)
class KnownLedger:
    """A ledger as one reader knew it."""

    ledger_id: LedgerId
    value: bytes
    """Its metadata as they are stored, without the password, and without what its creator has added but for how it is
    encrypted: its key is in there wrapped, and whoever reads needs a provider that unwraps it."""
    version: Version
    created_txn: int
    last: EntryId
    """The last entry that may be read for sure."""

    @classmethod
    def of(cls, ledger_id: LedgerId, found: Versioned[LedgerMetadata], last: EntryId) -> KnownLedger:
        """The ledger with these metadata, which was confirmed up to ``last``."""
        custom = {name: value for name, value in found.value.custom.items() if name == RECORD_NAME}
        public = replace(found.value, password=b"" if found.value.has_password else None, custom=custom, unknown=b"")
        return cls(ledger_id, encode(public), found.version, found.created_txn, last)

    @property
    def versioned(self) -> Versioned[LedgerMetadata]:
        """The metadata, as a reader needs them."""
        return Versioned(decode(self.value), self.version, created_txn=self.created_txn)

    @property
    def bookies(self) -> frozenset[BookieId]:
        """Who holds its entries."""
        return decode(self.value).bookies
