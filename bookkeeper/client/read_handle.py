"""A ledger that this client reads. Skeleton: signatures and promises; see the module when it is filled in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from bookkeeper.client.entry import LedgerEntry
from bookkeeper.ids import EntryId, LedgerId

if TYPE_CHECKING:
    from bookkeeper.ledger import LedgerMetadata


class ReadHandle:
    """A ledger opened for reading. ``async with`` closes it. Belongs to the loop that made it."""

    @property
    def id(self) -> LedgerId:
        raise NotImplementedError

    @property
    def metadata(self) -> LedgerMetadata:
        """The ledger's metadata as last seen."""
        raise NotImplementedError

    @property
    def last_add_confirmed(self) -> EntryId:
        """How far may be read, as known here without asking; never falls (L3)."""
        raise NotImplementedError

    @property
    def length(self) -> int:
        """Payload bytes of a closed ledger; of an open one as far as known."""
        raise NotImplementedError

    @property
    def closed(self) -> bool:
        """True when the *ledger* is closed: last_add_confirmed is its end."""
        raise NotImplementedError

    def read(self, first: int, last: int) -> AsyncIterator[LedgerEntry]:
        """Entries first..last (both inclusive) in order. ``read(0, -1)`` is empty.

        Raises: IllegalOperationError (past last_add_confirmed), DataMissingError (L7), BookieUnavailableError,
        DigestMismatchError (only bad copies answered).
        """
        raise NotImplementedError

    async def read_entry(self, entry_id: int) -> bytes:
        """The payload of one entry."""
        raise NotImplementedError

    def read_batches(self, first: int, last: int) -> AsyncIterator[tuple[EntryId, Sequence[bytes]]]:
        """The same as runs: (id of the first, payloads). The fastest way through a ledger."""
        raise NotImplementedError

    async def read_unconfirmed(self, entry_id: int) -> bytes:
        """One entry that may lie past the last add confirmed (L4): it may be gone, or another one, later.

        Raises: NoSuchEntryError when its bookies do not have it.
        """
        raise NotImplementedError

    async def read_last_add_confirmed(self) -> EntryId:
        """Ask the bookies (coverage) or, for a closed ledger, metadata; also moves last_add_confirmed."""
        raise NotImplementedError

    def tail(self, first: int = 0) -> AsyncIterator[LedgerEntry]:
        """Entries from ``first`` on, as they are confirmed; ends when the ledger is closed and read to its end."""
        raise NotImplementedError

    async def close(self) -> None:
        """Stop watching. Does nothing to the ledger."""
        raise NotImplementedError

    async def __aenter__(self) -> ReadHandle:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
