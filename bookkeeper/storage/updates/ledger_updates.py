"""What changes a ledger: runs of entries, explicit LACs, its removal, and fences (``fencing``). Each is a record of the
journal.

A change is admitted or refused first; what is refused has changed nothing. Then its records go into the group that
collects, and what is known of the ledger is changed in the same turn, so that it is visible at once; it is durable when
its group is.

Only this module puts the place of an entry into the index of a ledger that is being served, and says to the ledger
table that a checkpoint has to write it. Whatever moves an entry to another place does it here, too.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from bookkeeper.codec import ENTRY_HEADER, LAC_BODY_MAX, RECORD_HEADER
from bookkeeper.errors import (
    BadRequestError,
    DuplicateEntryError,
)
from bookkeeper.ids import LedgerId
from bookkeeper.seams import Buffer
from bookkeeper.storage.base.disk_state import DiskState
from bookkeeper.storage.index.entry_index import PAGE
from bookkeeper.storage.index.ledger_descriptor import (
    LedgerDescriptor,
    StateRecordKind,
    explicit_lac_body,
    same_payload,
    state_record,
)
from bookkeeper.storage.index.moved_entries import MovedEntries, pages, put_moved
from bookkeeper.storage.journal.group_commit import GroupCommit
from bookkeeper.storage.ledgers.ledger_table import LedgerTable
from bookkeeper.storage.ledgers.unknowns import Unknowns
from bookkeeper.storage.reads.entry_places import Held
from bookkeeper.storage.reads.entry_reader import EntryReader
from bookkeeper.storage.updates.fencing import LedgerFencing
from bookkeeper.storage.updates.lac_waiters import LacWaiters
from bookkeeper.storage.updates.record_runs import EntryRecords, RecordRun, apart, one_record


class LedgerUpdates:
    """Owned by the loop's thread."""

    def __init__(
        self,
        disk_state: DiskState,
        ledgers: LedgerTable,
        unknowns: Unknowns,
        commit: GroupCommit,
        reader: EntryReader,
        lac_waiters: LacWaiters,
        inflight_bytes: int,
    ) -> None:
        """
        Args:
            reader: asked for an entry that is stored when its id comes again.
            inflight_bytes: while the journal cannot be written, no more than this is kept in memory.
        """
        self._disk_state, self._ledgers, self._commit = disk_state, ledgers, commit
        self._reader, self._lac_waiters = reader, lac_waiters
        self.fencing = LedgerFencing(disk_state, ledgers, unknowns, commit, inflight_bytes)

    # -- entries ------------------------------------------------------------------------------------------

    def append(self, run: RecordRun, batch: EntryRecords, recovery: bool) -> None:
        """See :meth:`Engine.append`."""
        ledger_id, i0, i1 = LedgerId(run.ledger_id), run.i0, run.i1
        ledger = self.fencing.admit(ledger_id, run.master_key, recovery)
        if (ledger is None or ledger.key is None) and self._commit.is_landing(batch.records):
            batch, i0, i1 = apart(batch, i0, i1), 0, i1 - i0  # the key comes first, to where the records are
        begin = batch.record_ends[i0 - 1] if i0 else batch.record_start
        size = batch.record_ends[i1 - 1] - begin
        first, last = batch.entry_ids[i0], batch.entry_ids[i1 - 1]
        if ledger is None:
            ledger = self._begin_ledger(ledger_id, run.master_key)
        else:
            if first <= ledger.last_entry:
                self._check_repeats(ledger, batch, i0, i1, begin)
            if ledger.key is None:
                self._learn_key(ledger, run.master_key)
        places = self._commit.add_run(ledger_id, batch.records, begin, batch.record_ends, i0, i1)
        if run.contiguous:
            ledger.index.tail.extend(first, places)
        else:
            ledger.index.tail.scatter(batch.entry_ids, i0, i1, places)
        rises = run.lac > ledger.lac
        ledger.note_entries(first, last, run.lac, size)
        self._ledgers.changed(ledger)
        if rises and self._lac_waiters.by_ledger:
            self._lac_waiters.wake(ledger_id, run.lac)

    def append_entry(self, ledger_id: LedgerId, master_key: bytes, entry: Buffer, recovery: bool) -> None:
        """See :meth:`Engine.append_entry`."""
        if len(entry) < ENTRY_HEADER:
            raise BadRequestError(f"an entry of {len(entry)} bytes, the header alone has {ENTRY_HEADER}")
        run, batch = one_record(entry, master_key)
        if run.ledger_id != ledger_id or ledger_id < 0 or batch.entry_ids[0] < 0:
            raise BadRequestError(f"the entry says it is entry {batch.entry_ids[0]} of {run.ledger_id}")
        self.append(run, batch, recovery)

    def _check_repeats(self, ledger: LedgerDescriptor, batch: EntryRecords, i0: int, i1: int, begin: int) -> None:
        """Refuse an id that is taken, unless it comes with the same payload (as far as that is at hand)."""
        view = memoryview(batch.records)
        for at in range(i0, i1):
            end, entry_id = batch.record_ends[at], batch.entry_ids[at]
            if entry_id <= ledger.last_entry:
                stored = self._reader.peek(ledger, entry_id)
                if stored is not None and not same_payload(stored, view[begin + RECORD_HEADER : end]):
                    raise DuplicateEntryError(f"entry {entry_id} of ledger {ledger.ledger_id} has another payload")
            begin = end

    def move(self, moved: MovedEntries, held: Held) -> int:
        """Entries were copied: put their new places into the index. An entry that is not at its old place any more, and
        every entry of a ledger that was deleted meanwhile, stays as it is.

        The copies are durable. The next checkpoint writes the new places.

        Returns:
            how many entries were moved.

        Raises:
            PageMissing: an index page must be read first; nothing was moved.
            CorruptionError, OSError: an index page cannot be read; nothing was moved.
        """
        ledger = self._ledgers.ledgers.get(moved.ledger_id)
        if ledger is None:
            return 0
        count = 0
        changed: dict[int, array[int]] = {}
        for number, i0, i1 in pages(moved.entry_ids):
            page = self._reader.places.whole_page(ledger, number, held)
            if here := put_moved(page, PAGE * number, moved, i0, i1):
                changed[number] = page
                count += here
        if changed:
            ledger.index.tail.moved.update(changed)
            self._ledgers.changed(ledger)
        return count

    # -- what is known of a ledger ------------------------------------------------------------------------

    def set_explicit_lac(self, ledger_id: LedgerId, master_key: bytes, lac: int, blob: Buffer) -> None:
        """Visible at once, durable with the group that collects; see :meth:`Engine.set_explicit_lac`."""
        if len(blob) > LAC_BODY_MAX:
            raise BadRequestError(f"the body of an explicit LAC has {len(blob)} bytes, at most {LAC_BODY_MAX} are")
        ledger = self.fencing.admit(ledger_id, master_key, recovery=False, fenced_too=True)
        if ledger is None:
            ledger = self._begin_ledger(ledger_id, master_key)
        elif ledger.key is None:
            self._learn_key(ledger, master_key)
        if lac < ledger.explicit_lac:
            return
        rises = lac > ledger.lac
        body = explicit_lac_body(master_key, bytes(blob))
        self._commit.add_record(ledger_id, state_record(ledger_id, StateRecordKind.EXPLICIT_LAC, body, lac))
        ledger.raise_explicit_lac(lac, bytes(blob))
        self._ledgers.changed(ledger)
        if rises:
            self._lac_waiters.wake(ledger_id, lac)

    def drop(self, ledger_ids: Iterable[LedgerId]) -> int:
        """The ledgers are deleted; how many they were.

        Raises:
            BookieFailedError: the disk failed or is closed.
        """
        count = 0
        for ledger_id in ledger_ids:
            self._disk_state.refuse_if_stopped()
            self._commit.add_record(ledger_id, state_record(ledger_id, StateRecordKind.DROPPED), outlives=True)
            self._ledgers.drop(ledger_id)
            count += 1
        return count

    def _begin_ledger(self, ledger_id: LedgerId, key: bytes) -> LedgerDescriptor:
        """A ledger is met for the first time: its key goes ahead of its entries."""
        ledger = LedgerDescriptor(ledger_id, key)
        self._ledgers.add(ledger)
        self._commit.add_record(ledger_id, state_record(ledger_id, StateRecordKind.KEY, key))
        return ledger

    def _learn_key(self, ledger: LedgerDescriptor, key: bytes) -> None:
        ledger.learn_key(key)
        self._ledgers.changed(ledger)
        self._commit.add_record(ledger.ledger_id, state_record(ledger.ledger_id, StateRecordKind.KEY, key))
