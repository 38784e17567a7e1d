"""Makes the parts of a bookie's disk: who knows whom. Nothing is decided here.

Calls go down the stack that is drawn in ``bookkeeper/storage/__init__.py``, and so the parts are made from the bottom
up, a function for each floor. What goes up passes through :class:`CommitReports`: what group commit reports concerns
the checkpointer, the space, the state, and the callers that have to pause; a failed sync anywhere ends group commit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bookkeeper.errors import in_words
from bookkeeper.seams import Disk, Lock, Workers
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.base.disk_state import DiskState
from bookkeeper.storage.base.manifest import Manifest
from bookkeeper.storage.base.results import EngineState, EngineStats, ignore
from bookkeeper.storage.base.workers import StorageWorkers
from bookkeeper.storage.checkpoint.checkpointer import Checkpointer
from bookkeeper.storage.compaction.compaction_steps import CompactionSteps
from bookkeeper.storage.compaction.compactor import Compactor
from bookkeeper.storage.compaction.log_copy import CompactionFiles
from bookkeeper.storage.compaction.schedule import CompactionSchedule
from bookkeeper.storage.disk_space import DiskSpace
from bookkeeper.storage.entry_log.entry_log_file import EntryLogWriter
from bookkeeper.storage.entry_log.entry_logs import EntryLogs
from bookkeeper.storage.index.entry_index import PageCache
from bookkeeper.storage.journal.entry_log_layout import EntryLogLayout
from bookkeeper.storage.journal.group_commit import GroupCommit
from bookkeeper.storage.journal.group_sequence import GroupSequence
from bookkeeper.storage.journal.pending_group import PendingGroup
from bookkeeper.storage.ledger_logs.ledger_log_layout import LedgerLogLayout
from bookkeeper.storage.ledger_logs.ledger_logs import LedgerLogs
from bookkeeper.storage.ledger_logs.log_writes import LogWrites
from bookkeeper.storage.ledgers.ledger_table import LedgerTable
from bookkeeper.storage.ledgers.unknowns import Unknowns
from bookkeeper.storage.reads.entry_places import EntryPlaces
from bookkeeper.storage.reads.entry_reader import EntryReader
from bookkeeper.storage.reads.ledger_reads import LedgerReads
from bookkeeper.storage.reads.unwritten import LogMemory
from bookkeeper.storage.scrub.scrubber import Scrubber
from bookkeeper.storage.shared_log.shared_layout import SharedLayout
from bookkeeper.storage.start.start import ReplayedDisk
from bookkeeper.storage.updates.lac_waiters import LacWaiters
from bookkeeper.storage.updates.ledger_updates import LedgerUpdates


class CommitReports:
    """What group commit reports, told to those whom it concerns (its ``CommitObserver``); and what fails for good
    elsewhere, told to group commit. Those who are told are made after those who tell."""

    commit: GroupCommit
    space: DiskSpace
    checkpointer: Checkpointer

    def __init__(self, state: DiskState) -> None:
        self._state = state
        self._pause: Callable[[], None] = ignore
        self._resume: Callable[[], None] = ignore

    def on_pressure(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        """Who to tell when too many bytes wait for the journal, and when it has caught up."""
        self._pause, self._resume = pause, resume

    def group_logged(self, group: PendingGroup) -> None:
        """A group is durable and in the entry log."""
        self.checkpointer.group_logged(group)

    def no_space(self, error: OSError) -> bool:
        """A group found no space. True: some was freed, try again at once."""
        return self.space.no_space(error)

    def no_spare(self) -> None:
        """There is no space for another journal file: a checkpoint makes spares of those that it covers."""
        self.checkpointer.checkpoint(ignore)

    def journal_failed(self, error: BaseException) -> None:
        """Nothing is acknowledged any more."""
        self._state.set(EngineState.FAILED, in_words(error))

    def failed(self, error: BaseException) -> None:
        """Something below the journal failed for good (K23): nothing is acknowledged any more."""
        self.commit.fail(error)

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


@dataclass(frozen=True, slots=True)
class _Shared:
    """What all parts share: what a start has made ready, the seams, and the parts that need no other."""

    config: StorageConfig
    disk: Disk
    began: ReplayedDisk
    boot: int
    monotonic: Callable[[], float] | None
    clock: Callable[[], float]
    """The same; it stands still if there is none."""
    call_later: Callable[[float, Callable[[], None]], object] | None
    workers: StorageWorkers
    state: DiskState
    stats: EngineStats
    ledgers: LedgerTable
    unknowns: Unknowns
    reports: CommitReports

    @property
    def manifest(self) -> Manifest:
        return self.began.manifest

    @property
    def entry_logs(self) -> EntryLogs:
        return self.began.entry_logs


def build_engine(
    config: StorageConfig,
    disk: Disk,
    worker_threads: Workers,
    began: ReplayedDisk,
    boot: int,
    monotonic: Callable[[], float] | None,
    call_later: Callable[[float, Callable[[], None]], object] | None,
) -> EngineParts:
    """Make the parts of a disk that a start has made ready. See :meth:`Engine.open` for the arguments."""
    state = DiskState()
    shared = _Shared(
        config=config,
        disk=disk,
        began=began,
        boot=boot,
        monotonic=monotonic,
        clock=monotonic if monotonic is not None else _no_clock,
        call_later=call_later,
        workers=StorageWorkers(worker_threads),
        state=state,
        stats=EngineStats(),
        ledgers=LedgerTable(began.ledgers, config.resident_ledgers_max),
        unknowns=Unknowns(began.manifest.limbo, began.manifest.quarantined),
        reports=CommitReports(state),
    )
    layout, memory = _layout(shared)
    commit = _group_commit(shared, layout)
    space = _space(shared)
    reader = _reader(shared, commit.groups, memory)
    checkpointer = _checkpointer(shared, layout, commit, space, reader.places)
    lac_waiters = LacWaiters()
    updates = LedgerUpdates(state, shared.ledgers, shared.unknowns, commit, reader, lac_waiters, config.inflight_bytes)
    schedule = CompactionSchedule(config, shared.clock())
    scrubber = _scrubber(shared, commit, checkpointer, schedule)
    reader.found_damage = scrubber.recheck_path
    checkpointer.report_problem = lambda text, error: scrubber.report_problem(text, error)
    return EngineParts(
        state=state,
        stats=shared.stats,
        workers=shared.workers,
        locks=began.locks,
        reports=shared.reports,
        ledgers=shared.ledgers,
        unknowns=shared.unknowns,
        entry_logs=shared.entry_logs,
        layout=layout,
        commit=commit,
        space=space,
        reader=reader,
        reads=LedgerReads(shared.ledgers, shared.unknowns, reader, config.batch_read_bytes),
        lac_waiters=lac_waiters,
        updates=updates,
        checkpointer=checkpointer,
        compactor=_compactor(shared, schedule, checkpointer, updates, scrubber),
        scrubber=scrubber,
    )


# -- from the entry logs up -------------------------------------------------------------------------------


def _layout(shared: _Shared) -> tuple[EntryLogLayout, LogMemory | None]:
    """Which entry logs records go to, and what is in memory of them before it is in a file; None: only groups are."""
    config, entry_logs = shared.config, shared.entry_logs
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
            LogWrites(shared.disk, config.ledger_dir, shared.manifest.directory_id, shared.boot),
            entry_logs,
            shared.workers,
            shared.clock,
            no_space=shared.reports.no_space,
            fail=shared.reports.failed,
        )
        memory = LogMemory(logs, entry_logs)
    else:
        writer = EntryLogWriter(shared.disk, config.ledger_dir, shared.manifest.directory_id, shared.boot)
        layout = SharedLayout(entry_logs, writer, shared.workers, shared.monotonic)
    entry_logs.close_by(layout.close)
    return layout, memory


def _group_commit(shared: _Shared, layout: EntryLogLayout) -> GroupCommit:
    groups = GroupSequence(
        durable=shared.manifest.sequence,
        file_id=shared.manifest.file_id,
        file_bytes=shared.config.journal_file_bytes,
        inflight_bytes=shared.config.inflight_bytes,
        new_group=layout.new_group,
    )
    commit = shared.reports.commit = GroupCommit(
        shared.config,
        groups,
        shared.began.journal,
        layout,
        shared.workers,
        shared.stats,
        shared.reports,
        spares=shared.began.spares,
        monotonic=shared.monotonic,
        call_later=shared.call_later,
    )
    return commit


def _space(shared: _Shared) -> DiskSpace:
    reports = shared.reports
    space = reports.space = DiskSpace(shared.config, shared.disk, shared.workers, shared.state.set, reports.failed)
    return space


def _reader(shared: _Shared, groups: GroupSequence, memory: LogMemory | None) -> EntryReader:
    places = EntryPlaces(
        disk=shared.disk,
        directory=shared.config.ledger_dir,
        pages=PageCache(shared.config.page_cache_pages),
        workers=shared.workers,
        unknowns=shared.unknowns,
    )
    return EntryReader(
        entry_logs=shared.entry_logs,
        places=places,
        stats=shared.stats,
        workers=shared.workers,
        unwritten=memory if memory is not None else groups,
        source_of=memory.source_of if memory is not None else shared.entry_logs.file,
    )


def _checkpointer(
    shared: _Shared, layout: EntryLogLayout, commit: GroupCommit, space: DiskSpace, places: EntryPlaces
) -> Checkpointer:
    checkpointer = shared.reports.checkpointer = Checkpointer(
        config=shared.config,
        disk=shared.disk,
        workers=shared.workers,
        commit=commit,
        places=places,
        entry_logs=shared.entry_logs,
        layout=layout,
        ledgers=shared.ledgers,
        unknowns=shared.unknowns,
        space=space,
        stats=shared.stats,
        manifest=shared.manifest,
        set_state=shared.state.set,
    )
    return checkpointer


def _scrubber(
    shared: _Shared, commit: GroupCommit, checkpointer: Checkpointer, schedule: CompactionSchedule
) -> Scrubber:
    return Scrubber(
        config=shared.config,
        disk=shared.disk,
        workers=shared.workers,
        checkpointer=checkpointer,
        commit=commit,
        entry_logs=shared.entry_logs,
        ledgers=shared.ledgers,
        unknowns=shared.unknowns,
        compaction=schedule,
        state=shared.state,
        stats=shared.stats,
        monotonic=shared.clock,
        call_later=shared.call_later,
    )


def _compactor(
    shared: _Shared,
    schedule: CompactionSchedule,
    checkpointer: Checkpointer,
    updates: LedgerUpdates,
    scrubber: Scrubber,
) -> Compactor:
    config, directory_id = shared.config, shared.manifest.directory_id
    steps = CompactionSteps(
        schedule=schedule,
        files=CompactionFiles(shared.disk, config.ledger_dir, directory_id, shared.boot, config.log_sync_bytes),
        workers=shared.workers,
        entry_logs=shared.entry_logs,
        ledgers=shared.ledgers,
        places=checkpointer.places,
        updates=updates,
        unknowns=shared.unknowns,
        checkpointer=checkpointer,
        space=checkpointer.space,
        state=shared.state,
        stats=shared.stats,
        fail=shared.reports.failed,
        found_damage=scrubber.recheck_log,
        found_unindexed=scrubber.suspect_unindexed,
        monotonic=shared.clock,
        call_later=shared.call_later,
        log_bytes=config.entry_log_bytes,
    )
    return Compactor(shared.disk, config.ledger_dir, schedule, steps)


def _no_clock() -> float:
    return 0.0
