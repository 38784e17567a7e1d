"""Group commit that clocks itself: while one group is being made durable the next one collects.

The shell around three machines, on the loop's thread: it hands groups to the workers, reports their results to the
machines, and calls those who waited.

    :class:`~bookkeeper.storage.journal.group_sequence.GroupSequence`    which group comes next, who may be answered
    :class:`~bookkeeper.storage.journal.write_schedule.WriteSchedule`    when it is written, and on which thread
    :class:`~bookkeeper.storage.journal.deferred_start.DeferredStart`    when records are written that nobody waits for

A group is answered when it is durable. Then a copier (:mod:`~bookkeeper.storage.shared_log.shared_layout`) brings it to
the entry log: a small one in the same job of the journal's worker, before its answers; a large one by the log's worker
while the next is made durable; one that was written on the loop's own thread a turn later, when its answers are on
their way.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from bookkeeper.errors import BookieFailedError, DiskFullError, in_words
from bookkeeper.seams import Buffer
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.base.durable_file import BLOCK, NO_SPACE, TRANSIENT, SyncFailedError
from bookkeeper.storage.base.results import Done, EngineStats
from bookkeeper.storage.base.workers import StorageWorkers
from bookkeeper.storage.journal.deferred_start import DeferredStart, StartDecision
from bookkeeper.storage.journal.entry_log_layout import EntryLogLayout, GroupCopied
from bookkeeper.storage.journal.group_sequence import UNLOGGED_MAX, GroupSequence
from bookkeeper.storage.journal.group_writer import GroupWriter, GroupWritten
from bookkeeper.storage.journal.inline_sync import InlineSync
from bookkeeper.storage.journal.journal_format import GROUP_HEADER
from bookkeeper.storage.journal.pending_group import GroupBuffer, GroupState, PendingGroup
from bookkeeper.storage.journal.spare_files import SpareFiles
from bookkeeper.storage.journal.write_schedule import NextWrite, WriteSchedule

_FREE_BUFFERS = UNLOGGED_MAX + 3
"""One more than a busy journal has at a time: one collects, one is written, and the others wait for the entry log."""

LAZY_SYNC_S: Final = 0.01
"""A record that is in no hurry waits at most so long for one that somebody waits for."""

# As a global: to look a member up in its class costs ten times as much (CPython 3.11).
_BY_WORKER: Final = NextWrite.BY_WORKER
_ON_LOOP: Final = NextWrite.ON_LOOP
_AT_END_OF_TURN: Final = NextWrite.AT_END_OF_TURN


class CommitObserver(Protocol):
    """Who is told how group commit goes: the parts that ``assembly`` makes."""

    def group_logged(self, group: PendingGroup) -> None:
        """A group is durable and in the entry log; those who wait for it are called next."""

    def no_space(self, error: OSError) -> bool:
        """A group found no space. True: some was freed, try again at once."""

    def no_spare(self) -> None:
        """The journal has begun its last file, and there is no space for another one: only a checkpoint frees one."""

    def journal_failed(self, error: BaseException) -> None:
        """Nothing is written any more."""

    def pressure_changed(self, too_much: bool) -> None:
        """Callers have to pause, or may go on."""


class GroupCommit:
    """Owned by the loop's thread; everything below the journal's door belongs to it."""

    def __init__(
        self,
        config: StorageConfig,
        groups: GroupSequence,
        journal: GroupWriter,
        layout: EntryLogLayout,
        workers: StorageWorkers,
        stats: EngineStats,
        observer: CommitObserver,
        *,
        spares: Sequence[str] = (),
        monotonic: Callable[[], float] | None = None,
        call_later: Callable[[float, Callable[[], None]], object] | None = None,
    ) -> None:
        self._config, self._stats, self._observer = config, stats, observer
        self._workers, self._call_later = workers, call_later
        self._monotonic = monotonic if monotonic is not None else _no_clock
        self._layout = layout
        self.groups = groups
        """Its collected, written and copied groups; to be looked at only."""
        self.journal = journal
        self._copier = layout.copier(groups, self)
        timed = monotonic is not None and call_later is not None
        self.inline = InlineSync(config.inline_sync_us / 1e6 if timed else 0.0)
        self.spares = SpareFiles(spares, journal, workers, config.journal_spares, self.fail, observer.no_spare)
        self._free: list[GroupBuffer] = []
        self._next: GroupBuffer | None = None
        """The memory of the group that begins next, where records are built already."""
        self._schedule = WriteSchedule(
            groups,
            self.inline,
            gap_s=config.journal_gap_ms / 1000 if timed else 0.0,
            split_bytes=config.split_bytes if layout.copies_with_journal else -1,
        )
        self._deferred = DeferredStart(groups, has_turns=call_later is not None)
        self._lazy_group: PendingGroup | None = None
        """The group that is started ``LAZY_SYNC_S`` after its first lazy waiter came."""

    @property
    def busy(self) -> bool:
        """A worker has a group in hand."""
        return self._schedule.busy or self._copier.busy

    @property
    def failure(self) -> BaseException | None:
        """Why nothing will be written any more."""
        return self.groups.failure

    # -- collecting ---------------------------------------------------------------------------------------

    def landing(self, size: int) -> tuple[memoryview, int] | None:
        """See :meth:`Engine.landing`."""
        group = self.groups.collecting
        if group is not None and group.room_for(size):
            return group.buffer.view, GROUP_HEADER + group.size
        if self._next is None:
            self._next = self._buffer(self._config.group_bytes)
        return (self._next.view, GROUP_HEADER) if GROUP_HEADER + size <= self._next.capacity else None

    def is_landing(self, records: Buffer) -> bool:
        """Whether ``records`` is memory that :meth:`landing` may have given."""
        group = self.groups.collecting
        return (group is not None and records is group.buffer.view) or (
            self._next is not None and records is self._next.view
        )

    def add_run(self, ledger_id: int, records: Buffer, begin: int, ends: array[int], i0: int, i1: int) -> array[int]:
        """Copy the records ``i0 .. i1 - 1``, which begin at ``begin`` in ``records``, into the collecting group.

        Returns:
            their places (array('q')).
        """
        size = ends[i1 - 1] - begin
        group = self.groups.collecting
        if group is None or not group.room_for(size):
            group = self._begin_group(size)
        places = group.add_run(ledger_id, records, begin, ends, i0, i1)
        if self.groups.took(size):
            self._observer.pressure_changed(True)
        return places

    def add_record(self, ledger_id: int, data: bytes, *, outlives: bool = False) -> None:
        """The same for one state record.

        Args:
            outlives: it must stay when everything else of its ledger goes.
        """
        group = self.groups.collecting
        if group is None or not group.room_for(len(data)):
            group = self._begin_group(len(data))
        group.add_record(ledger_id, data, outlives=outlives)
        if self.groups.took(len(data)):
            self._observer.pressure_changed(True)

    def _begin_group(self, size: int) -> PendingGroup:
        """A new group takes the place of the collecting one; it has room for ``size`` bytes of records."""
        if self.groups.collecting is not None:
            self._close()
        capacity = max(self._config.group_bytes, size + GROUP_HEADER + BLOCK)
        if self._next is not None and capacity <= self._next.capacity:
            buffer, self._next = self._next, None
        else:
            buffer = self._buffer(capacity)
        return self.groups.collect(buffer, *self._layout.next_place())

    def _buffer(self, capacity: int) -> GroupBuffer:
        return self._free.pop() if self._free and capacity == self._config.group_bytes else GroupBuffer(capacity)

    def cut(self, *, flags: int = 0) -> PendingGroup | None:
        """Close the collecting group; with ``flags`` there is one, if need be an empty one, and it carries them.

        Returns:
            the newest group that is not in the entry logs, if there is any.
        """
        if flags:
            group = self.groups.collecting or self._begin_group(0)
            group.flags |= flags
        self._close()
        return self.groups.newest

    def _close(self) -> None:
        if (group := self.groups.close()) is not None:
            self._layout.group_closed(group)

    # -- waiting ------------------------------------------------------------------------------------------

    def when_durable(self, callback: Done) -> None:
        """See :meth:`Engine.when_durable`."""
        if self.groups.failure is not None:
            return callback(_failed(self.groups.failure))
        if (group := self.groups.newest_not_durable) is None:
            return callback(None)
        group.waiters.append(callback)
        return None if self._schedule.busy else self.start()

    def when_durable_lazily(self, callback: Done) -> None:
        """As :meth:`when_durable`, for what is in no hurry: it is written with what somebody waits for next, by the
        worker after ``LAZY_SYNC_S`` if nobody does, and answered behind those who wait."""
        if self.groups.failure is not None:
            return callback(_failed(self.groups.failure))
        if (group := self.groups.newest_not_durable) is None:
            return callback(None)
        group.lazy_waiters.append(callback)
        if self._call_later is None:
            return None if self._schedule.busy else self.start()
        return self._begin_lazy_wait(group)

    def _begin_lazy_wait(self, group: PendingGroup) -> None:
        if self._lazy_group is None and self._call_later is not None and group.state <= GroupState.CLOSED:
            self._lazy_group = group
            self._call_later(LAZY_SYNC_S, self._lazy_wait_over)

    def _lazy_wait_over(self) -> None:
        group, self._lazy_group = self._lazy_group, None
        if group is not None and group.state <= GroupState.CLOSED:
            self.start()
        elif (newest := self.groups.newest_not_durable) is not None and newest.lazy_waiters:
            self._begin_lazy_wait(newest)

    def when_logged(self, callback: Done) -> None:
        """``callback(None)`` when everything handed in so far is durable and in the entry logs: what a checkpoint
        may cover. Errors as :meth:`when_durable`."""
        if self.groups.failure is not None:
            return callback(_failed(self.groups.failure))
        if (group := self.groups.newest) is None:
            return callback(None)
        group.logged_waiters.append(callback)
        return self.start()

    # -- when a group is written --------------------------------------------------------------------------

    def start(self) -> None:
        """Write the next group, if none is being written and it is time."""
        now = self._monotonic() if self._config.journal_gap_ms else 0.0
        step = self._schedule.next(now, self._copier.stuck)
        if step is _BY_WORKER:
            if self.groups.writing is None:
                if not self.groups.closed:
                    self._close()
                self.groups.number()
            self._submit()
        elif step is _ON_LOOP:
            self._write_here()
        elif step is _AT_END_OF_TURN:
            assert self._call_later is not None
            self._call_later(0, self._turn_ended)
        elif step is NextWrite.COPY_FIRST:
            self._copier.go_on()
        elif step is NextWrite.AFTER_GAP:
            assert self._call_later is not None
            self._call_later(self._schedule.gap_left_s, self._gap_over)

    def _turn_ended(self) -> None:
        self._schedule.turn_ended()
        if self.groups.failure is None:
            self._write_here()

    def _gap_over(self) -> None:
        self._schedule.gap_over()
        self.start()

    def start_soon(self) -> None:
        """The same for records that nobody waits for: by the worker, with as many others as come soon."""
        self._start_when(self._deferred.wanted(self._schedule.busy))

    def _start_when(self, when: StartDecision) -> None:
        if when is StartDecision.NOW:
            self.start()
        elif when is StartDecision.NEXT_TURN:
            assert self._call_later is not None
            self._call_later(0, lambda: self._start_when(self._deferred.turn_over(self._schedule.busy)))

    def _start_next(self) -> None:
        groups = self.groups
        if groups.collecting is None and groups.writing is None and not groups.closed and not self._copier.stuck:
            return
        if groups.is_awaited:
            self.start()
        else:
            self.start_soon()

    # -- writing ------------------------------------------------------------------------------------------

    def _write_here(self) -> None:
        """Make the next group durable on this thread, the loop's, or hand it to the worker after all."""
        groups = self.groups
        self._close()
        group = groups.number()
        files_open = self.journal.has_open(group.file_id) and self._copier.has_open(group.log_id)
        if not self._schedule.fits_loop(group, files_open=files_open):
            self._submit()
            return
        assert self._call_later is not None
        began = self._monotonic()
        try:
            self.journal.make_durable(group, groups.durable)
        except Exception as error:  # judged as a worker's
            self._trouble(error, self._submit)
            return
        group.seconds = self._monotonic() - began
        self._schedule.written_here(group, began)
        self._made_durable()
        self._copier.go_on_here(self._call_later)
        self._answer(groups.answerable(group))

    def _submit(self) -> None:
        """Hand the group that is to be written to the journal's worker."""
        group, began = self.groups.writing, self._monotonic()
        assert group is not None
        spare = self.spares.names[0] if self.spares.names else None
        below = self.groups.durable
        worker = self._workers.get("journal")
        if self._schedule.handed_over(group, began):
            worker.submit(lambda: self._write_both(group, below, spare, began), self._written_both)
        else:
            worker.submit(lambda: self._write(group, below, spare, began), self._written)

    def _write(self, group: PendingGroup, below: int, spare: str | None, began: float) -> GroupWritten:
        """On the worker."""
        written = self.journal.write(group, below, spare)
        written.seconds = self._monotonic() - began
        return written

    def _write_both(
        self, group: PendingGroup, below: int, spare: str | None, began: float
    ) -> tuple[GroupWritten, GroupCopied | Exception]:
        """On the worker, while the log's has nothing."""
        written = self._write(group, below, spare, began)
        try:
            return written, self._copier.copy(group)
        except Exception as error:  # it is durable all the same
            return written, error

    def _written(self, written: GroupWritten | None, error: BaseException | None) -> None:
        self._schedule.handed_back()
        if written is None:
            return self._trouble(error or BookieFailedError("the journal's worker gave no result"), self._submit)
        group = self._journalled(written)
        if not self._copier.stuck:
            self._copier.go_on()
        self._answer(self.groups.answerable(group))
        return self._start_next()

    def _written_both(
        self, both: tuple[GroupWritten, GroupCopied | Exception] | None, error: BaseException | None
    ) -> None:
        self._schedule.handed_back()
        if both is None:
            return self._trouble(error or BookieFailedError("the journal's worker gave no result"), self._submit)
        written, copied = both
        group = self._journalled(written)
        if isinstance(copied, GroupCopied):
            return self.group_copied(copied)
        self._copier.failed_already()
        self._answer(self.groups.answerable(group))
        return self.copy_failed(copied)

    # -- what the workers report --------------------------------------------------------------------------

    def _journalled(self, written: GroupWritten) -> PendingGroup:
        if written.spare_used is not None:
            self.spares.used()
        group = self._made_durable()
        group.seconds = written.seconds
        return group

    def _made_durable(self) -> PendingGroup:
        group = self.groups.made_durable()
        if self.groups.blocked is not None and not self._copier.stuck:
            self.groups.unblock()
        return group

    def group_copied(self, copied: GroupCopied) -> None:
        """The oldest durable group is in the entry log."""
        group = self.groups.made_logged()
        group.seconds += copied.seconds
        self._measure(group)
        if copied.created is not None:
            self._layout.created(group, copied.created)
        self._release(group.buffer)
        self._observer.group_logged(group)
        if group.waiters or group.lazy_waiters:
            self._answer(self.groups.answerable(group))
        if group.logged_waiters:
            self._answer(self.groups.covered(group))
        if self.groups.paused and self.groups.relieved():
            self._observer.pressure_changed(False)
        self._start_next()

    def copy_failed(self, error: BaseException) -> None:
        """The oldest durable group could not be copied into the entry log."""
        self._trouble(error, self._copier.go_on)

    def _trouble(self, error: BaseException, again: Callable[[], None]) -> None:
        """A write failed. What may pass is tried again by ``again`` or on demand, anything else is final."""
        if not isinstance(error, OSError) or isinstance(error, SyncFailedError) or error.errno not in TRANSIENT:
            self.fail(error)
            return
        if self._observer.no_space(error):
            again()
            return
        if self.groups.block(error):
            self._observer.pressure_changed(False)
        kind = DiskFullError if error.errno in NO_SPACE else BookieFailedError
        self._answer(self.groups.everyone(), kind(f"the journal cannot be written for now: {in_words(error)}"))

    def fail(self, error: BaseException) -> None:
        """Nothing is acknowledged any more."""
        if self.groups.fail(error):
            self._observer.journal_failed(error)
            self._answer(self.groups.everyone(), _failed(error))

    def _answer(self, waiters: Sequence[Done], error: BaseException | None = None) -> None:
        for waiter in waiters:
            waiter(error)

    def close(self) -> None:
        """Close the journal's file, when the workers have ended."""
        self.journal.close()

    # -- small things -------------------------------------------------------------------------------------

    def _measure(self, group: PendingGroup) -> None:
        stats, size, took = self._stats, group.size, group.seconds
        self.inline.note(self._schedule.began_at, took, size)
        stats.groups += 1
        stats.records += group.records
        stats.record_bytes += size
        stats.journal_bytes += group.file_bytes
        stats.sync_seconds += took
        stats.sync_summary.observe(took)
        if took > stats.slowest_sync_seconds:
            stats.slowest_sync_seconds = took

    def _release(self, buffer: GroupBuffer) -> None:
        if buffer.capacity == -(-self._config.group_bytes // BLOCK) * BLOCK and len(self._free) < _FREE_BUFFERS:
            self._free.append(buffer)


def _failed(error: BaseException) -> BookieFailedError:
    return BookieFailedError(f"the disk has failed: {in_words(error)}")


def _no_clock() -> float:
    return 0.0
