"""A bookie's disk behind one door.

Everything here runs on the loop's thread and never waits for the disk: blocking work goes to four workers
(journal, entry log, checkpoint, read), whose results come back on the loop's thread. The state that decides anything
(handles, index tails, fences) is owned by the loop's thread alone.

**What is promised.** An entry is visible to reads and fences from the moment :meth:`Engine.append` returns, and
durable when a callback given to :meth:`Engine.when_durable` *after* it is called with None (B1, K7). A fence answers
only when the group that holds it is durable, and every add accepted before it is in that group or an earlier one,
so a negative answer given after a fence is final (R3, B2). A fence never goes away (B3).

**Groups.** ``append`` only collects. ``when_durable``, ``fence``, ``force`` and ``set_explicit_lac`` start the journal
if it is idle; while one group is being made durable the next one collects (the journal clocks itself). So: append
all runs of a chunk, then call ``when_durable`` once (or ``start_writing``, for runs that nobody waits for).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import suppress
from struct import Struct

from bookkeeper.codec import ENTRY_HEADER, RECORD_HEADER, Adds, Answers, Reads, Run, record
from bookkeeper.errors import (
    BadRequestError,
    BookieFailedError,
    BookKeeperError,
    DataUnknownError,
    DiskFullError,
    DuplicateEntryError,
    LedgerFencedError,
    NoSuchLedgerError,
    check,
    in_words,
)
from bookkeeper.ids import EntryId, IdRanges, LedgerId
from bookkeeper.seams import Buffer, Disk, Space, Workers
from bookkeeper.storage.checkpoint.checkpointer import Checkpointer
from bookkeeper.storage.checkpoint.disk_space import DiskSpace, give_up_reserve
from bookkeeper.storage.config import StorageConfig
from bookkeeper.storage.durable_file import NO_SPACE
from bookkeeper.storage.entry_log.entry_log_file import EntryLogWriter
from bookkeeper.storage.index.entry_index import PageCache
from bookkeeper.storage.journal.group_commit import GroupCommit
from bookkeeper.storage.journal.group_sequence import GroupSequence
from bookkeeper.storage.journal.pending_group import PendingGroup
from bookkeeper.storage.ledger_descriptor import (
    LedgerDescriptor,
    StateRecordKind,
    explicit_lac_body,
    same_payload,
    state_record,
)
from bookkeeper.storage.ledger_table import LedgerTable
from bookkeeper.storage.reads.cached_reads import CachedReads
from bookkeeper.storage.reads.entry_reader import EntryReader
from bookkeeper.storage.results import (
    NOTHING_KNOWN,
    AvailabilityRun,
    Done,
    EngineState,
    EngineStats,
    OpenReport,
    PackedEntries,
    PublishedProgress,
)
from bookkeeper.storage.start.start import ReplayedDisk, start
from bookkeeper.storage.unknowns import Unknowns
from bookkeeper.storage.workers import StorageWorkers

__all__ = ["AvailabilityRun", "Done", "Engine", "EngineState", "EngineStats", "OpenReport", "PackedEntries"]

_IDS = Struct(">qqq")


class Engine:
    """One bookie's disk. Made by :meth:`open`; all methods on the loop's thread."""

    report: OpenReport
    stats: EngineStats

    def __init__(
        self,
        config: StorageConfig,
        disk: Disk,
        workers: Workers,
        began: ReplayedDisk,
        boot: int,
        monotonic: Callable[[], float] | None,
        call_later: Callable[[float, Callable[[], None]], object] | None,
    ) -> None:
        self._config, self._disk = config, disk
        self.report, self.stats, self._state = began.report, EngineStats(), EngineState.WRITABLE
        self._closing = False
        self._locks = began.locks
        self._lac_waiters: dict[int, dict[object, Callable[[int], None]]] = {}
        self._pause: Callable[[], None] = _nothing
        self._resume: Callable[[], None] = _nothing
        self._state_callback: Callable[[EngineState, str], None] | None = None
        manifest = began.manifest
        self._workers = StorageWorkers(workers)
        self._ledgers = LedgerTable(began.states, began.dropped)
        self._unknowns = Unknowns(manifest.limbo, manifest.quarantined)
        self._entry_logs = began.entry_logs
        groups = GroupSequence(
            durable=manifest.sequence,
            file_id=manifest.file_id,
            file_bytes=config.journal_file_bytes,
            inflight_bytes=config.inflight_bytes,
        )
        self._commit = GroupCommit(
            config,
            groups,
            began.journal,
            EntryLogWriter(disk, config.ledger_dir, manifest.directory_id, boot),
            self._entry_logs,
            self._workers,
            self.stats,
            self,
            spares=began.spares,
            monotonic=monotonic,
            call_later=call_later,
        )
        self._space = DiskSpace(config, disk, self._workers, self._set_state, self._commit.fail)
        self._reader = EntryReader(
            disk=disk,
            directory=config.ledger_dir,
            entry_logs=self._entry_logs,
            pages=PageCache(config.page_cache_pages),
            stats=self.stats,
            workers=self._workers,
            groups=groups,
            unknowns=self._unknowns,
        )
        self._cached_reads = CachedReads(self._reader)
        self._checkpointer = Checkpointer(
            config=config,
            disk=disk,
            workers=self._workers,
            commit=self._commit,
            reader=self._reader,
            entry_logs=self._entry_logs,
            ledgers=self._ledgers,
            unknowns=self._unknowns,
            space=self._space,
            stats=self.stats,
            manifest=manifest,
            set_state=self._set_state,
        )
        self._space.begin()

    @classmethod
    def open(
        cls,
        config: StorageConfig,
        disk: Disk,
        workers: Workers,
        *,
        boot: int = 0,
        known: PublishedProgress = NOTHING_KNOWN,
        monotonic: Callable[[], float] | None = None,
        call_later: Callable[[float, Callable[[], None]], object] | None = None,
    ) -> Engine:
        """Lock, check and replay. Blocks: call it before serving.

        When it returns everything that was ever acknowledged is readable, synced and covered by the mark (K17), and
        the workers are not yet in use (they are made with the first work).

        Args:
            boot: this life's number, written into the files it makes.
            known: what the directory must know, or has lost data (K32); its id marks a new one.
            monotonic: seconds, for the sync statistics and ``journal_gap_ms``; without it neither is there.
            call_later: the loop's; needed only with ``journal_gap_ms``.

        Raises:
            DirectoryLockedError: another process has the directory (B11).
            ForeignDirectoryError: a file belongs to another directory.
            UnsupportedFormatError: a file of another version.
            StorageError, OSError: the directory cannot be used.
        """
        try:
            began = start(config, disk, boot, known)
        except OSError as error:
            if error.errno not in NO_SPACE or not give_up_reserve(config, disk):
                raise
            began = start(config, disk, boot, known)  # a full disk starts read-only (V8)
        return cls(config, disk, workers, began, boot, monotonic, call_later)

    @property
    def state(self) -> EngineState:
        """Whether the disk takes adds; see :meth:`on_state`."""
        return self._state

    # -- writing ------------------------------------------------------------------------------------------

    def append(self, run: Run, adds: Adds, *, recovery: bool = False) -> None:
        """Take one run of what ``codec.split_adds`` cut; the records are copied.

        Nothing is written before the journal is started (see the module). All or nothing: when it raises, no entry of
        the run was taken. Costs a few microseconds whatever the run's length.

        Args:
            recovery: a recovery add: passes a fence, and a full disk (B10).

        Raises:
            LedgerFencedError: fenced, or deleted, or its fence state is unknown (B3).
            UnauthorizedError: another master key (B4).
            DiskFullError: read-only for regular adds (B10, K26).
            DuplicateEntryError: another payload is stored under one of the ids (B6).
            BookieFailedError: the disk failed or is closed.
        """
        ledger_id, i0, i1 = LedgerId(run.ledger_id), run.i0, run.i1
        state = self._admit(ledger_id, run.master_key, recovery)
        begin = adds.record_ends[i0 - 1] if i0 else adds.record_start
        size = adds.record_ends[i1 - 1] - begin
        first, last = adds.entry_ids[i0], adds.entry_ids[i1 - 1]
        if state is not None and first <= state.last_entry:
            self._check_repeats(state, adds, i0, i1, begin)
        state = state or self._begin_ledger(ledger_id, run.master_key)
        places = self._commit.add_run(ledger_id, adds.records, begin, adds.record_ends, i0, i1)
        if run.contiguous:
            state.index.tail.extend(first, places)
        else:
            state.index.tail.scatter(adds.entry_ids, i0, i1, places)
        rises = run.lac > state.lac
        state.note_entries(first, last, run.lac, size)
        self._ledgers.changed(state)
        if rises and self._lac_waiters:
            self._wake(ledger_id, run.lac)

    def append_entry(self, ledger_id: LedgerId, master_key: bytes, entry: Buffer, *, recovery: bool = False) -> None:
        """The same for one entry as it came (header of 32 bytes, digest, payload); its ids are in its header.

        Raises:
            BadRequestError: shorter than its header, or a negative id, or another ledger's.
            and as :meth:`append`.
        """
        if len(entry) < ENTRY_HEADER:
            raise BadRequestError(f"an entry of {len(entry)} bytes, the header alone has {ENTRY_HEADER}")
        adds = single(entry)
        if adds.runs[0].ledger_id != ledger_id or ledger_id < 0 or adds.entry_ids[0] < 0:
            raise BadRequestError(f"the entry says it is entry {adds.entry_ids[0]} of {adds.runs[0].ledger_id}")
        self.append(adds.runs[0]._replace(master_key=master_key), adds, recovery=recovery)

    def when_durable(self, callback: Done) -> None:
        """``callback(None)`` when everything handed in so far is durable; starts the journal if it is idle.

        Called inside this call if nothing is pending, and where the loop itself writes for a lone caller; else later.
        Callbacks come in the order in which they were given.
        """
        self._commit.when_durable(callback)

    def start_writing(self) -> None:
        """See to it that adds which nobody waits for (W11) are written soon: with whatever is waited for next, or in a
        few turns of the loop, or when there are enough of them. Never on the loop's thread."""
        self._commit.start_soon()

    def fence(self, ledger_id: LedgerId, master_key: bytes, callback: Done) -> None:
        """Fence a ledger for ever; a ledger never seen is created fenced, with its key (K31).

        Visible at once; ``callback(None)`` when it and every add accepted before it are durable (R3, B2).
        An already durable fence answers after the adds accepted before this call. A dropped ledger answers None.

        Raises:
            UnauthorizedError: another master key.
        """
        if ledger_id not in self._ledgers.dropped:
            state = self._known(ledger_id, master_key)
            if state is None or not state.fenced:
                self._refuse_if_stopped()
                if state is None:
                    state = LedgerDescriptor(ledger_id, master_key)
                    self._ledgers.add(state)
                state.fenced = True
                self._ledgers.changed(state)
                self._commit.add_record(ledger_id, state_record(ledger_id, StateRecordKind.FENCED, master_key))
        self._commit.when_durable(callback)

    def set_explicit_lac(self, ledger_id: LedgerId, master_key: bytes, lac: int, blob: Buffer, callback: Done) -> None:
        """Journal an explicit LAC with its opaque body; only ever raises the ledger's LAC (B8).

        Raises:
            UnauthorizedError, LedgerFencedError (deleted ledger), DiskFullError, BookieFailedError
        """
        state = self._admit(ledger_id, master_key, recovery=False, fenced_too=True)
        if state is None:
            state = self._begin_ledger(ledger_id, master_key)
        if lac >= state.explicit_lac:
            rises = lac > state.lac
            body = explicit_lac_body(master_key, bytes(blob))
            self._commit.add_record(ledger_id, state_record(ledger_id, StateRecordKind.EXPLICIT_LAC, body, lac))
            state.raise_explicit_lac(lac, bytes(blob))
            self._ledgers.changed(state)
            if rises:
                self._wake(ledger_id, lac)
        self._commit.when_durable(callback)

    def force(self, ledger_id: LedgerId, callback: Done) -> None:
        """``callback(None)`` when every add accepted so far for the ledger is durable (W11); at once for a ledger that
        is not here. What an earlier life had accepted and lost is not known here: whoever forces has to know that it
        spoke with one life only."""
        self._commit.when_durable(callback)

    def on_pressure(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        """Who to tell when too many bytes wait for the journal (``inflight_bytes``), and when it has caught up."""
        self._pause, self._resume = pause, resume

    def on_state(self, callback: Callable[[EngineState, str], None]) -> None:
        """Called with the new state and the reason at every change of :attr:`state`."""
        self._state_callback = callback

    @property
    def durable_position(self) -> tuple[int, int]:
        """(the newest journal file's id, the last group that is durable); both only rise."""
        return self._commit.groups.file_id, self._commit.groups.durable

    def on_new_journal_file(self, callback: Callable[[], None]) -> None:
        """Called when the first group of each further journal file is durable."""
        self._checkpointer.on_new_journal_file(callback)

    @property
    def journal_bytes_in_flight(self) -> int:
        """Bytes accepted and not yet durable."""
        return self._commit.groups.in_flight

    # -- reading ------------------------------------------------------------------------------------------

    def read(self, ledger_id: LedgerId, entry_id: EntryId, reply: Callable[[bytes | BaseException], None]) -> None:
        """The entry's bytes as they came (header, digest, payload); ``entry_id`` -1 = the last entry.

        ``reply`` is called inside this call if nothing must be waited for, else from the loop later. The record's crc,
        ledger id and entry id are verified on each read (B7). Errors are handed to ``reply``:
        NoSuchLedgerError, NoSuchEntryError (honest negatives only, B5), DataUnknownError, CorruptionError (names file
        and offset), BookieFailedError (I/O).
        """
        try:
            state = self._found(ledger_id)
        except BookKeeperError as error:
            return reply(error)
        if entry_id < 0:
            entry_id = EntryId(state.last_entry)
        return self._reader.read(state, entry_id, self._unknown(ledger_id), reply)

    def answer_at_hand(self, reads: Reads, i0: int, frame_max: int) -> Answers | None:
        """Replies to the plain reads from ``i0`` on, in order: as many as are of one ledger and at hand, each entry
        verified as by :meth:`read`. None, or fewer than there are, says nothing about the next: not at hand, not here,
        damaged; :meth:`read` tells."""
        state = self._ledgers.ledgers.get(LedgerId(reads.ledger_ids[i0]))
        return self._cached_reads.answer(state, reads, i0, frame_max) if state is not None else None

    def read_batch(
        self,
        ledger_id: LedgerId,
        first: EntryId,
        count_max: int,
        size_max: int,
        reply: Callable[[PackedEntries | BaseException], None],
    ) -> None:
        """Consecutive entries from ``first`` on.

        At most ``count_max`` (0 = no limit), at most ``size_max`` bytes of body but at least one entry. Ends early at
        the first entry that is not here; errors as :meth:`read`, and only if the first one cannot be given.
        """
        try:
            state = self._found(ledger_id)
        except BookKeeperError as error:
            return reply(error)
        size = min(size_max, self._config.batch_read_bytes)
        return self._reader.read_batch(state, first, count_max, size, self._unknown(ledger_id), reply)

    def lac(self, ledger_id: LedgerId) -> int:
        """The greatest LAC over entries and explicit LAC (B8); -1 if none.

        Raises:
            NoSuchLedgerError, DataUnknownError
        """
        return self._found(ledger_id).lac

    def explicit_lac(self, ledger_id: LedgerId) -> tuple[int, bytes] | None:
        """The greatest explicit LAC and its body. Raises as :meth:`lac`."""
        state = self._found(ledger_id)
        return None if state.explicit_blob is None else (state.explicit_lac, state.explicit_blob)

    def last_entry(self, ledger_id: LedgerId) -> EntryId:
        """The greatest entry id here; -1 if there are none. Raises as :meth:`lac`."""
        return EntryId(self._found(ledger_id).last_entry)

    def entries(self, ledger_id: LedgerId) -> Sequence[AvailabilityRun]:
        """Which entries are here, ascending. May read index pages. Raises as :meth:`lac`."""
        state = self._found(ledger_id)
        if self._unknown(ledger_id):
            raise DataUnknownError(f"ledger {ledger_id}: which entries were here is not known")
        return self._reader.entries(state)

    def is_fenced(self, ledger_id: LedgerId) -> bool:
        """Fenced, deleted, or unknown (B3)."""
        if ledger_id in self._ledgers.dropped or self._unknowns.in_limbo(ledger_id):
            return True
        state = self._ledgers.ledgers.get(ledger_id)
        return state is not None and state.fenced

    def on_lac(self, ledger_id: LedgerId, callback: Callable[[int], None]) -> Callable[[], None]:
        """``callback(lac)`` once, when the ledger's LAC next rises (the ledger need not exist yet).

        Returns:
            a function that takes the waiter back; harmless afterwards.
        """
        waiters = self._lac_waiters.setdefault(ledger_id, {})
        token = object()
        waiters[token] = callback

        def forget() -> None:
            waiters.pop(token, None)
            if not waiters and self._lac_waiters.get(ledger_id) is waiters:
                del self._lac_waiters[ledger_id]

        return forget

    def ledgers(self) -> Iterable[LedgerId]:
        """Every ledger with anything here, a snapshot."""
        return [state.ledger_id for state in self._ledgers.ledgers.values()]

    # -- keeping house ------------------------------------------------------------------------------------

    def checkpoint(self, callback: Done) -> None:
        """Everything handed in so far becomes covered by the mark; the journal before it is recycled (K13-K16)."""
        self._checkpointer.checkpoint(callback)

    def collect(
        self,
        dead: Container[LedgerId] | Callable[[LedgerId], bool],
        callback: Done,
        *,
        never_again: Iterable[tuple[int, int]] = (),
    ) -> None:
        """Drop the ledgers given as dead and remove entry logs without a live ledger.

        The caller has the proof that they are dead (G1). Dropped ledgers are remembered: adds to them are refused as
        fenced, reads say "no such ledger".

        Args:
            never_again: ids that are not given out again. Those of them that are not here are remembered with the
                dropped ones, so that what is remembered are a few long ranges and not every id for ever.
        """
        is_dead = dead if callable(dead) else dead.__contains__
        for ledger_id in [LedgerId(key) for key in self._ledgers.ledgers if is_dead(LedgerId(key))]:
            self._refuse_if_stopped()
            self._commit.add_record(ledger_id, state_record(ledger_id, StateRecordKind.DROPPED))
            self._ledgers.drop(ledger_id)
            self.stats.dropped_ledgers += 1
        self._ledgers.drop_unseen(never_again)
        self._checkpointer.checkpoint(callback, collect=True)

    @property
    def dropped(self) -> IdRanges:
        """Ledgers that were collected here, and ids that are not given out again. Not to be changed."""
        return self._ledgers.dropped

    @property
    def in_limbo(self) -> bool:
        """Acknowledged data may be missing: regular adds are refused as fenced, negatives are unknown (B9)."""
        return self._unknowns.limbo is not None

    @property
    def takes_new_ledgers(self) -> bool:
        """A ledger that is created now is not in limbo."""
        return not self._unknowns.concern_new_ledgers

    def narrow_limbo(self, suspects: Iterable[LedgerId]) -> None:
        """Limbo concerns at most these from now on: no other ledger that existed before this life was ever here.

        The caller has the proof. Holds for this life only.
        """
        self._unknowns.narrow(suspects)

    def end_limbo(self, ledger_id: LedgerId | None = None) -> None:
        """The data of the ledger (None: of all) is known to be complete again, or it was created later."""
        self._unknowns.end_limbo(ledger_id)

    def doubt(self, ledgers: Container[int]) -> None:
        """Negatives about these ledgers are unknown (B5) for as long as ``ledgers`` holds them: this disk is younger
        than the bookie's name. Holds for this life."""
        self._unknowns.doubt(ledgers)

    def space(self) -> Space:
        """Bytes of the file system that holds the ledger directory."""
        return self._disk.space(self._config.ledger_dir)

    def check_space(self) -> None:
        """Look at the free space: turn read-only or writable (V8), and retry what found no space. Cheap; call it every
        few seconds."""
        if self._commit.groups.blocked is not None:
            self._commit.start()
        else:
            self._space.judge()

    def close(self, callback: Done) -> None:
        """Clean stop: everything durable and covered by the mark, marked clean, unlocked. Adds are refused from now."""
        if self._state is EngineState.CLOSED:
            return callback(None)
        self._closing = True
        if self._commit.failure is not None:
            self._let_go(None)
            return callback(BookieFailedError(f"the disk has failed: {in_words(self._commit.failure)}"))

        def stopped(error: BaseException | None) -> None:
            self._let_go(error)
            callback(error)

        return self._checkpointer.stop(stopped)

    def close_blocking(self) -> None:
        """The same on this thread, for programs without a loop: only when no worker has anything in hand."""
        check(not self._commit.busy and not self._checkpointer.running, "P3", "a worker is at work")
        self._workers.run_inline()
        errors: list[BaseException | None] = []
        self.close(errors.append)
        if errors and errors[0] is not None:
            raise errors[0]

    def _let_go(self, error: BaseException | None) -> None:
        """End the workers, close files, unlock. A file that cannot even be closed keeps nobody waiting: what is in it
        was synced, or was said not to be."""
        self._workers.close()
        files = [*self._entry_logs.open_files(), *self._reader.open_files()]
        for close in (self._commit.close, *(file.close for file in files)):
            with suppress(OSError):
                close()
        for lock in self._locks:
            lock.release()
        self._set_state(EngineState.CLOSED, str(error) if error is not None else "clean stop")

    # -- what group commit reports (CommitObserver) -------------------------------------------------------

    def group_logged(self, group: PendingGroup) -> None:
        """A group is durable and in the entry log."""
        self._checkpointer.group_logged(group)

    def no_space(self, error: OSError) -> bool:
        """A group found no space. True: some was freed, try again at once."""
        return self._space.no_space(error)

    def journal_failed(self, error: BaseException) -> None:
        """Nothing is acknowledged any more."""
        self._set_state(EngineState.FAILED, str(error))

    def pressure_changed(self, too_much: bool) -> None:
        """Too many bytes wait for the journal, or few enough again."""
        if too_much:
            self._pause()
        else:
            self._resume()

    # -- inside -------------------------------------------------------------------------------------------

    def _set_state(self, state: EngineState, reason: str) -> None:
        """FAILED and CLOSED are final."""
        if state is self._state or self._state in (EngineState.CLOSED, EngineState.FAILED):
            return
        self._state = state
        if self._state_callback is not None:
            self._state_callback(state, reason)

    def _refuse_if_stopped(self) -> None:
        if self._closing or self._state in (EngineState.FAILED, EngineState.CLOSED):
            raise BookieFailedError(f"the disk is {self._state.value if not self._closing else 'closing'}")

    def _unknown(self, ledger_id: int) -> bool:
        """A negative about this ledger would not be honest (B5)."""
        return self._unknowns.has(ledger_id)

    def _known(self, ledger_id: int, key: bytes) -> LedgerDescriptor | None:
        """The ledger's state, if there is one; its key is compared (B4), or set if none is known."""
        state = self._ledgers.ledgers.get(ledger_id)
        if state is not None:
            if state.key is None:
                state.key = key
                self._ledgers.changed(state)
                self._commit.add_record(ledger_id, state_record(ledger_id, StateRecordKind.KEY, key))
            else:
                state.check_key(key)
        return state

    def _admit(
        self, ledger_id: int, key: bytes, recovery: bool, *, fenced_too: bool = False
    ) -> LedgerDescriptor | None:
        """Whether something may be added to a ledger; its state, if there is one."""
        if self._state is not EngineState.WRITABLE or self._closing:
            self._refuse_if_stopped()
            if not recovery:
                raise DiskFullError("this bookie's disk is full: read-only")
        groups = self._commit.groups
        if groups.blocked is not None and groups.in_flight > self._config.inflight_bytes:
            raise DiskFullError(f"the journal cannot be written for now: {in_words(groups.blocked)}")
        if ledger_id in self._ledgers.dropped:
            raise LedgerFencedError(f"ledger {ledger_id} was deleted")
        state = self._known(ledger_id, key)
        if (
            not recovery
            and not fenced_too
            and ((state is not None and state.fenced) or self._unknowns.in_limbo(ledger_id))
        ):
            raise LedgerFencedError(f"ledger {ledger_id} is fenced")
        return state

    def _begin_ledger(self, ledger_id: int, key: bytes) -> LedgerDescriptor:
        """A ledger is met for the first time: its key goes ahead of its entries (B4, K19)."""
        state = LedgerDescriptor(LedgerId(ledger_id), key)
        self._ledgers.add(state)
        self._commit.add_record(ledger_id, state_record(ledger_id, StateRecordKind.KEY, key))
        return state

    def _check_repeats(self, state: LedgerDescriptor, adds: Adds, i0: int, i1: int, begin: int) -> None:
        """B6: an id that is taken may come again with the same payload only (as far as that is at hand)."""
        view = memoryview(adds.records)
        for at in range(i0, i1):
            end, entry_id = adds.record_ends[at], adds.entry_ids[at]
            if entry_id <= state.last_entry:
                stored = self._reader.peek(state, entry_id)
                if stored is not None and not same_payload(stored, view[begin + RECORD_HEADER : end]):
                    raise DuplicateEntryError(f"entry {entry_id} of ledger {state.ledger_id} has another payload")
            begin = end

    def _found(self, ledger_id: int) -> LedgerDescriptor:
        if (state := self._ledgers.ledgers.get(ledger_id)) is not None:
            return state
        if self._unknown(ledger_id) and ledger_id not in self._ledgers.dropped:
            raise DataUnknownError(f"whether ledger {ledger_id} was here is not known")
        raise NoSuchLedgerError(f"ledger {ledger_id} is not here")

    def _wake(self, ledger_id: int, lac: int) -> None:
        for waiter in list(self._lac_waiters.pop(ledger_id, {}).values()):
            waiter(lac)


def single(entry: Buffer) -> Adds:
    """One entry in the shape of the codec's result: one run of one add, without a key."""
    data = record(entry)
    ledger_id, entry_id, lac = _IDS.unpack_from(entry)
    run = Run(ledger_id, b"", 0, 1, True, lac)
    ends, ids, none = array("q", [len(data)]), array("q", [entry_id]), array("q", [0])
    return Adds(0, data, 0, ends, b"", none, ids, [run], [], [], False, False, None)


def _nothing() -> None:
    pass
