"""The parts of a bookie's disk, put together: who knows whom. Nothing is decided here.

Calls go down the stack that is drawn in ``bookkeeper/storage/__init__.py``. What goes up passes through
:class:`CommitReports`: what group commit reports concerns the checkpointer, the space, the state, and the callers that
have to pause.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bookkeeper.errors import in_words
from bookkeeper.seams import Disk, Lock, Workers
from bookkeeper.storage.checkpoint.checkpointer import Checkpointer
from bookkeeper.storage.checkpoint.disk_space import DiskSpace
from bookkeeper.storage.compaction.compaction_steps import CompactionSteps
from bookkeeper.storage.compaction.compactor import Compactor
from bookkeeper.storage.compaction.log_copy import CompactionFiles
from bookkeeper.storage.compaction.schedule import CompactionSchedule
from bookkeeper.storage.config import StorageConfig
from bookkeeper.storage.disk_state import DiskState
from bookkeeper.storage.entry_log.entry_log_file import EntryLogWriter
from bookkeeper.storage.entry_log.entry_logs import EntryLogs
from bookkeeper.storage.entry_log_layout import EntryLogLayout, SharedLayout
from bookkeeper.storage.index.entry_index import PageCache
from bookkeeper.storage.journal.group_commit import GroupCommit
from bookkeeper.storage.journal.group_sequence import GroupSequence
from bookkeeper.storage.journal.pending_group import PendingGroup
from bookkeeper.storage.lac_waiters import LacWaiters
from bookkeeper.storage.ledger_logs.ledger_log_layout import LedgerLogLayout
from bookkeeper.storage.ledger_logs.ledger_logs import LedgerLogs
from bookkeeper.storage.ledger_logs.log_writes import LogWrites
from bookkeeper.storage.ledger_table import LedgerTable
from bookkeeper.storage.ledger_updates import LedgerUpdates
from bookkeeper.storage.reads.entry_places import EntryPlaces
from bookkeeper.storage.reads.entry_reader import EntryReader
from bookkeeper.storage.reads.ledger_reads import LedgerReads
from bookkeeper.storage.reads.unwritten import LogMemory
from bookkeeper.storage.results import EngineState, EngineStats
from bookkeeper.storage.scrub.scrubber import Scrubber
from bookkeeper.storage.start.start import ReplayedDisk
from bookkeeper.storage.unknowns import Unknowns
from bookkeeper.storage.workers import StorageWorkers


class CommitReports:
    """What group commit reports, told to those whom it concerns (its ``CommitObserver``)."""

    space: DiskSpace
    checkpointer: Checkpointer

    def __init__(self, state: DiskState) -> None:
        self._state = state
        self._pause: Callable[[], None] = _nothing
        self._resume: Callable[[], None] = _nothing

    def on_pressure(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        """Who to tell when too many bytes wait for the journal, and when it has caught up."""
        self._pause, self._resume = pause, resume

    def group_logged(self, group: PendingGroup) -> None:
        """A group is durable and in the entry log."""
        self.checkpointer.group_logged(group)

    def no_space(self, error: OSError) -> bool:
        """A group found no space. True: some was freed, try again at once."""
        return self.space.no_space(error)

    def journal_failed(self, error: BaseException) -> None:
        """Nothing is acknowledged any more."""
        self._state.set(EngineState.FAILED, in_words(error))

    def pressure_changed(self, too_much: bool) -> None:
        """Too many bytes wait for the journal, or few enough again."""
        if too_much:
            self._pause()
        else:
            self._resume()


@dataclass(slots=True)
class EngineParts:
    """Everything below the engine; each part is described in its module."""

    state: DiskState
    stats: EngineStats
    workers: StorageWorkers
    locks: list[Lock]
    reports: CommitReports
    ledgers: LedgerTable
    unknowns: Unknowns
    entry_logs: EntryLogs
    layout: EntryLogLayout
    commit: GroupCommit
    space: DiskSpace
    reader: EntryReader
    reads: LedgerReads
    lac_waiters: LacWaiters
    updates: LedgerUpdates
    checkpointer: Checkpointer
    compactor: Compactor
    scrubber: Scrubber


def put_together(
    config: StorageConfig,
    disk: Disk,
    worker_threads: Workers,
    began: ReplayedDisk,
    boot: int,
    monotonic: Callable[[], float] | None,
    call_later: Callable[[float, Callable[[], None]], object] | None,
) -> EngineParts:
    """The parts of a disk that a start has made ready. See :meth:`Engine.open` for the arguments."""
    manifest, entry_logs = began.manifest, began.entry_logs
    state, stats, workers, lac_waiters = DiskState(), EngineStats(), StorageWorkers(worker_threads), LacWaiters()
    ledgers = LedgerTable(began.ledgers)
    unknowns = Unknowns(manifest.limbo, manifest.quarantined)
    reports = CommitReports(state)
    layout: EntryLogLayout
    memory: LogMemory | None = None
    if config.entry_log_per_ledger:
        logs = LedgerLogs(
            entry_logs.begin,
            entry_logs.end_filling,
            log_bytes=config.entry_log_bytes,
            buffer_bytes=config.ledger_buffer_bytes,
            open_max=config.open_logs_max,
            idle_s=config.log_idle_s,
        )
        layout = LedgerLogLayout(
            logs,
            LogWrites(disk, config.ledger_dir, manifest.directory_id, boot),
            entry_logs,
            workers,
            monotonic if monotonic is not None else _no_clock,
            no_space=reports.no_space,
            fail=lambda error: commit.fail(error),
        )
        memory = LogMemory(logs, entry_logs)
    else:
        writer = EntryLogWriter(disk, config.ledger_dir, manifest.directory_id, boot)
        layout = SharedLayout(entry_logs, writer, workers, monotonic)
    groups = GroupSequence(
        durable=manifest.sequence,
        file_id=manifest.file_id,
        file_bytes=config.journal_file_bytes,
        inflight_bytes=config.inflight_bytes,
        new_group=layout.new_group,
    )
    commit = GroupCommit(
        config,
        groups,
        began.journal,
        layout,
        workers,
        stats,
        reports,
        spares=began.spares,
        monotonic=monotonic,
        call_later=call_later,
    )
    space = reports.space = DiskSpace(config, disk, workers, state.set, commit.fail)
    places = EntryPlaces(
        disk=disk,
        directory=config.ledger_dir,
        pages=PageCache(config.page_cache_pages),
        workers=workers,
        unknowns=unknowns,
    )
    reader = EntryReader(
        entry_logs=entry_logs,
        places=places,
        stats=stats,
        workers=workers,
        unwritten=memory if memory is not None else groups,
        source_of=memory.source_of if memory is not None else entry_logs.file,
    )
    entry_logs.close_by(layout.close)
    checkpointer = reports.checkpointer = Checkpointer(
        config=config,
        disk=disk,
        workers=workers,
        commit=commit,
        places=places,
        entry_logs=entry_logs,
        layout=layout,
        ledgers=ledgers,
        unknowns=unknowns,
        space=space,
        stats=stats,
        manifest=manifest,
        set_state=state.set,
    )
    updates = LedgerUpdates(state, ledgers, unknowns, commit, reader, lac_waiters, config.inflight_bytes)
    clock = monotonic if monotonic is not None else _no_clock
    schedule = CompactionSchedule(config, clock())
    scrubber = Scrubber(
        config=config,
        disk=disk,
        workers=workers,
        checkpointer=checkpointer,
        commit=commit,
        entry_logs=entry_logs,
        ledgers=ledgers,
        unknowns=unknowns,
        compaction=schedule,
        state=state,
        stats=stats,
        monotonic=clock,
        call_later=call_later,
    )
    reader.found_damage = scrubber.look_at_path
    steps = CompactionSteps(
        schedule=schedule,
        files=CompactionFiles(disk, config.ledger_dir, manifest.directory_id, boot, config.log_sync_bytes),
        workers=workers,
        entry_logs=entry_logs,
        ledgers=ledgers,
        places=places,
        updates=updates,
        unknowns=unknowns,
        checkpointer=checkpointer,
        space=space,
        state=state,
        stats=stats,
        fail=commit.fail,
        found_damage=scrubber.look_at,
        found_unindexed=scrubber.suspect_unindexed,
        monotonic=clock,
        call_later=call_later,
        log_bytes=config.entry_log_bytes,
    )
    return EngineParts(
        state=state,
        stats=stats,
        workers=workers,
        locks=began.locks,
        reports=reports,
        ledgers=ledgers,
        unknowns=unknowns,
        entry_logs=entry_logs,
        layout=layout,
        commit=commit,
        space=space,
        reader=reader,
        reads=LedgerReads(ledgers, unknowns, reader, config.batch_read_bytes),
        lac_waiters=lac_waiters,
        updates=updates,
        checkpointer=checkpointer,
        compactor=Compactor(disk, config.ledger_dir, schedule, steps),
        scrubber=scrubber,
    )


def _nothing() -> None:
    pass


def _no_clock() -> float:
    return 0.0
