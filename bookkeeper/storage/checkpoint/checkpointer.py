"""Decides when to make a checkpoint and what it covers, also the last one at a clean stop.

This is the part on the loop's thread. It takes a snapshot of the other parts of the storage, hands it to the
checkpoint's worker (:mod:`~bookkeeper.storage.checkpoint.checkpoint` does the work), and then tells the parts what is
covered. There is one checkpoint at a time.

A checkpoint that fails, wherever it fails, gives back what it took, says why (:attr:`Checkpointer.problem`), and is
tried again: when somebody asks for one, when the journal has grown by as much as for the first, and by itself after a
while. Until one succeeds the journal keeps everything (K16).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from bookkeeper.amounts import counted
from bookkeeper.errors import BookieFailedError, BookKeeperError, DiskFullError, InvariantError, in_words
from bookkeeper.seams import Disk
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.base.dirty_marker import unmark
from bookkeeper.storage.base.durable_file import BLOCK, NO_SPACE, TRANSIENT, SyncFailedError, remove_files
from bookkeeper.storage.base.manifest import Manifest
from bookkeeper.storage.base.results import Done, EngineState, EngineStats, ignore
from bookkeeper.storage.base.workers import StorageWorkers
from bookkeeper.storage.checkpoint.checkpoint import (
    SEGMENTS,
    CheckpointResult,
    CheckpointScope,
    run_checkpoint,
)
from bookkeeper.storage.disk_space import DiskSpace
from bookkeeper.storage.entry_log.entry_logs import EntryLogs
from bookkeeper.storage.entry_log.write_behind import WriteBehind
from bookkeeper.storage.index.index_segment import segment_name
from bookkeeper.storage.journal.entry_log_layout import EntryLogLayout
from bookkeeper.storage.journal.group_commit import GroupCommit
from bookkeeper.storage.journal.journal_format import CLEAN_STOP
from bookkeeper.storage.journal.pending_group import PendingGroup
from bookkeeper.storage.ledgers.ledger_table import LedgerChanges, LedgerTable
from bookkeeper.storage.ledgers.unknowns import Unknowns
from bookkeeper.storage.reads.entry_places import EntryPlaces

RETRY_MAX: Final = 32
"""While checkpoints fail, at most so many calls of :meth:`Checkpointer.try_again` pass between two of them."""

FULL_RETRY: Final = 8
"""The same, before the first retry of one that found no space."""


@dataclass(slots=True)
class _Checkpoint:
    """One checkpoint, from its snapshot to its result."""

    scope: CheckpointScope
    changes: LedgerChanges
    dirty_logs: list[int]
    full_logs: dict[int, int]
    last: PendingGroup | None
    """The newest group that it covers; None if all groups were in the entry logs already."""
    callbacks: list[Done]
    is_over: bool = False


@dataclass(slots=True)
class Checkpointer:
    """Makes the checkpoints of one storage. Runs on the loop's thread, and is the only owner of the manifest."""

    config: StorageConfig
    disk: Disk
    workers: StorageWorkers
    commit: GroupCommit
    places: EntryPlaces
    entry_logs: EntryLogs
    layout: EntryLogLayout
    ledgers: LedgerTable
    unknowns: Unknowns
    space: DiskSpace
    stats: EngineStats
    manifest: Manifest
    set_state: Callable[[EngineState, str], None]
    running: bool = False
    """Whether a checkpoint is in progress."""
    problem: str | None = None
    """Why the last checkpoint failed; None if it did not."""
    report_problem: Callable[[str, BaseException | None], None] = lambda text, error: None
    """Told of the first of several failures in a row that have one reason; with the error if nobody foresaw it."""
    _unreadable: set[int] = field(default_factory=set)
    """Index segments that merges could not read since the start."""
    _waiting: list[Done] = field(default_factory=list)
    """Callbacks of the next checkpoint."""
    _collect: bool = False
    """Whether the next checkpoint looks for logs without a live ledger."""
    _emptied: set[int] = field(default_factory=set)
    """Logs that the next checkpoint removes: their entries were moved."""
    _stopping: bool = False
    _failures: int = 0
    """How many checkpoints in a row have failed."""
    _passed: int = 0
    """Calls of :meth:`try_again` since the last of them."""
    _full: bool = False
    """Whether the last of them found no space."""
    _journalled: int = 0
    """Journal bytes since the last checkpoint began."""
    _new_journal_file: Callable[[], None] | None = None
    _behind: WriteBehind = field(init=False)

    def __post_init__(self) -> None:
        self._behind = WriteBehind(self.config, self.entry_logs, self.workers, self.commit.fail)

    def on_new_journal_file(self, callback: Callable[[], None]) -> None:
        """See :meth:`Engine.on_new_journal_file`."""
        self._new_journal_file = callback

    def group_logged(self, group: PendingGroup) -> None:
        """A group is durable and in the entry log."""
        self._journalled += group.file_bytes
        if group.log_id:
            self._behind.filled(group.log_id, group.log_offset + group.size)
        if group.file_offset == BLOCK:  # it is the first group of its journal file
            self.commit.spares.prepare(self.commit.groups.file_id)
            if self._new_journal_file is not None:
                self._new_journal_file()
        if self._journalled > self.config.checkpoint_bytes and not self.running:
            self.checkpoint(ignore)

    # -- one checkpoint after the other -------------------------------------------------------------------

    def checkpoint(self, callback: Done, *, collect: bool = False) -> None:
        """See :meth:`Engine.checkpoint`. Calls during a checkpoint share the next one (K14)."""
        if self.commit.failure is not None:
            return callback(BookieFailedError(f"the disk has failed: {in_words(self.commit.failure)}"))
        self._waiting.append(callback)
        self._collect |= collect
        return self._begin_next()

    def cover_moves(self, emptied: Iterable[int], callback: Done) -> None:
        """A checkpoint that writes the places of entries that were moved, and removes the logs that hold none any more.
        The places were moved in the index, and the copies are synced and among the entry logs."""
        self._emptied.update(emptied)
        self.checkpoint(callback)

    def stop(self, callback: Done) -> None:
        """Stop cleanly: write a last group that says so, make a last checkpoint, remove the dirty markers (K22)."""
        self._stopping = True
        self.commit.cut(flags=CLEAN_STOP)

        def covered(error: BaseException | None) -> None:
            if error is not None:
                return callback(error)
            return self.workers.get("checkpoint").submit(self._unmark, lambda _result, failed: callback(failed))

        self.checkpoint(covered)

    def try_again(self, *, writable: bool) -> None:
        """If the last checkpoint failed, make another one: at the first call, then after two, four ... more.

        Args:
            writable: the disk has space. One that found none waits for that, and for some calls more: it makes the
                disk read-only if it fails again.
        """
        if self.problem is None or self.running or self._stopping or self.commit.failure is not None:
            return
        if self._full and not writable:
            return
        self._passed += 1
        first = FULL_RETRY if self._full else 1
        if self._passed >= min(first << (self._failures - 1), RETRY_MAX):
            self.checkpoint(ignore)

    def _unmark(self) -> None:
        unmark(self.disk, dict.fromkeys((self.config.ledger_dir, self.config.journal_dir)))

    def _begin_next(self) -> None:
        if self.running or not self._waiting:
            return
        self.running, self._journalled, self._passed = True, 0, 0
        callbacks, self._waiting = self._waiting, []
        try:
            last = self.commit.cut()
            if self._stopping:
                self.entry_logs.leave_current()
                self.layout.end_all()
            under_way = self._take(last, callbacks)
        except Exception as error:
            self.running = False
            self._failed(error, callbacks)
            self._begin_next()
        else:
            self._step(under_way, None, self._taken)

    def _take(self, last: PendingGroup | None, callbacks: list[Done]) -> _Checkpoint:
        """Take what the checkpoint is to cover: all of it or, with an error, nothing."""
        full = self.entry_logs.full()
        scope = CheckpointScope(self.manifest, self.manifest.next_segment, self.entry_logs.next_log)
        scope.collect, self._collect = self._collect, False
        scope.emptied, self._emptied = self._emptied, set()
        return _Checkpoint(scope, self.ledgers.take_changes(), self.entry_logs.take_dirty(), full, last, callbacks)

    def _taken(self, under_way: _Checkpoint) -> None:
        """Make the scope a snapshot of everything accepted so far, and wait for the groups that hold it: they are
        closed."""
        scope, changes = under_way.scope, under_way.changes
        scope.states = {key: ledger.encode() for key, ledger in changes.ledgers.items()}
        scope.tails = {key: ledger.index.freeze() for key, ledger in changes.ledgers.items() if ledger.index.tail}
        scope.newly_dropped = list(changes.dropped)
        scope.resident, scope.dropped = set(self.ledgers.ledgers.resident), self.ledgers.dropped.copy()
        scope.logs = self.entry_logs.entries()
        scope.emptied.intersection_update(self.entry_logs.logs)
        if scope.collect:
            scope.emptied.update(self.layout.dead_logs(scope.dropped.__contains__))
        scope.rebuild = self.unknowns.index_damaged or self.manifest.rebuild  # a start rebuilds it (K19)
        scope.limbo, scope.quarantined = self.unknowns.limbo, self.unknowns.quarantined
        scope.unreadable = set(self._unreadable)
        scope.clean = self._stopping
        self.commit.when_logged(lambda error: self._step(under_way, error, self._logged))

    def _step(self, under_way: _Checkpoint, error: BaseException | None, step: Callable[[_Checkpoint], None]) -> None:
        """One step of a checkpoint; an error before it or in it ends the checkpoint, and goes no further."""
        try:
            if error is None:
                step(under_way)
            else:
                self._done(under_way, None, error)
        except Exception as raised:
            if under_way.is_over:
                raise
            self._done(under_way, None, raised)

    def _logged(self, under_way: _Checkpoint) -> None:
        """Everything that the checkpoint covers is in the entry logs (K13): hand it to the worker."""
        scope, last, groups = under_way.scope, under_way.last, self.commit.groups
        scope.file_id = last.file_id if last is not None else groups.file_id
        scope.sequence = last.sequence if last is not None else groups.durable
        self.layout.write_out(lambda error: self._step(under_way, error, self._written_out))

    def _written_out(self, under_way: _Checkpoint) -> None:
        """The files of the logs have all of it."""
        scope, logs = under_way.scope, self.entry_logs.logs
        scope.next_file = self.commit.groups.file_id + 1
        scope.spares = max(self.config.journal_spares - len(self.commit.spares.names), 0)
        dirty = {key: scope.logs[key].end for key in under_way.dirty_logs if key not in scope.emptied}
        scope.unsynced = self.layout.unsynced(dirty)
        scope.new_names = not self.layout.syncs_names and not scope.logs.keys() <= self.manifest.logs.keys()
        for log_id, end in under_way.full_logs.items():
            if log_id in scope.logs and log_id not in scope.emptied and self.layout.has_writer(log_id):
                scope.finish[log_id] = (self.layout.writer_of(log_id), end, logs[log_id].usage)
                if logs[log_id].remembered:
                    scope.remembered.add(log_id)
        self.workers.get("checkpoint").submit(
            lambda: run_checkpoint(self.disk, self.config, scope),
            lambda covered, failed: self._done(under_way, covered, failed),
        )

    def _done(self, under_way: _Checkpoint, covered: CheckpointResult | None, error: BaseException | None) -> None:
        self.running, under_way.is_over = False, True
        if covered is None or error is not None:
            self._undo(under_way)
            if isinstance(error, OSError) and self.space.no_space(error):
                self._waiting[:0] = under_way.callbacks  # the reserve is gone, so there may be space now
            else:
                self._failed(error or BookieFailedError("the checkpoint ended without a result"), under_way.callbacks)
        elif self._adopted(under_way, covered):
            self.problem, self._failures = None, 0
            for callback in under_way.callbacks:
                callback(None)
        self._begin_next()

    def _adopted(self, under_way: _Checkpoint, covered: CheckpointResult) -> bool:
        """Use the files of a checkpoint. An error half-way leaves an index that nobody can trust: the disk has failed,
        and a start reads what is in the files."""
        try:
            self._adopt(under_way.scope, covered)
        except Exception as error:
            self.commit.fail(error)
            self._failed(error, under_way.callbacks)
            return False
        return True

    def _undo(self, under_way: _Checkpoint) -> None:
        """Give everything back, so that the next checkpoint covers it."""
        self.entry_logs.give_back_dirty(under_way.dirty_logs)
        self.ledgers.give_back(under_way.changes)
        scope = under_way.scope
        self._collect |= scope.collect
        self._emptied |= scope.emptied
        if scope.published:  # the manifest on the disk may name the segment (K3)
            self.manifest = replace(self.manifest, next_segment=scope.segment_id + SEGMENTS)

    def _failed(self, error: BaseException, callbacks: list[Done]) -> None:
        """The checkpoint failed: mark and journal stay as they were. A failed sync is final."""
        told = error
        self._note(error)
        transient = isinstance(error, OSError) and error.errno in TRANSIENT
        if transient and isinstance(error, OSError) and error.errno in NO_SPACE:
            self.set_state(EngineState.READ_ONLY, f"a checkpoint found no space: {in_words(error)}; free some space")
            told = DiskFullError(f"a checkpoint found no space: {in_words(error)}")
        final = isinstance(error, (SyncFailedError, InvariantError)) or (isinstance(error, OSError) and not transient)
        if final:
            self.commit.fail(error)
        for callback in callbacks:
            callback(told)

    def _note(self, error: BaseException) -> None:
        """Remember why, for people; tell the first of several failures that have one reason."""
        reason, self._failures = in_words(error), self._failures + 1
        self._full = isinstance(error, OSError) and error.errno in NO_SPACE
        if reason != self.problem:
            foreseen = isinstance(error, (OSError, BookKeeperError)) and not isinstance(error, InvariantError)
            self.report_problem(
                f"a checkpoint of {self.config.ledger_dir} failed: {reason}; nothing is lost, the journal keeps "
                "everything, and it is tried again",
                None if foreseen else error,
            )
        self.problem = reason

    def sentences(self) -> tuple[str, ...]:
        """What keeps the journal from being covered, for people."""
        if self.problem is None:
            return ()
        count = "the last checkpoint" if self._failures <= 1 else f"the last {counted(self._failures, 'checkpoint')}"
        return (
            f"{count} of {self.config.ledger_dir} failed: {self.problem}; nothing is lost, but the journal grows and "
            "the next start takes longer, until one succeeds: it is tried again",
        )

    def _adopt(self, scope: CheckpointScope, covered: CheckpointResult) -> None:
        """The checkpoint is complete: use its files instead of what was frozen."""
        self.stats.checkpoints += 1
        self.stats.merges += bool(covered.merged)
        self.manifest = covered.manifest
        self._unreadable = scope.unreadable
        self.unknowns.quarantine(scope.quarantined)
        self.commit.spares.add(covered.spares)
        self.layout.synced({key: scope.logs[key].end for key in scope.unsynced})
        self.entry_logs.mark_finished(scope.finish)
        self.layout.finished(scope.finish)
        self.ledgers.ledgers.adopt(covered.merged, covered.table, covered.extents, scope.tails)
        self.ledgers.covered()
        closing = self.places.release_segments(covered.replaced)
        for key in covered.removed_logs:
            self.stats.removed_logs += 1
            self.stats.removed_bytes += 0 if key in scope.emptied else scope.logs[key].end
            self.layout.removed(key)
            if (file := self.entry_logs.removed(key)) is not None:
                closing.append(file)
        self.layout.close(closing)
        reads = self.workers.get("read")
        if gone := [segment_name(key) for key in sorted(covered.replaced)]:
            reads.submit(lambda: remove_files(self.disk, self.config.ledger_dir, gone), ignore)
