"""A bookie's disk behind one door.

Everything here runs on the loop's thread and never waits for the disk: blocking work goes to four workers
(journal, entry log, checkpoint, read), whose results come back on the loop's thread. The state that decides anything
(handles, index tails, fences) is owned by the loop's thread alone. The work is done by the parts that ``assembly``
makes: ``ledger_updates`` takes what changes a ledger, ``reads/ledger_reads`` answers what is asked of one.

**What is promised.** An entry is visible to reads and fences from the moment :meth:`Engine.append` returns, and
durable when a callback given to :meth:`Engine.when_durable` *after* it is called with None. A fence answers
only when the group that holds it is durable, and every add accepted before it is in that group or an earlier one,
so a negative answer given after a fence is final. A fence never goes away.

**Groups.** ``append`` only collects. ``when_durable``, ``fence`` and ``force`` start the journal if it is idle; while
one group is being made durable the next one collects (the journal clocks itself). So: append all runs of a chunk, then
call ``when_durable`` once (or ``start_writing``, for runs that nobody waits for).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import suppress

from bookkeeper.codec import Answers, Reads
from bookkeeper.errors import BookieFailedError, in_words
from bookkeeper.ids import EntryId, IdRanges, LedgerId
from bookkeeper.seams import Buffer, Disk, Space, Workers
from bookkeeper.storage.assembly import EngineParts, build_engine
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.base.results import (
    NOTHING_KNOWN,
    AvailabilityRun,
    Done,
    EngineState,
    EngineStats,
    OpenReport,
    PackedEntries,
    PublishedProgress,
    ignore,
)
from bookkeeper.storage.compaction.compactor import Compactor
from bookkeeper.storage.compaction.schedule import CompactionKind
from bookkeeper.storage.scrub.scrubber import Scrubber
from bookkeeper.storage.start.full_disk import start_with_room
from bookkeeper.storage.updates.record_runs import EntryRecords, RecordRun

__all__ = ["AvailabilityRun", "Done", "Engine", "EngineState", "EngineStats", "OpenReport", "PackedEntries"]


class Engine:
    """One bookie's disk. Made by :meth:`open`; all methods on the loop's thread."""

    def __init__(self, config: StorageConfig, disk: Disk, report: OpenReport, parts: EngineParts) -> None:
        self._config, self._disk = config, disk
        self.report: OpenReport = report
        self.stats: EngineStats = parts.stats
        self._state, self._workers, self._locks, self._reports = parts.state, parts.workers, parts.locks, parts.reports
        self._ledgers, self._unknowns, self._lac_waiters = parts.ledgers, parts.unknowns, parts.lac_waiters
        self._updates, self._reads, self._reader = parts.updates, parts.reads, parts.reader
        self._commit, self._entry_logs, self._layout = parts.commit, parts.entry_logs, parts.layout
        self._checkpointer, self._space = parts.checkpointer, parts.space
        self.compactor: Compactor = parts.compactor
        """Copies what lives in entry logs of which little lives, and removes them."""
        self.scrubber: Scrubber = parts.scrubber
        """Reads and checks every stored byte."""

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

        When it returns everything that was ever acknowledged is readable, synced and covered by the mark, and
        the workers are not yet in use (they are made with the first work).

        Args:
            boot: this start's number, written into the files it makes.
            known: what the directory must know, or has lost data; its id marks a new one.
            monotonic: seconds, for the sync statistics and ``journal_gap_ms``; without it neither is there.
            call_later: the loop's; needed only with ``journal_gap_ms``.

        Raises:
            DirectoryLockedError: another process has the directory.
            ForeignDirectoryError: a file belongs to another directory.
            UnsupportedFormatError: a file of another version.
            StorageError, OSError: the directory cannot be used.
        """
        began = start_with_room(config, disk, boot, known)
        parts = build_engine(config, disk, workers, began, boot, monotonic, call_later)
        parts.space.begin()
        parts.scrubber.recall(rebuilt=began.report.rebuilt)
        return cls(config, disk, began.report, parts)

    @property
    def state(self) -> EngineState:
        """Whether the disk takes adds; see :meth:`on_state`."""
        return self._state.now

    # -- writing ------------------------------------------------------------------------------------------

    def landing(self, size: int) -> tuple[memoryview, int] | None:
        """Memory, and where in it the records of one run, of at most ``size`` bytes, may be built for the next
        :meth:`append`, which need not copy them then. What is not taken by it does not matter.

        Valid until the next call of this engine. None: there is no such memory.
        """
        return self._commit.landing(size)

    def append(self, run: RecordRun, batch: EntryRecords, *, recovery: bool = False) -> None:
        """Take one run of a batch (``codec.split_adds`` cuts such); the records are copied, or were built at
        :meth:`landing`.

        Nothing is written before the journal is started (see the module). All or nothing: when it raises, no entry of
        the run was taken. Costs a few microseconds whatever the run's length.

        Args:
            recovery: a recovery add: passes a fence, and a full disk.

        Raises:
            LedgerFencedError: fenced, or deleted, or its fence state is unknown.
            UnauthorizedError: another master key.
            DiskFullError: read-only for regular adds.
            DuplicateEntryError: another payload is stored under one of the ids.
            BookieFailedError: the disk failed or is closed.
        """
        self._updates.append(run, batch, recovery)

    def append_entry(self, ledger_id: LedgerId, master_key: bytes, entry: Buffer, *, recovery: bool = False) -> None:
        """The same for one entry as it came (header of 32 bytes, digest, payload); its ids are in its header.

        Raises:
            BadRequestError: shorter than its header, or a negative id, or another ledger's.
            and as :meth:`append`.
        """
        self._updates.append_entry(ledger_id, master_key, entry, recovery)

    def when_durable(self, callback: Done) -> None:
        """``callback(None)`` when everything handed in so far is durable; starts the journal if it is idle.

        Called inside this call if nothing is pending, and where the loop itself writes for a lone caller; else later.
        Callbacks come in the order in which they were given.
        """
        self._commit.when_durable(callback)

    def start_writing(self) -> None:
        """See to it that adds which nobody waits for are written soon: with whatever is waited for next, or in a
        few turns of the loop, or when there are enough of them. Never on the loop's thread."""
        self._commit.start_soon()

    def fence(self, ledger_id: LedgerId, master_key: bytes, callback: Done) -> None:
        """Fence a ledger for ever; a ledger never seen is created fenced, with its key.

        Visible at once; ``callback(None)`` when it and every add accepted before it are durable.
        An already durable fence answers after the adds accepted before this call. A dropped ledger answers None when
        it is durable that it was dropped: else the next start would take adds to it.

        Raises:
            UnauthorizedError: another master key.
        """
        self._updates.fencing.fence(ledger_id, master_key)
        if self._ledgers.is_drop_pending(ledger_id):
            self._checkpointer.checkpoint(callback)
        else:
            self._commit.when_durable(callback)

    def set_explicit_lac(self, ledger_id: LedgerId, master_key: bytes, lac: int, blob: Buffer, callback: Done) -> None:
        """Journal an explicit LAC with its opaque body; only ever raises the ledger's LAC.

        Visible at once. It is in no hurry to be durable: it costs no write of its own if an add follows soon.

        Raises:
            UnauthorizedError, LedgerFencedError (deleted ledger), DiskFullError, BookieFailedError
        """
        self._updates.set_explicit_lac(ledger_id, master_key, lac, blob)
        self._commit.when_durable_lazily(callback)

    def force(self, ledger_id: LedgerId, callback: Done) -> None:
        """``callback(None)`` when every add accepted so far for the ledger is durable; at once for a ledger that
        is not here. What an earlier start accepted and lost is not known here: the caller must know that all its acks
        came from this start."""
        self._commit.when_durable(callback)

    def on_pressure(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        """Who to tell when too many bytes wait for the journal (``inflight_bytes``), and when it has caught up."""
        self._reports.on_pressure(pause, resume)

    def on_state(self, callback: Callable[[EngineState, str], None]) -> None:
        """Called with the new state and the reason at every change of :attr:`state`."""
        self._state.on_change(callback)

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
        ledger id and entry id are verified on each read. Errors are handed to ``reply``:
        NoSuchLedgerError, NoSuchEntryError (honest negatives only), DataUnknownError, CorruptionError (names file
        and offset), BookieFailedError (I/O).
        """
        self._reads.read(ledger_id, entry_id, reply)

    def try_read_cached(self, reads: Reads, i0: int, frame_max: int) -> Answers | None:
        """Replies to the plain reads from ``i0`` on, in order: as many as are of one ledger and need no disk, each
        entry verified as by :meth:`read`. None, or fewer than there are, says nothing about the next: not cached,
        absent, damaged; :meth:`read` tells."""
        return self._reads.try_read_cached(reads, i0, frame_max)

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
        self._reads.read_batch(ledger_id, first, count_max, size_max, reply)

    def lac(self, ledger_id: LedgerId) -> int:
        """The greatest LAC over entries and explicit LAC; -1 if none.

        Raises:
            NoSuchLedgerError, DataUnknownError
        """
        return self._reads.found(ledger_id).lac

    def explicit_lac(self, ledger_id: LedgerId) -> tuple[int, bytes] | None:
        """The greatest explicit LAC and its body. Raises as :meth:`lac`."""
        ledger = self._reads.found(ledger_id)
        return None if ledger.explicit_blob is None else (ledger.explicit_lac, ledger.explicit_blob)

    def last_entry(self, ledger_id: LedgerId) -> EntryId:
        """The greatest entry id here; -1 if there are none. Raises as :meth:`lac`."""
        return EntryId(self._reads.found(ledger_id).last_entry)

    def entries(self, ledger_id: LedgerId) -> Sequence[AvailabilityRun]:
        """Which entries are here, ascending. May read index pages. Raises as :meth:`lac`."""
        return self._reads.entries(ledger_id)

    def is_fenced(self, ledger_id: LedgerId) -> bool:
        """Fenced, deleted, or unknown."""
        return self._reads.is_fenced(ledger_id)

    def on_lac(self, ledger_id: LedgerId, callback: Callable[[int], None]) -> Callable[[], None]:
        """``callback(lac)`` once, when the ledger's LAC next rises (the ledger need not exist yet).

        Returns:
            a function that takes the waiter back; harmless afterwards.
        """
        return self._lac_waiters.add(ledger_id, callback)

    def has(self, ledger_id: LedgerId) -> bool:
        """Whether there is anything of a ledger here."""
        return ledger_id in self._ledgers.ledgers

    def master_key(self, ledger_id: LedgerId) -> bytes | None:
        """The master key of a ledger; None if none was learnt. Raises as :meth:`lac`."""
        return self._reads.found(ledger_id).key

    def is_strange(self, ledger_id: LedgerId) -> bool:
        """Whether there is nothing of a ledger here, not even that it was deleted, or its key is not known."""
        ledger = self._ledgers.ledgers.get(ledger_id)
        return ledger.key is None if ledger is not None else ledger_id not in self._ledgers.dropped

    def may_lack(self, ledger_id: LedgerId) -> bool:
        """Whether entries of a ledger may be missing here."""
        return self._unknowns.may_lack(ledger_id)

    def ledgers(self) -> Iterable[LedgerId]:
        """Every ledger with anything here, a snapshot."""
        return [LedgerId(key) for key in self._ledgers.ledgers]

    # -- keeping house ------------------------------------------------------------------------------------

    def checkpoint(self, callback: Done) -> None:
        """Everything handed in so far becomes covered by the mark; the journal before it is recycled."""
        self._checkpointer.checkpoint(callback)

    def collect(
        self,
        dead: Container[LedgerId] | Callable[[LedgerId], bool],
        callback: Done,
        *,
        never_again: Iterable[tuple[int, int]] = (),
    ) -> None:
        """Drop the ledgers given as dead and remove entry logs without a live ledger.

        The caller has the proof that they are dead. Dropped ledgers are remembered: adds to them are refused as
        fenced, reads say "no such ledger".

        Args:
            never_again: ids that are not given out again. Those of them that are not here are remembered with the
                dropped ones, so that what is remembered are a few long ranges and not every id for ever.
        """
        is_dead = dead if callable(dead) else dead.__contains__
        gone = [LedgerId(key) for key in self._ledgers.ledgers if is_dead(LedgerId(key))]
        self.stats.dropped_ledgers += self._updates.drop(gone)
        self._ledgers.drop_unseen(never_again)
        self._checkpointer.checkpoint(callback, collect=True)

    def compact(self, callback: Done, *, major: bool = False) -> None:
        """Compact entry logs now: copy what lives in those of which little lives, and remove them. Takes a while; it
        shares the disk as the configuration says. Errors lose nothing; what is left over stays for the next run."""
        self.compactor.run(CompactionKind.MAJOR if major else CompactionKind.MINOR, callback)

    @property
    def dropped(self) -> IdRanges:
        """Ledgers that were collected here, and ids that are not given out again. Not to be changed."""
        return self._ledgers.dropped

    @property
    def in_limbo(self) -> bool:
        """Acknowledged data may be missing: regular adds are refused as fenced, negatives are unknown."""
        return self._unknowns.limbo is not None

    @property
    def takes_new_ledgers(self) -> bool:
        """A ledger that is created now is not in limbo."""
        return not self._unknowns.concern_new_ledgers

    def narrow_limbo(self, ledgers: Iterable[LedgerId]) -> None:
        """Limbo concerns at most these from now on: no other ledger that existed before this start was ever here.

        The caller has the proof. Holds until the engine is closed.
        """
        self._unknowns.narrow(ledgers)

    def end_limbo(self, ledger_id: LedgerId | None = None) -> None:
        """The data of the ledger (None: of all) is known to be complete again, or it was created later."""
        self._unknowns.end_limbo(ledger_id)

    def doubt(self, ledgers: Container[int]) -> None:
        """While a ledger is in ``ledgers``, a missing entry is answered "unknown": the disk was set up after the
        bookie id was first used. Holds until the engine is closed."""
        self._unknowns.doubt(ledgers)

    @property
    def suspects(self) -> frozenset[int]:
        """Ledgers that are suspect: damage may have taken entries. Which are here is unknown until
        :meth:`end_suspicion`."""
        return self._unknowns.suspects

    def suspicion(self, ledger_id: LedgerId) -> int:
        """The number of the newest suspicion of a ledger, for :meth:`end_suspicion`; 0: there is none."""
        return self._unknowns.suspicion(ledger_id)

    def end_suspicion(self, ledger_id: LedgerId, suspicion: int) -> bool:
        """Since that suspicion everything that should be here of the ledger was read, or it is deleted. Returns whether
        the ledger is suspect no more: damage that was found meanwhile makes another suspicion."""
        return self.scrubber.settled(ledger_id, suspicion)

    def space(self) -> Space:
        """Bytes of the file system that holds the ledger directory."""
        return self._disk.space(self._config.ledger_dir)

    def check_space(self) -> None:
        """Look at the free space: turn read-only or writable, and retry what found no space, or a checkpoint that
        failed. Cheap; call it every few seconds."""
        if self._commit.groups.blocked is not None:
            self._commit.start()
        else:
            self._space.judge()
        self._checkpointer.try_again(writable=self._state.now is EngineState.WRITABLE)

    def refusals(self) -> tuple[str, ...]:
        """Why regular adds are refused, for people; empty: they are taken."""
        if self._state.now is EngineState.WRITABLE:
            return ()
        return (f"{self._config.ledger_dir} takes no new entries: {self._state.reason}",)

    def sentences(self) -> tuple[str, ...]:
        """What keeps the journal from being covered, for people."""
        return self._checkpointer.sentences()

    def ledger_closed(self, ledger_id: LedgerId) -> None:
        """Advice that no more adds to a ledger are expected: where it has a log of its own, that log is finished soon,
        and its descriptor closed. Nothing depends on it: an add that comes all the same is taken."""
        self._layout.ledger_closed(ledger_id)

    def finish_logs(self) -> None:
        """Look for logs of ledgers that have ended, or had no add for long, and have them finished. Cheap; call it
        every few seconds."""
        if self._commit.failure is None and not self._state.closing and self._layout.end_idle_logs():
            self._checkpointer.checkpoint(ignore)

    def close(self, callback: Done) -> None:
        """Clean stop: everything durable and covered by the mark, marked clean, unlocked. Adds are refused from now."""
        if self._state.now is EngineState.CLOSED:
            return callback(None)
        self._state.begin_closing()
        self.compactor.steps.stop()
        self.scrubber.stop()
        if self._commit.failure is not None:
            self._let_go(None)
            return callback(BookieFailedError(f"the disk has failed: {in_words(self._commit.failure)}"))

        def stopped(error: BaseException | None) -> None:
            self._let_go(error)
            callback(error)

        return self._checkpointer.stop(stopped)

    def _let_go(self, error: BaseException | None) -> None:
        """End the workers, close files, unlock. A file that cannot even be closed keeps nobody waiting: what is in it
        was synced, or was said not to be."""
        self._layout.stop()
        self._workers.close()
        with suppress(OSError):
            self.compactor.close()
        files = [*self._entry_logs.open_files(), *self._layout.open_files(), *self._reader.places.open_files()]
        for close in (self._commit.close, *(file.close for file in files)):
            with suppress(OSError):
                close()
        for lock in self._locks:
            lock.release()
        self._state.set(EngineState.CLOSED, str(error) if error is not None else "clean stop")
