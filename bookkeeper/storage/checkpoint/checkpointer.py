"""What happens to a disk besides adds and reads: checkpoints, space, spare journal files, the clean stop.

The loop's side: it takes snapshots and adopts results; the jobs are :mod:`~bookkeeper.storage.checkpoint.checkpoint`'s.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TypeVar

from bookkeeper.errors import BookieFailedError, CorruptionError, DiskFullError, InvariantError
from bookkeeper.ids import IdRanges
from bookkeeper.seams import Disk, Lock, Worker, Workers
from bookkeeper.storage.checkpoint.checkpoint import CheckpointResult, CheckpointScope, run_checkpoint
from bookkeeper.storage.checkpoint.manifest import Manifest
from bookkeeper.storage.config import StorageConfig
from bookkeeper.storage.durable_file import BLOCK, NO_SPACE, TRANSIENT, SyncFailedError, create_file, remove_files
from bookkeeper.storage.entry_log.entry_logs import EntryLogs
from bookkeeper.storage.entry_log.write_behind import WriteBehind
from bookkeeper.storage.index.index_segment import segment_name
from bookkeeper.storage.journal.group_commit import GroupCommit
from bookkeeper.storage.journal.group_writer import GroupWriter, PendingGroup
from bookkeeper.storage.journal.journal_format import CLEAN_STOP, padded
from bookkeeper.storage.ledger_descriptor import LedgerDescriptor
from bookkeeper.storage.reads.entry_reader import EntryReader
from bookkeeper.storage.results import Done, EngineState, EngineStats
from bookkeeper.storage.start.replay import DIRTY

T = TypeVar("T")
RESERVE = "reserve"
_MADE_AHEAD = 1 << 63
"""Names of spares that were made in advance do not meet those of recycled files."""


class _InlineWorker:
    """Runs jobs at once, on the caller's thread."""

    def submit(self, job: Callable[[], T], done: Callable[[T | None, BaseException | None], None]) -> None:
        try:
            result = job()
        except Exception as error:  # reported, as every worker does
            return done(None, error)
        return done(result, None)

    def call(self, job: Callable[[], T]) -> Awaitable[T]:
        raise NotImplementedError("nobody waits here")

    def close(self) -> None:
        pass


class StorageWorkers:
    """The engine's workers, each made when first needed."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._made: dict[str, Worker] = {}
        self.inline = False

    def get(self, name: str) -> Worker:
        if self.inline:
            return _InlineWorker()
        if (worker := self._made.get(name)) is None:
            worker = self._made[name] = self._workers.worker(name)
        return worker

    def close(self) -> None:
        made, self._made = self._made, {}
        for worker in made.values():
            worker.close()


@dataclass(slots=True)
class Checkpointer:
    """Owned by the loop's thread."""

    config: StorageConfig
    disk: Disk
    storage_workers: StorageWorkers
    commit: GroupCommit
    reader: EntryReader
    entry_logs: EntryLogs
    journal: GroupWriter
    states: dict[int, LedgerDescriptor]
    dropped: IdRanges
    dirty: dict[int, LedgerDescriptor]
    stats: EngineStats
    manifest: Manifest
    locks: list[Lock]
    limbo: str | None
    quarantined: list[str]
    set_state: Callable[[EngineState, str], None]
    suspect: bool = False
    """Index damage was met in this life: negatives are unknown until the restart has rebuilt it."""
    unreadable: set[int] = field(default_factory=set)
    """Index segments that merges of this life could not read."""
    newly_dropped: list[tuple[int, int]] = field(default_factory=list)
    rolled: Callable[[], None] = lambda: None
    """Called with the first group of each journal file."""
    _wanted: list[Done] = field(default_factory=list)
    _collect: bool = False
    running: bool = False
    """A checkpoint is under way."""
    _stopping: bool = False
    _since: int = 0
    """Journal bytes since the last checkpoint began."""
    _has_reserve: bool = False
    _making: bool = False
    _behind: WriteBehind = field(init=False)

    def __post_init__(self) -> None:
        self._behind = WriteBehind(
            self.config, self.entry_logs, lambda: self.storage_workers.get("checkpoint"), self.commit.fail
        )

    def begin(self) -> None:
        """Blocks; part of the start."""
        self._has_reserve = self.disk.exists(self._reserve)
        if self.config.reserve_bytes and not self._has_reserve:
            if self.disk.space(self.config.ledger_dir).free > 2 * self.config.reserve_bytes:
                try:
                    self._make_reserve()
                    self._has_reserve = True
                except OSError as error:
                    self.set_state(EngineState.READ_ONLY, f"no reserve: {error}")
            else:
                self.set_state(EngineState.READ_ONLY, "too little space for the reserve")
        else:
            self._judge_space()

    # -- checkpoints --------------------------------------------------------------------------------------

    def group_covered(self, group: PendingGroup) -> None:
        """After each group."""
        self._since += padded(group.size)
        self._behind.covered(group)
        if group.file_offset == BLOCK:
            self._make_spare()
            self.rolled()
        if self._since > self.config.checkpoint_bytes and not self.running:
            self.checkpoint(_nothing)

    def checkpoint(self, callback: Done, *, collect: bool = False) -> None:
        """See :meth:`Engine.checkpoint`. One at a time; those asked for meanwhile become the next one (K14)."""
        if self.commit.dead is not None:
            return callback(BookieFailedError(f"the disk has failed: {self.commit.dead}"))
        self._wanted.append(callback)
        self._collect |= collect
        return self._next_checkpoint()

    def _next_checkpoint(self) -> None:
        if self.running or not self._wanted:
            return
        self.running, self._since = True, 0
        callbacks, self._wanted = self._wanted, []
        last = self.commit.cut()
        if self._stopping:
            self.entry_logs.current = 0
        taken = dict(self.dirty)
        self.dirty.clear()
        snap = self._snapshot(taken)
        dirty_logs = {key: log for key, log in self.entry_logs.logs.items() if log.dirty and log.end > BLOCK}
        for log in dirty_logs.values():
            log.dirty = False
        dropped, self.newly_dropped = self.newly_dropped, []

        def ready(error: BaseException | None) -> None:
            if error is not None:
                return done(None, error)
            snap.file_id = last.file_id if last is not None else self.commit.file_id
            snap.sequence = last.sequence if last is not None else self.commit.durable
            snap.next_file = self.commit.file_id + 1
            snap.spares = max(self.config.journal_spares - len(self.commit.spares), 0)
            for key, log in dirty_logs.items():
                assert log.file is not None
                snap.unsynced[key] = log.file
            for key in snap.logs:
                log = self.entry_logs.logs[key]
                if not log.finished and key != self.entry_logs.current and log.file is not None and key in ends:
                    snap.finish[key] = (log.file, ends[key], log.usage)
            return self.storage_workers.get("checkpoint").submit(
                lambda: run_checkpoint(self.disk, self.config, snap), done
            )

        ends = {key: log.end for key, log in self.entry_logs.logs.items() if self._may_finish(key)}

        def done(covered: CheckpointResult | None, error: BaseException | None) -> None:
            self.running = False
            if covered is None or error is not None:
                for log in dirty_logs.values():
                    log.dirty = True
                self.newly_dropped[:0] = dropped
                if snap.published:  # the next try must not touch the segment that the manifest on disk may name (K3)
                    self.manifest = replace(self.manifest, next_segment=snap.segment_id + 1)
                self._give_back(taken)
                self._collect |= snap.collect
                if isinstance(error, OSError) and self.no_space(error):
                    self._wanted[:0] = callbacks  # the reserve is given up: there may be room now
                else:
                    self._failed(error or BookieFailedError("no result"), callbacks)
            else:
                self._adopt(snap, covered)
                for callback in callbacks:
                    callback(None)
            self._next_checkpoint()

        self.commit.when_logged(ready)

    def _may_finish(self, log_id: int) -> bool:
        """Nothing more is given out in this log, and it can be written to."""
        log = self.entry_logs.logs[log_id]
        return log_id != self.entry_logs.current and not log.finished and log.written

    def _snapshot(self, taken: dict[int, LedgerDescriptor]) -> CheckpointScope:
        """Everything accepted so far; the groups that hold it are closed."""
        snap = CheckpointScope(self.manifest, self.manifest.next_segment, self.entry_logs.next_log)
        snap.states = {key: state.encode() for key, state in taken.items()}
        snap.tails = {key: state.index.freeze() for key, state in taken.items() if state.index.tail}
        snap.newly_dropped = list(self.newly_dropped)
        snap.alive, snap.dropped = set(self.states), self.dropped.copy()
        snap.logs = {key: log.entry() for key, log in self.entry_logs.logs.items() if log.end > BLOCK}
        snap.collect, self._collect = self._collect, False
        snap.rebuild = self.suspect or self.manifest.rebuild  # only a start can take that back (K19)
        snap.limbo, snap.quarantined, snap.unreadable = self.limbo, list(self.quarantined), set(self.unreadable)
        snap.clean = self._stopping
        return snap

    def _adopt(self, snap: CheckpointScope, covered: CheckpointResult) -> None:
        """The new files are in place: what was frozen is now in them."""
        self.stats.checkpoints += 1
        self.stats.merges += bool(covered.merged)
        self.manifest = covered.manifest
        self.unreadable = snap.unreadable
        self.quarantined += [place for place in snap.quarantined if place not in self.quarantined]
        self.commit.spares.extend(covered.spares)
        for key, entry in covered.manifest.logs.items():
            log = self.entry_logs.logs[key]
            if entry.finished and not log.finished:
                log.finished, log.usage = True, {}
        for key, state in self.states.items() if covered.merged else self._of(snap):
            new = covered.extents.get(key, [])
            if covered.merged:
                state.index.replace(covered.merged, new)
            else:
                state.index.add(new)
            if key in snap.tails:
                state.index.frozen = None
        closing = [self.reader.segments.pop(key) for key in covered.merged if key in self.reader.segments]
        for key in covered.removed_logs:
            self.stats.removed_logs += 1
            if (log_file := self.entry_logs.logs.pop(key).file) is not None:
                closing.append(log_file)
        for file in closing:  # behind the reads that are under way
            self.storage_workers.get("read").submit(file.close, _ignore)
        if gone := [segment_name(key) for key in sorted(covered.merged)]:
            self.storage_workers.get("read").submit(
                lambda: remove_files(self.disk, self.config.ledger_dir, gone), _ignore
            )

    def _of(self, snap: CheckpointScope) -> list[tuple[int, LedgerDescriptor]]:
        return [(key, self.states[key]) for key in snap.tails if key in self.states]

    def _give_back(self, taken: dict[int, LedgerDescriptor]) -> None:
        for key, state in taken.items():
            if self.states.get(key) is state:
                state.index.thaw()
                self.dirty.setdefault(key, state)

    def _failed(self, error: BaseException, callbacks: list[Done]) -> None:
        """K16: the mark stays, and so does the journal. A failed sync is final (K23)."""
        told = error
        transient = isinstance(error, OSError) and error.errno in TRANSIENT
        if transient and isinstance(error, OSError) and error.errno in NO_SPACE:
            self.set_state(EngineState.READ_ONLY, f"checkpoint: {error}")
            told = DiskFullError(f"checkpoint: {error}")
        final = isinstance(error, (SyncFailedError, InvariantError)) or (isinstance(error, OSError) and not transient)
        if final:
            self.commit.fail(error)
        for callback in callbacks:
            callback(told)

    def index_damaged(self, error: CorruptionError) -> None:
        """An index page is not what was written: unknown until the next start has rebuilt the index (K19, B5)."""
        self.suspect = True
        if str(error) not in self.quarantined:  # it is met again with every read
            self.quarantined.append(str(error))

    # -- space --------------------------------------------------------------------------------------------

    @property
    def _reserve(self) -> str:
        return f"{self.config.ledger_dir}/{RESERVE}"

    def _make_reserve(self) -> None:
        remove_files(self.disk, self.config.ledger_dir, [RESERVE])
        chunk = bytes(min(self.config.reserve_bytes, 1 << 20))
        chunks = [chunk] * (self.config.reserve_bytes // len(chunk))
        try:
            create_file(self.disk, self._reserve, *chunks)
        except OSError:
            remove_files(self.disk, self.config.ledger_dir, [RESERVE])
            raise

    def no_space(self, error: OSError) -> bool:
        """A group found no space: give the reserve up (K26). True if that may have helped."""
        if error.errno not in NO_SPACE:
            return False
        self.set_state(EngineState.READ_ONLY, str(error))
        had, self._has_reserve = self._has_reserve, False
        return had and give_up_reserve(self.config, self.disk)

    def check_space(self) -> None:
        """See :meth:`Engine.check_space`."""
        if self.commit.stuck is not None:
            self.commit.start()
            return
        self._judge_space()

    def _judge_space(self) -> None:
        try:
            free = self.disk.space(self.config.ledger_dir).free
        except OSError as error:
            return self.set_state(EngineState.READ_ONLY, f"the free space cannot be told: {error}")
        reserve = self.config.reserve_bytes
        if not reserve or (self._has_reserve and free >= reserve):
            return self.set_state(EngineState.WRITABLE, "there is space")
        self.set_state(EngineState.READ_ONLY, f"{free} bytes are free")
        if not self._has_reserve and free > 2 * reserve and not self._making:
            self._making = True
            self.storage_workers.get("checkpoint").submit(self._make_reserve, self._reserve_made)
        return None

    def _reserve_made(self, _result: None, error: BaseException | None) -> None:
        self._making = False
        if isinstance(error, SyncFailedError):
            self.commit.fail(error)
        elif error is None:
            self._has_reserve = True
            self._judge_space()

    def _make_spare(self) -> None:
        """Have a zeroed journal file ready before the present one is full (K11)."""
        if self.commit.spares or not self.config.journal_spares or self.storage_workers.inline:
            return
        number = _MADE_AHEAD | self.commit.file_id

        def done(name: str | None, error: BaseException | None) -> None:
            if name is not None:
                self.commit.spares.append(name)
            elif isinstance(error, SyncFailedError):
                self.commit.fail(error)

        self.storage_workers.get("checkpoint").submit(lambda: self.journal.make_spare(number), done)

    # -- the end ------------------------------------------------------------------------------------------

    def close(self, callback: Done) -> None:
        """Clean stop: a last group that says so, a last checkpoint, then the markers go (K22)."""
        if self.commit.dead is not None:
            self._let_go(None)
            return callback(BookieFailedError(f"the disk has failed: {self.commit.dead}"))
        self._stopping = True
        self.commit.cut(flags=CLEAN_STOP)

        def covered(error: BaseException | None) -> None:
            if error is not None:
                self._let_go(error)
                return callback(error)
            return self.storage_workers.get("checkpoint").submit(self._unmark, unmarked)

        def unmarked(_result: None, error: BaseException | None) -> None:
            self._let_go(error)
            callback(error)

        return self.checkpoint(covered)

    def _unmark(self) -> None:
        for directory in dict.fromkeys((self.config.ledger_dir, self.config.journal_dir)):
            remove_files(self.disk, directory, [DIRTY])

    def _let_go(self, error: BaseException | None) -> None:
        """Close files, end the workers, unlock. A file that cannot even be closed keeps nobody waiting: what is in it
        was synced, or was said not to be."""
        self.storage_workers.close()
        files = [log.file for log in self.entry_logs.logs.values() if log.file is not None]
        files += self.reader.segments.values()
        for close in (self.journal.close, *(file.close for file in files)):
            with suppress(OSError):
                close()
        for lock in self.locks:
            lock.release()
        self.set_state(EngineState.CLOSED, str(error) if error is not None else "clean stop")


def give_up_reserve(config: StorageConfig, disk: Disk) -> bool:
    """Unlink the reserve file (K26). False if there is none, or the disk does not even do that."""
    try:
        if not disk.exists(f"{config.ledger_dir}/{RESERVE}"):
            return False
        disk.unlink(f"{config.ledger_dir}/{RESERVE}")
    except OSError:
        return False
    return True


def _nothing(_error: BaseException | None) -> None:
    pass


def _ignore(_result: object, _error: BaseException | None) -> None:
    pass
