"""What can be asked of a ledger: its entries, its last add confirmed, which entries are here.

A ledger that is not here is an honest negative only where nothing may have been lost: ``unknowns`` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bookkeeper.codec import Answers, Reads
from bookkeeper.errors import BookKeeperError, DataUnknownError, NoSuchLedgerError
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.storage.base.results import AvailabilityRun, PackedEntries
from bookkeeper.storage.index.ledger_descriptor import LedgerDescriptor
from bookkeeper.storage.ledgers.ledger_table import LedgerTable
from bookkeeper.storage.ledgers.unknowns import Unknowns
from bookkeeper.storage.reads.cached_reads import CachedReads
from bookkeeper.storage.reads.entry_reader import EntryReader


class LedgerReads:
    """Owned by the loop's thread. Its methods are those of the engine, and are described there."""

    def __init__(self, ledgers: LedgerTable, unknowns: Unknowns, reader: EntryReader, batch_read_bytes: int) -> None:
        self._ledgers, self._unknowns, self._reader = ledgers, unknowns, reader
        self._cached = CachedReads(reader)
        self._batch_read_bytes = batch_read_bytes

    # -- entries ------------------------------------------------------------------------------------------

    def read(self, ledger_id: LedgerId, entry_id: EntryId, reply: Callable[[bytes | BaseException], None]) -> None:
        """See :meth:`Engine.read`."""
        try:
            ledger = self.found(ledger_id)
        except BookKeeperError as error:
            return reply(error)
        if entry_id < 0:
            entry_id = EntryId(ledger.last_entry)
        return self._reader.read(ledger, entry_id, self._unknowns.has(ledger_id), reply)

    def read_batch(
        self,
        ledger_id: LedgerId,
        first: EntryId,
        count_max: int,
        size_max: int,
        reply: Callable[[PackedEntries | BaseException], None],
    ) -> None:
        """See :meth:`Engine.read_batch`."""
        try:
            ledger = self.found(ledger_id)
        except BookKeeperError as error:
            return reply(error)
        size = min(size_max, self._batch_read_bytes)
        return self._reader.read_batch(ledger, first, count_max, size, self._unknowns.has(ledger_id), reply)

    def try_read_cached(self, reads: Reads, i0: int, frame_max: int) -> Answers | None:
        """See :meth:`Engine.try_read_cached`."""
        ledger = self._ledgers.ledgers.get(reads.ledger_ids[i0])
        return self._cached.answer(ledger, reads, i0, frame_max) if ledger is not None else None

    def entries(self, ledger_id: LedgerId) -> Sequence[AvailabilityRun]:
        """See :meth:`Engine.entries`. Auditors ask for every ledger; it does not stay in memory because of that."""
        ledger = self._honest(ledger_id, self._ledgers.ledgers.peek(ledger_id))
        if self._unknowns.may_lack(ledger_id):
            raise DataUnknownError(f"ledger {ledger_id}: which entries were here is not known")
        return self._reader.places.entries(ledger)

    # -- what is known of a ledger ------------------------------------------------------------------------

    def found(self, ledger_id: LedgerId) -> LedgerDescriptor:
        """
        Raises:
            NoSuchLedgerError: it is not here.
            DataUnknownError: whether it was here is not known.
        """
        return self._honest(ledger_id, self._ledgers.ledgers.get(ledger_id))

    def _honest(self, ledger_id: LedgerId, ledger: LedgerDescriptor | None) -> LedgerDescriptor:
        if ledger is not None:
            return ledger
        if self._unknowns.has(ledger_id) and ledger_id not in self._ledgers.dropped:
            raise DataUnknownError(f"whether ledger {ledger_id} was here is not known")
        raise NoSuchLedgerError(f"ledger {ledger_id} is not here")

    def is_fenced(self, ledger_id: LedgerId) -> bool:
        """See :meth:`Engine.is_fenced`."""
        if ledger_id in self._ledgers.dropped or self._unknowns.in_limbo(ledger_id):
            return True
        ledger = self._ledgers.ledgers.get(ledger_id)
        return ledger is not None and ledger.fenced
