"""One compaction, step by step: the shell around ``CompactionSchedule``. On the loop's thread; files are the checkpoint
worker's.

The order makes it safe:

1. The id of the target is reserved, and a checkpoint covers that. A start after a crash then knows that the target is
   left over: nothing in it is the only copy of anything.
2. Piece by piece, the records of a source are read and verified, and those that live are copied to the target.
3. The target is synced. From now on it is one of the entry logs.
4. The places of the copied entries are moved in the index, unless they have changed meanwhile.
5. A checkpoint writes the new places, and its manifest names the target and not the sources. Then they are unlinked.

A target takes what lives in several sources, up to the size of an entry log. When something goes wrong in a source, its
copies are left out and it stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from bookkeeper.errors import BookieFailedError, CorruptionError, in_words
from bookkeeper.storage.base.disk_state import DiskState
from bookkeeper.storage.base.durable_file import BLOCK, TRANSIENT, SyncFailedError
from bookkeeper.storage.base.results import Done, EngineStats, ignore
from bookkeeper.storage.base.workers import StorageWorkers
from bookkeeper.storage.checkpoint.checkpointer import Checkpointer
from bookkeeper.storage.compaction.chunk import Chunk, LedgerRecords, UnindexedRecordsError, living
from bookkeeper.storage.compaction.log_copy import CompactionFiles, CopiedRecords
from bookkeeper.storage.compaction.schedule import CompactionKind, CompactionSchedule, LogUse
from bookkeeper.storage.disk_space import DiskSpace
from bookkeeper.storage.entry_log.entry_log_file import Usage
from bookkeeper.storage.entry_log.entry_logs import EntryLogs
from bookkeeper.storage.index.ledger_descriptor import StateRecordKind
from bookkeeper.storage.index.moved_entries import MovedEntries
from bookkeeper.storage.ledgers.ledger_table import LedgerTable
from bookkeeper.storage.ledgers.unknowns import Unknowns
from bookkeeper.storage.reads.entry_places import NONE_HELD, EntryPlaces, Held, PageMissing
from bookkeeper.storage.updates.ledger_updates import LedgerUpdates

T = TypeVar("T")
MOVES_MAX = 1 << 20
"""Copied entries whose places are kept in memory until they are moved."""
_MOVES_A_TURN = 32
"""Parts of ledgers that are moved in one turn of the loop."""
Survey = Callable[[Callable[["list[LogUse] | BaseException"], None]], None]


@dataclass(slots=True)
class _Source:
    use: LogUse
    end: int
    at: int = BLOCK
    copied: int = 0
    """Bytes in the target that are not settled yet."""
    total_copied: int = 0
    entries: int = 0
    """Entries in ``moves``."""
    moves: list[MovedEntries] = field(default_factory=list)
    usage: Usage = field(default_factory=dict)


@dataclass(slots=True)
class _Target:
    log_id: int
    end: int = BLOCK
    entries: int = 0
    moves: list[MovedEntries] = field(default_factory=list)
    usage: Usage = field(default_factory=dict)
    emptied: dict[int, int] = field(default_factory=dict)
    """The sources of which everything that lives is in targets -> bytes that their removal wins."""
    taken_in: bool = False
    """Whether it is one of the entry logs."""


@dataclass(slots=True)
class CompactionSteps:
    """Owned by the loop's thread. One run at a time; ``schedule.running`` says whether there is one."""

    schedule: CompactionSchedule
    files: CompactionFiles
    workers: StorageWorkers
    entry_logs: EntryLogs
    ledgers: LedgerTable
    places: EntryPlaces
    updates: LedgerUpdates
    unknowns: Unknowns
    checkpointer: Checkpointer
    space: DiskSpace
    state: DiskState
    stats: EngineStats
    fail: Callable[[BaseException], None]
    """Called when a sync has failed, which is final (K23)."""
    found_damage: Callable[[int], None]
    """Called with an entry log that cannot be read to its end: of which ledgers entries are lost, a scrub finds out."""
    found_unindexed: Callable[[Iterable[int]], None]
    """Called with ledgers that have records which the index does not know."""
    monotonic: Callable[[], float]
    call_later: Callable[[float, Callable[[], None]], object] | None
    log_bytes: int
    """Size of a target."""
    _ended: Done | None = None
    _source: _Source | None = None
    _target: _Target | None = None
    _held: Callable[[], None] | None = None
    """What goes on when the compaction is resumed."""

    def begin(self, survey: Survey, ended: Done) -> None:
        """Make a run, which the schedule has begun. ``ended(None)`` when it is over; else with why it was ended."""
        self._ended = ended

        def surveyed(uses: list[LogUse] | BaseException) -> None:
            self._step(lambda: self._surveyed(uses))

        if self.unknowns.index_damaged:
            self._end("the index is damaged; the next start rebuilds it")
        else:
            survey(surveyed)

    def go_on(self) -> None:
        """The schedule was resumed."""
        held, self._held = self._held, None
        if held is not None:
            self._step(held)

    def stop(self) -> None:
        """The disk is being closed: nothing goes on. Jobs of the worker that were submitted end before it does."""
        if self.schedule.running is not None:
            self._end("the disk is closing")

    # -- a run --------------------------------------------------------------------------------------------

    def _surveyed(self, uses: list[LogUse] | BaseException) -> None:
        if isinstance(uses, BaseException):
            raise uses
        for use in uses:
            if use.unreadable is not None and use.log_id not in self.schedule.left:
                self._leave(use.log_id, use.unreadable)
        taken = self.schedule.choose(uses)
        dead = any(not use.filling and not use.live and use.unreadable is None for use in uses)
        if not taken and not dead:
            return self._end(None)
        self._target = _Target(self.entry_logs.reserve())
        return self.checkpointer.checkpoint(self._then(self._next_source), collect=True)

    def _next_source(self) -> None:
        target = self._target
        assert target is not None and self._source is None
        if target.entries >= MOVES_MAX:
            return self._settle(self._next_source)
        use = self.schedule.next_log(self.monotonic(), self.space.room())
        if use is None:
            return self._settle(lambda: self._end(None))
        if (log := self.entry_logs.logs.get(use.log_id)) is None:
            return self._next_source()  # it was collected meanwhile
        self._source = _Source(use, log.end)
        if target.end > BLOCK and target.end + use.live > self.log_bytes:
            return self._settle(self._open)
        return self._open()

    def _open(self) -> None:
        source = self._source
        assert source is not None
        self._work(lambda: self.files.open_source(source.use.log_id), lambda _none: self._read())

    def _read(self) -> None:
        if self.schedule.suspended:
            self._held = self._read
            return None
        source, target = self._source, self._target
        assert source is not None and target is not None
        if source.at >= source.end:
            return self._source_done()
        if target.entries + source.entries >= MOVES_MAX:
            self._take_copies()
            return self._settle(self._read)
        log_id, at, end = source.use.log_id, source.at, source.end
        return self._work(
            lambda: self.files.read(log_id, at, end), lambda chunk: self._sort_out(chunk, 0, [], NONE_HELD)
        )

    def _sort_out(self, chunk: Chunk, begin: int, found: list[LedgerRecords], held: Held) -> None:
        """Find out what lives of a chunk."""
        for at in range(begin, len(chunk.parts)):
            part = chunk.parts[at]
            ledger = self.ledgers.ledgers.peek(part.ledger_id)
            if ledger is None:
                self._require_dropped(part.ledger_id)
                continue
            try:
                alive = living(part, partial(self.places.whole_page, ledger, held=held))
            except PageMissing as missing:
                return self._load(missing, held, partial(self._sort_out, chunk, at, found))
            if alive is not None:
                found.append(alive)
        return self._write(chunk, found, [at for at in chunk.states if self._is_needed(*chunk.state(at))])

    def _is_needed(self, ledger_id: int, kind: int, lac: int) -> bool:
        """Whether a state record says what an index that is rebuilt from the logs must learn (K19)."""
        ledger = self.ledgers.ledgers.state_of(ledger_id)
        if ledger is None:
            self._require_dropped(ledger_id)
            assert self._source is not None
            return kind == StateRecordKind.DROPPED and ledger_id in self._source.use.drops
        return kind != StateRecordKind.EXPLICIT_LAC or lac >= ledger.explicit_lac

    def _require_dropped(self, ledger_id: int) -> None:
        if ledger_id not in self.ledgers.dropped:
            text = f"it holds records of ledger {ledger_id}, which the index does not know"
            raise UnindexedRecordsError(ledger_id, text)

    def _write(self, chunk: Chunk, parts: list[LedgerRecords], states: list[int]) -> None:
        source, target = self._source, self._target
        assert source is not None and target is not None
        log_id, offset = target.log_id, target.end + source.copied

        def written(copied: CopiedRecords) -> None:
            source.copied += copied.size
            source.total_copied += copied.size
            source.moves += copied.moves
            source.entries += sum(len(moved.new) for moved in copied.moves)
            _add_up(source.usage, copied.usage)
            count, source.at = chunk.end - source.at + copied.size, chunk.end
            self._later(self.schedule.pause_s(count, self.monotonic()), self._read)

        self._work(lambda: self.files.write(log_id, offset, chunk, parts, states), written)

    def _source_done(self) -> None:
        source, target = self._source, self._target
        assert source is not None and target is not None
        self._take_copies()
        target.emptied[source.use.log_id] = source.end - source.total_copied
        self._source = None
        self._work(self.files.close_source, lambda _none: self._next_source())

    def _take_copies(self) -> None:
        """What was copied of the source is good: it belongs to the target from now on."""
        source, target = self._source, self._target
        assert source is not None and target is not None
        target.end += source.copied
        target.entries += source.entries
        target.moves += source.moves
        _add_up(target.usage, source.usage)
        source.copied, source.entries, source.moves, source.usage = 0, 0, [], {}

    # -- from copies to places ----------------------------------------------------------------------------

    def _settle(self, then: Callable[[], None]) -> None:
        """Make the copies durable, move the places, cover that, and have the sources removed. Then go on."""
        target = self._target
        assert target is not None
        if target.end > BLOCK:
            return self._work(self.files.sync, lambda _none: self._take_in(target, then))

        def discarded(_none: None) -> None:
            if target.emptied:
                self._cover(target, then)
            else:
                then()

        return self._work(lambda: self.files.discard(target.log_id), discarded)

    def _take_in(self, target: _Target, then: Callable[[], None]) -> None:
        self.entry_logs.written_aside(target.log_id, self.files.hand_over(), target.end, target.usage)
        target.taken_in = True
        self._move(target, iter(target.moves), None, then, NONE_HELD)

    def _move(
        self,
        target: _Target,
        rest: Iterator[MovedEntries],
        moved: MovedEntries | None,
        then: Callable[[], None],
        held: Held,
    ) -> None:
        """Move the places of ``moved`` and of the rest, a few in a turn."""
        for _ in range(_MOVES_A_TURN):
            if moved is None and (moved := next(rest, None)) is None:
                return self._cover(target, then)
            try:
                self.updates.move(moved, held)
            except PageMissing as missing:
                return self._load(missing, held, partial(self._move, target, rest, moved, then))
            moved, held = None, NONE_HELD
        return self._later(0.0, partial(self._move, target, rest, None, then, NONE_HELD))

    def _cover(self, target: _Target, then: Callable[[], None]) -> None:
        copied, emptied = target.end - BLOCK, target.emptied
        self._target = _Target(self.entry_logs.reserve())  # covered by the same checkpoint

        def covered() -> None:
            self.stats.compacted_logs += len(emptied)
            self.stats.compaction_copied_bytes += copied
            self.stats.compaction_reclaimed_bytes += sum(emptied.values())
            then()

        self.checkpointer.cover_moves(emptied, self._then(covered))

    # -- when something goes wrong ------------------------------------------------------------------------

    def _step(self, step: Callable[[], None]) -> None:
        """One step of the run. An error ends the run, or leaves a log as it is; it goes no further."""
        if self.schedule.running is None:
            return
        if self.state.closing or self.checkpointer.commit.failure is not None:
            self._end("the disk is closing, or has failed")
            return
        try:
            step()
        except Exception as error:
            self._trouble(error)

    def _work(self, job: Callable[[], T], then: Callable[[T], None]) -> None:
        """Have the worker do it, then go on. A job that finds no space is repeated if the reserve gives some."""

        def done(result: T | None, error: BaseException | None) -> None:
            if isinstance(error, OSError) and self.space.no_space(error):
                self._step(lambda: self._work(job, then))
            elif error is not None:
                self._step(lambda: self._trouble(error))
            else:
                self._step(lambda: then(result))  # type: ignore[arg-type]

        self.workers.get("checkpoint").submit(job, done)

    def _then(self, step: Callable[[], None]) -> Done:
        """What a checkpoint calls."""

        def done(error: BaseException | None) -> None:
            self._step(step if error is None else lambda: self._trouble(error))

        return done

    def _load(self, missing: PageMissing, held: Held, again: Callable[[Held], None]) -> None:
        """Have an index page read, then go on with it."""

        def failed(error: BaseException | None) -> None:
            self._step(lambda: self._trouble(error or BookieFailedError("an index page could not be read")))

        self.places.load(missing, held, lambda pages: self._step(lambda: again(pages)), failed)

    def _later(self, seconds: float, step: Callable[[], None]) -> None:
        if self.call_later is None:
            self._work(lambda: None, lambda _none: step())
        else:
            self.call_later(seconds, lambda: self._step(step))

    def _trouble(self, error: BaseException) -> None:
        """Damage, and a log that cannot be read, leave that log as it is. Other errors end the run; whole copies are
        used."""
        if isinstance(error, SyncFailedError):
            self.fail(error)
            return self._end(str(error))
        source, self._source = self._source, None
        passes = isinstance(error, OSError) and error.errno in TRANSIENT
        moving = self._target is not None and self._target.taken_in
        about_source = isinstance(error, (CorruptionError, OSError)) and not passes and not moving
        if source is not None and about_source and not self.unknowns.index_damaged:
            if source.use.log_id in self.entry_logs.logs:  # else it was collected meanwhile
                self._leave(source.use.log_id, str(error) if isinstance(error, CorruptionError) else in_words(error))
                if isinstance(error, UnindexedRecordsError):
                    self.found_unindexed([error.ledger_id])
            return self._work(self.files.close_source, lambda _none: self._next_source())
        if source is not None and passes and self._target is not None and self._target.emptied:
            return self._settle(lambda: self._end(in_words(error)))
        return self._end(in_words(error))

    def _leave(self, log_id: int, reason: str) -> None:
        """Something is wrong with a log: it stays, and the place is named (G4)."""
        self.schedule.leave(log_id, reason)
        self.stats.corruptions += 1
        self.unknowns.quarantine([f"log {log_id} is not compacted: {reason}"])
        self.found_damage(log_id)

    def _end(self, error: str | None) -> None:
        """The run is over."""
        is_major = self.schedule.running is CompactionKind.MAJOR
        self.schedule.end(self.monotonic(), error)
        target, self._source, self._target, self._held = self._target, None, None, None
        if not self.state.closing:  # else a start removes what is left over
            worker = self.workers.get("checkpoint")
            worker.submit(self.files.close_source, ignore)
            if target is not None and not target.taken_in:
                worker.submit(partial(self.files.discard, target.log_id), ignore)
        if error is None:
            self.stats.compactions += 1
            self.stats.major_compactions += is_major
        else:
            self.stats.compactions_failed += 1
        ended, self._ended = self._ended, None
        if ended is not None:
            ended(None if error is None else BookieFailedError(f"the compaction has ended: {error}"))


def _add_up(usage: Usage, more: Usage) -> None:
    for ledger_id, (size, records) in more.items():
        row = usage.setdefault(ledger_id, [0, 0])
        row[0] += size
        row[1] += records
