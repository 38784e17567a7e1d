"""Group commit that clocks itself: while one group is being made durable the next one collects.

The shell around :class:`~bookkeeper.storage.journal.group_sequence.GroupSequence`, on the loop's thread. The machine
says which group comes next and who may be answered; this file hands groups to the workers, reports their results to
the machine, and calls those who waited.

A group is answered when it is durable, and then copied to the entry log
(:mod:`~bookkeeper.storage.journal.group_copier`): a small one in the same job of the journal's worker, a large one by
the log's worker while the next is made durable, one that was written on the loop's own thread a turn later, when its
answers are on their way.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from bookkeeper.errors import BookieFailedError, DiskFullError, in_words
from bookkeeper.seams import Buffer
from bookkeeper.storage.config import StorageConfig
from bookkeeper.storage.durable_file import BLOCK, NO_SPACE, TRANSIENT, SyncFailedError
from bookkeeper.storage.entry_log.entry_log_file import EntryLogWriter
from bookkeeper.storage.entry_log.entry_logs import EntryLogs
from bookkeeper.storage.journal.group_copier import GroupCopied, GroupCopier
from bookkeeper.storage.journal.group_sequence import GroupSequence
from bookkeeper.storage.journal.group_writer import GroupWriter, GroupWritten
from bookkeeper.storage.journal.inline_sync import INLINE_BYTES, InlineSync
from bookkeeper.storage.journal.journal_format import GROUP_HEADER, padded
from bookkeeper.storage.journal.pending_group import GroupBuffer, PendingGroup
from bookkeeper.storage.results import Done, EngineStats
from bookkeeper.storage.workers import StorageWorkers

ALONE: Final = 16
"""After so many groups in a row that one caller waited for, the next caller's is written on the loop's thread at once,
not at the end of the turn: nobody else is expected to join."""

SOON_BYTES: Final = 256 * 1024
"""Records that nobody waits for (W11) are written when there are so many."""

SOON_TURNS: Final = 16
"""They are collected for no more turns of the loop than this."""

_FREE_BUFFERS = 4
_MADE_AHEAD = 1 << 63
"""Added to the numbers of spare files that are made in advance, so that they never meet those of recycled files."""


class CommitObserver(Protocol):
    """Who is told how group commit goes: the engine."""

    def group_logged(self, group: PendingGroup) -> None:
        """A group is durable and in the entry log; those who wait for it are called next."""

    def no_space(self, error: OSError) -> bool:
        """A group found no space. True: some was freed, try again at once (K26)."""

    def journal_failed(self, error: BaseException) -> None:
        """Nothing is written any more (K23)."""

    def pressure_changed(self, too_much: bool) -> None:
        """Callers have to pause, or may go on (P12)."""


class GroupCommit:
    """Owned by the loop's thread; everything below the journal's door belongs to it."""

    def __init__(
        self,
        config: StorageConfig,
        groups: GroupSequence,
        journal: GroupWriter,
        logs: EntryLogWriter,
        entry_logs: EntryLogs,
        workers: StorageWorkers,
        stats: EngineStats,
        observer: CommitObserver,
        *,
        spares: Sequence[str] = (),
        monotonic: Callable[[], float] | None = None,
        call_later: Callable[[float, Callable[[], None]], object] | None = None,
    ) -> None:
        self._config, self._stats, self._observer = config, stats, observer
        self._workers, self._monotonic, self._call_later = workers, monotonic, call_later
        self._entry_logs = entry_logs
        self.groups = groups
        """Its collected, written and copied groups; to be looked at only."""
        self.journal = journal
        self._copier = GroupCopier(groups, logs, workers, monotonic, self)
        timed = monotonic is not None and call_later is not None
        self.inline = InlineSync(config.inline_sync_us / 1e6 if timed else 0.0)
        self._spares = deque(spares)
        self._free: list[GroupBuffer] = []
        self._busy = False
        """The journal's worker has a group in hand, or the end of the turn is awaited to write one."""
        self._started_at = 0.0
        self._gap_timer = False
        self._alone = 0
        """Groups in a row, written on the loop's thread, that one caller waited for."""
        self._soon = 0
        """How many more turns of the loop records that nobody waits for may collect. While it is 0 no turn is
        awaited."""

    @property
    def busy(self) -> bool:
        """A worker has a group in hand."""
        return self._busy or self._copier.busy

    @property
    def failure(self) -> BaseException | None:
        """Why nothing will be written any more."""
        return self.groups.failure

    # -- collecting ---------------------------------------------------------------------------------------

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

    def add_record(self, ledger_id: int, data: bytes) -> None:
        """The same for one state record."""
        group = self.groups.collecting
        if group is None or not group.room_for(len(data)):
            group = self._begin_group(len(data))
        group.add_record(ledger_id, data)
        if self.groups.took(len(data)):
            self._observer.pressure_changed(True)

    def _begin_group(self, size: int) -> PendingGroup:
        """A new group takes the place of the collecting one; it has room for ``size`` bytes of records."""
        if self.groups.collecting is not None:
            self._close()
        group_bytes = self._config.group_bytes
        capacity = max(group_bytes, size + GROUP_HEADER + BLOCK)
        buffer = self._free.pop() if self._free and capacity == group_bytes else GroupBuffer(capacity)
        return self.groups.collect(buffer, *self._entry_logs.next_place())

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
            self._entry_logs.given(group.log_id, group.log_offset + group.size, group.usage)

    # -- waiting ------------------------------------------------------------------------------------------

    def when_durable(self, callback: Done) -> None:
        """See :meth:`Engine.when_durable`."""
        if self.groups.failure is not None:
            return callback(_failed(self.groups.failure))
        if (group := self.groups.newest_not_durable) is None:
            return callback(None)
        group.waiters.append(callback)
        return self.start()

    def when_logged(self, callback: Done) -> None:
        """``callback(None)`` when everything handed in so far is durable and in the entry logs: what a checkpoint
        may cover (K13). Errors as :meth:`when_durable`."""
        if self.groups.failure is not None:
            return callback(_failed(self.groups.failure))
        if (group := self.groups.newest) is None:
            return callback(None)
        group.followers.append(callback)
        return self.start()

    # -- when a group is written --------------------------------------------------------------------------

    def start(self) -> None:
        """Write the next group, if none is being written."""
        groups = self.groups
        if self._busy or groups.failure is not None or self._log_is_behind():
            return
        if groups.writing is None:
            if not groups.has_closed:
                if groups.collecting is None or (self._config.journal_gap_ms and self._wait_for_gap()):
                    return
                if self.inline.on and self._call_later is not None:
                    if self._alone >= ALONE and groups.oldest_unlogged is None:
                        self._write_here()
                        return
                    self._busy = True
                    self._call_later(0, self._write_here)  # at the end of the turn: what arrived in it is one group
                    return
                self._close()
            groups.number()
        self._submit()

    def _log_is_behind(self) -> bool:
        """Whether the journal must wait for the entry log. A copy that is stuck is tried again first."""
        if self._copier.stuck:
            self._copier.go_on()
            return True
        return self.groups.must_wait_for_log

    def start_soon(self) -> None:
        """The same for records that nobody waits for (W11), so that they become few groups and do not stay in memory:
        they are written when a turn of the loop has brought no more of them, at ``SOON_BYTES``, or after
        ``SOON_TURNS``, by the worker. Whoever waits for anything takes them along."""
        groups = self.groups
        if self._busy or groups.failure is not None:  # when the group under way has been written they are looked at
            return
        group = groups.collecting
        if group is None or groups.has_closed or groups.writing is not None or group.size >= SOON_BYTES:
            self.start()
        elif not self._soon:
            self._look_again(group, SOON_TURNS)

    def _look_again(self, group: PendingGroup, turns: int) -> None:
        if self._call_later is None:
            return self.start()
        self._soon, size = turns, group.size
        self._call_later(0, lambda: self._turn_over(group, size))
        return None

    def _turn_over(self, group: PendingGroup, before: int) -> None:
        """A turn of the loop is over; ``group`` had ``before`` bytes when it began."""
        left, self._soon = self._soon - 1, 0
        if group is not self.groups.collecting:
            self.start_soon()  # that one is under way; there may be another
        elif left and before < group.size < SOON_BYTES and not self._busy:
            self._look_again(group, left)
        else:
            self.start()

    def _wait_for_gap(self) -> bool:
        """Whether ``journal_gap_ms`` asks to collect a little longer."""
        gap = self._config.journal_gap_ms / 1000
        if self._monotonic is None or self._call_later is None:
            return False
        left = self._started_at + gap - self._monotonic()
        if left <= 0:
            return False
        if not self._gap_timer:
            self._gap_timer = True
            self._call_later(left, self._gap_over)
        return True

    def _gap_over(self) -> None:
        self._gap_timer = False
        self.start()

    def _start_next(self) -> None:
        if self.groups.is_awaited:
            self.start()
        else:
            self.start_soon()

    # -- writing ------------------------------------------------------------------------------------------

    def _write_here(self) -> None:
        """Make the next group durable on this thread, the loop's, unless it is large, nobody waits, it needs a new
        file, or the log's worker has something."""
        self._busy = False
        groups = self.groups
        if groups.failure is not None:
            return
        self._close()
        group = groups.number()
        here = group.size <= INLINE_BYTES and groups.is_awaited and groups.oldest_unlogged is None
        if not here or not self.journal.has_open(group.file_id) or not self._copier.has_open(group.log_id):
            self._submit()
            return
        assert self._monotonic is not None
        assert self._call_later is not None
        self._started_at = self._monotonic()
        try:
            self.journal.make_durable(group, groups.durable)
        except Exception as error:  # judged as a worker's
            self._trouble(error, self._submit)
            return
        group.seconds = self._monotonic() - self._started_at
        self._alone = self._alone + 1 if len(group.waiters) == 1 else 0
        self._durable()
        self._copier.go_on_here(self._call_later)
        self._answer(groups.answerable(group))

    def _submit(self) -> None:
        """Hand the group that is to be written to the journal's worker."""
        group = self.groups.writing
        assert group is not None
        self._busy = True
        self._started_at = self._monotonic() if self._monotonic is not None else 0.0
        spare = self._spares[0] if self._spares else None
        below = self.groups.durable
        worker = self._workers.get("journal")
        if group.size > self._config.split_bytes or self.groups.oldest_unlogged is not None:
            worker.submit(lambda: self._write(group, below, spare), self._written)
        else:
            worker.submit(lambda: self._write_both(group, below, spare), self._written_both)

    def _write(self, group: PendingGroup, below: int, spare: str | None) -> GroupWritten:
        """On the worker."""
        written = self.journal.write(group, below, spare)
        if self._monotonic is not None:
            written.seconds = self._monotonic() - self._started_at
        return written

    def _write_both(
        self, group: PendingGroup, below: int, spare: str | None
    ) -> tuple[GroupWritten, GroupCopied | Exception]:
        """On the worker, while the log's has nothing."""
        written = self._write(group, below, spare)
        try:
            return written, self._copier.copy(group)
        except Exception as error:  # it is durable all the same
            return written, error

    def _written(self, written: GroupWritten | None, error: BaseException | None) -> None:
        self._busy = False
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
        self._busy = False
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
        group = self.groups.writing
        assert group is not None
        if written.spare_used is not None:
            self._spares.popleft()
        group.seconds = written.seconds
        self._durable()
        return group

    def _durable(self) -> None:
        self.groups.made_durable()
        if not self._copier.stuck:
            self.groups.unblock()

    def group_copied(self, copied: GroupCopied) -> None:
        """The oldest durable group is in the entry log."""
        group = self.groups.made_logged()
        group.seconds += copied.seconds
        self._measure(group)
        if copied.created is not None:
            self._entry_logs.created(group.log_id, copied.created)
        self._release(group.buffer)
        self._observer.group_logged(group)
        self._answer(self.groups.answerable(group))
        self._answer(self.groups.covered(group))
        if self.groups.relieved():
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
        """Nothing is acknowledged any more (K23)."""
        if self.groups.fail(error):
            self._observer.journal_failed(error)
            self._answer(self.groups.everyone(), _failed(error))

    def _answer(self, waiters: Sequence[Done], error: BaseException | None = None) -> None:
        for waiter in waiters:
            waiter(error)

    # -- spare journal files ------------------------------------------------------------------------------

    @property
    def spares(self) -> int:
        """How many spare journal files are ready."""
        return len(self._spares)

    def add_spares(self, names: Sequence[str]) -> None:
        """A checkpoint has made spares of journal files that it covers."""
        self._spares.extend(names)

    def prepare_spare(self) -> None:
        """Have a zeroed journal file ready before the present one is full (K11)."""
        if self._spares or not self._config.journal_spares or self._workers.inline:
            return
        number = _MADE_AHEAD | self.groups.file_id

        def done(name: str | None, error: BaseException | None) -> None:
            if name is not None:
                self._spares.append(name)
            elif isinstance(error, SyncFailedError):
                self.fail(error)

        self._workers.get("checkpoint").submit(lambda: self.journal.make_spare(number), done)

    def close(self) -> None:
        """Close the journal's file, when the workers have ended."""
        self.journal.close()

    # -- small things -------------------------------------------------------------------------------------

    def _measure(self, group: PendingGroup) -> None:
        stats, size, took = self._stats, group.size, group.seconds
        self.inline.note(self._started_at, took, size)
        stats.groups += 1
        stats.records += group.records
        stats.record_bytes += size
        stats.journal_bytes += padded(size)
        stats.sync_seconds += took
        if took > stats.slowest_sync_seconds:
            stats.slowest_sync_seconds = took

    def _release(self, buffer: GroupBuffer) -> None:
        if buffer.capacity == -(-self._config.group_bytes // BLOCK) * BLOCK and len(self._free) < _FREE_BUFFERS:
            self._free.append(buffer)


def _failed(error: BaseException) -> BookieFailedError:
    return BookieFailedError(f"the disk has failed: {in_words(error)}")
