"""Group commit that clocks itself: while one group is being made durable the next one collects.

The loop's side of the journal. One group is with the worker at any time, so a group's header can truly say that all
before it are durable (K9), and sequences and file offsets are given out here, in order.

A group is answered when it is durable, and then goes to the entry log
(:mod:`bookkeeper.storage.entry_log.entry_log_queue`): a small one in the same job of the journal's worker, a large one
while the next is made durable, one that was written on the loop's own thread a turn later, when its answers are on
their way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from bookkeeper.errors import BookieFailedError, DiskFullError, check
from bookkeeper.seams import File, Worker
from bookkeeper.storage.config import StorageConfig
from bookkeeper.storage.durable_file import BLOCK, NO_SPACE, TRANSIENT, SyncFailedError
from bookkeeper.storage.entry_log.entry_log_file import EntryLogWriter
from bookkeeper.storage.entry_log.entry_log_queue import EntryLogQueue, LoggedGroup
from bookkeeper.storage.entry_log.entry_logs import EntryLogs
from bookkeeper.storage.index.entry_index import place
from bookkeeper.storage.journal.group_writer import GroupBuffer, GroupWriter, GroupWritten, PendingGroup
from bookkeeper.storage.journal.inline_sync import INLINE_BYTES, InlineSync
from bookkeeper.storage.journal.journal_format import GROUP_HEADER, padded
from bookkeeper.storage.results import Done, EngineStats

UNLOGGED_MAX: Final = 2
"""Groups that may be durable and not yet in the entry log before the journal waits for them."""

ALONE: Final = 16
"""After so many groups in a row that one caller waited for, the next caller's is written on the loop's thread at once,
not at the end of the turn: nobody else is expected to join."""

SOON_BYTES: Final = 256 * 1024
"""Records that nobody waits for (W11) are written when there are so many."""

SOON_TURNS: Final = 16
"""They are collected for no more turns of the loop than this."""

_FREE_BUFFERS = 4
_NOWHERE = 1 << 63


@dataclass(slots=True)
class Hooks:
    """What group commit tells the engine."""

    created_log: Callable[[int, File], None]
    covered: Callable[[PendingGroup], None]
    """A group is durable and in the entry log."""
    no_space: Callable[[OSError], bool]
    """True: something was freed, try again at once (K26)."""
    failed: Callable[[BaseException], None]
    """Final (K23)."""
    pressure: Callable[[bool], None]


@dataclass(slots=True)
class GroupCommit:
    """Owned by the loop's thread."""

    config: StorageConfig
    journal: GroupWriter
    logs: EntryLogWriter
    entry_logs: EntryLogs
    worker: Callable[[], Worker]
    log_worker: Callable[[], Worker]
    hooks: Hooks
    stats: EngineStats
    sequence: int
    """Of the last group handed to the worker."""
    file_id: int
    file_offset: int = BLOCK
    spares: deque[str] = field(default_factory=deque)
    monotonic: Callable[[], float] | None = None
    call_later: Callable[[float, Callable[[], None]], object] | None = None
    in_flight: int = 0
    """Bytes accepted that are not yet durable and in the entry log."""
    stuck: OSError | None = None
    """The group at the head found no space or no descriptor; it is tried again on demand."""
    dead: BaseException | None = None
    """Why nothing will be written any more."""
    durable: int = 0
    """The last durable sequence."""
    inline: InlineSync = field(init=False)
    _log_queue: EntryLogQueue = field(init=False)
    _writing: PendingGroup | None = None
    _busy: bool = False
    _queue: deque[PendingGroup] = field(default_factory=deque)
    _collecting: PendingGroup | None = None
    _free: list[GroupBuffer] = field(default_factory=list)
    _paused: bool = False
    _started_at: float = 0.0
    _timer: bool = False
    _alone: int = 0
    """Groups in a row, written on the loop's thread, that one caller waited for."""
    _soon: int = 0
    """How many more turns of the loop what nobody waits for may collect; 0: nobody looks at it."""

    def __post_init__(self) -> None:
        timed = self.monotonic is not None and self.call_later is not None
        self.inline = InlineSync(self.config.inline_sync_us / 1e6 if timed else 0.0)
        self._log_queue = EntryLogQueue(self.logs, self.log_worker, self.monotonic, self._logged, self._lane_stuck)

    @property
    def busy(self) -> bool:
        """A worker has a group in hand."""
        return self._busy or self._log_queue.busy

    # -- collecting ---------------------------------------------------------------------------------------

    def room(self, size: int) -> PendingGroup:
        """The collecting group, with room for ``size`` more bytes of records."""
        group = self._collecting
        if group is not None and group.room_for(size):
            return group
        if group is not None:
            self._close()
        capacity = max(self.config.group_bytes, size + GROUP_HEADER + BLOCK)
        buffer = self._free.pop() if self._free and capacity == self.config.group_bytes else GroupBuffer(capacity)
        self._collecting = PendingGroup(buffer, *self.entry_logs.next_place())
        return self._collecting

    def accepted(self, size: int) -> None:
        """``size`` bytes were added to the collecting group (P12)."""
        self.in_flight += size
        if self.in_flight > self.config.inflight_bytes and not self._paused and self.stuck is None:
            self._paused = True
            self.hooks.pressure(True)

    def add_record(self, ledger_id: int, data: bytes) -> None:
        """One state record."""
        self.room(len(data)).add_record(ledger_id, data)
        self.accepted(len(data))

    def _close(self) -> None:
        """The collecting group takes nothing more."""
        group, self._collecting = self._collecting, None
        if group is not None:
            self.entry_logs.given(group.log_id, group.log_offset + group.size, group.usage)
            self._queue.append(group)

    def cut(self, *, flags: int = 0) -> PendingGroup | None:
        """Close the collecting group (with ``flags``: make one if there is none); the last group under way, if any."""
        if flags:
            self.room(0).flags |= flags
        self._close()
        return next(self.groups(), None)

    def groups(self) -> Iterator[PendingGroup]:
        """Everything that is not in the entry logs yet, newest first."""
        if self._collecting is not None:
            yield self._collecting
        yield from reversed(self._queue)
        if self._writing is not None:
            yield self._writing
        yield from reversed(self._log_queue.groups)

    @property
    def _last(self) -> PendingGroup | None:
        """The newest that is not durable."""
        return self._collecting or (self._queue[-1] if self._queue else self._writing)

    @property
    def written_below(self) -> int:
        """Places below this are in the entry logs."""
        log_queue = self._log_queue.groups
        oldest = log_queue[0] if log_queue else self._writing or (self._queue[0] if self._queue else self._collecting)
        return _NOWHERE if oldest is None else place(oldest.log_id, oldest.log_offset)

    # -- waiting ------------------------------------------------------------------------------------------

    def when_durable(self, callback: Done) -> None:
        """See :meth:`Engine.when_durable`."""
        if self.dead is not None:
            return callback(_failed(self.dead))
        last = self._last
        if last is None:
            return callback(None)
        last.waiters.append(callback)
        return self.start()

    def when_logged(self, callback: Done) -> None:
        """``callback(None)`` when everything handed in so far is durable and in the entry logs: what a checkpoint
        may cover (K13). Errors as :meth:`when_durable`."""
        if self.dead is not None:
            return callback(_failed(self.dead))
        last = next(self.groups(), None)
        if last is None:
            return callback(None)
        last.followers.append(callback)
        return self.start()

    # -- writing ------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Hand the next group to the worker, if it is idle."""
        if self._busy or self.dead is not None or self._lane_is_full():
            return
        if self._writing is None:
            if not self._queue:
                if self._collecting is None or (self.config.journal_gap_ms and self._wait_for_gap()):
                    return
                if self.inline.on and self.call_later is not None:
                    if self._alone >= ALONE and not self._log_queue.groups:
                        self._write_here()
                        return
                    self._busy = True
                    self.call_later(0, self._write_here)  # at the end of the turn: all that arrived in it is one group
                    return
                self._close()
            self._number(self._queue.popleft())
        self._submit()

    def _lane_is_full(self) -> bool:
        """Whether the journal must wait for the entry log; what is stuck there is tried again first."""
        log_queue = self._log_queue
        if log_queue.stuck:
            log_queue.go_on()
            return True
        return len(log_queue.groups) >= UNLOGGED_MAX

    def start_soon(self) -> None:
        """The same for records that nobody waits for (W11), so that they become few groups and do not stay in memory:
        they are written when a turn of the loop has brought no more of them, at ``SOON_BYTES``, or after
        ``SOON_TURNS``, by the worker. Whoever waits for anything takes them along."""
        if self._busy or self.dead is not None:  # when the group under way has been written they are looked at
            return
        group = self._collecting
        if group is None or self._queue or self._writing is not None or group.size >= SOON_BYTES:
            self.start()
        elif not self._soon:
            self._look_again(group, SOON_TURNS)

    def _look_again(self, group: PendingGroup, turns: int) -> None:
        if self.call_later is None:
            return self.start()
        self._soon, size = turns, group.size
        self.call_later(0, lambda: self._turned(group, size))
        return None

    def _turned(self, group: PendingGroup, before: int) -> None:
        """A turn of the loop is over; ``group`` had ``before`` bytes when it began."""
        left, self._soon = self._soon - 1, 0
        if group is not self._collecting:
            self.start_soon()  # that one is under way; there may be another
        elif left and before < group.size < SOON_BYTES and not self._busy:
            self._look_again(group, left)
        else:
            self.start()

    def _write_here(self) -> None:
        """Make the next group durable on this thread, the loop's, unless it is large, nobody waits, it needs a new
        file, or the log's worker has something."""
        self._busy = False
        if self.dead is not None:
            return
        self._close()
        group = self._number(self._queue.popleft())
        here = group.size <= INLINE_BYTES and self._wanted and not self._log_queue.groups
        if not here or not self.journal.holds(group, self.logs):
            self._submit()
            return
        assert self.monotonic is not None
        assert self.call_later is not None
        self._started_at = self.monotonic()
        try:
            self.journal.make_durable(group, self.durable)
        except Exception as error:  # judged as a worker's
            self._trouble(error, self._submit)
            return
        group.seconds = self.monotonic() - self._started_at
        self._alone = self._alone + 1 if len(group.waiters) == 1 else 0
        self._durable(group)
        self._log_queue.send_here(group, self.call_later)
        self._answer(group.waiters, group)

    def _number(self, group: PendingGroup) -> PendingGroup:
        size = padded(group.size)
        if self.file_offset + size > self.config.journal_file_bytes and self.file_offset > BLOCK:
            self.file_id, self.file_offset = self.file_id + 1, BLOCK
        self.sequence += 1
        if self.sequence != self.durable + 1:
            check(False, "K9", f"group {self.sequence} while {self.durable} is durable")
        group.sequence, group.file_id, group.file_offset = self.sequence, self.file_id, self.file_offset
        self.file_offset += size
        self._writing = group
        return group

    def _submit(self) -> None:
        group = self._writing
        assert group is not None
        self._busy = True
        self._started_at = self.monotonic() if self.monotonic is not None else 0.0
        spare = self.spares[0] if self.spares else None
        below = self.durable
        if group.size > self.config.split_bytes or self._log_queue.groups:
            self.worker().submit(lambda: self._write(group, below, spare), self._written)
        else:
            self.worker().submit(lambda: self._write_both(group, below, spare), self._written_both)

    def _write(self, group: PendingGroup, below: int, spare: str | None) -> GroupWritten:
        """On the worker."""
        written = self.journal.write(group, below, spare)
        if self.monotonic is not None:
            written.seconds = self.monotonic() - self._started_at
        return written

    def _write_both(
        self, group: PendingGroup, below: int, spare: str | None
    ) -> tuple[GroupWritten, LoggedGroup | Exception]:
        """On the worker, while the log's has nothing."""
        written = self._write(group, below, spare)
        try:
            return written, self._log_queue.write(group)
        except Exception as error:  # it is durable all the same
            return written, error

    def _written(self, written: GroupWritten | None, error: BaseException | None) -> None:
        self._busy = False
        group = self._writing
        assert group is not None
        if written is None:
            return self._trouble(error or BookieFailedError("the journal's worker gave no result"), self._submit)
        self._journalled(group, written)
        self._log_queue.send(group)
        self._answer(group.waiters, group)
        return self._next()

    def _written_both(
        self, both: tuple[GroupWritten, LoggedGroup | Exception] | None, error: BaseException | None
    ) -> None:
        self._busy = False
        group = self._writing
        assert group is not None
        if both is None:
            return self._trouble(error or BookieFailedError("the journal's worker gave no result"), self._submit)
        written, logged = both
        self._journalled(group, written)
        if isinstance(logged, LoggedGroup):
            return self._logged(group, logged)
        self._log_queue.keep(group)
        self._answer(group.waiters, group)
        return self._lane_stuck(logged)

    def _journalled(self, group: PendingGroup, written: GroupWritten) -> None:
        if written.spare_used is not None:
            self.spares.popleft()
        group.seconds = written.seconds
        self._durable(group)

    def _durable(self, group: PendingGroup) -> None:
        if not self._log_queue.stuck:
            self.stuck = None
        self._writing = None
        self.durable = group.sequence

    def _logged(self, group: PendingGroup, logged: LoggedGroup) -> None:
        """It is in the entry log, too."""
        group.seconds += logged.seconds
        self._measure(group)
        if logged.created is not None:
            self.hooks.created_log(group.log_id, logged.created)
        self.stuck = None
        self.in_flight -= group.size
        self._release(group.buffer)
        self.hooks.covered(group)
        self._answer(group.waiters, group)
        self._answer(group.followers, group)
        if self._paused and self.in_flight <= self.config.inflight_bytes // 2:
            self._paused = False
            self.hooks.pressure(False)
        self._next()

    def _next(self) -> None:
        if self._wanted:
            self.start()
        else:
            self.start_soon()

    def _lane_stuck(self, error: BaseException) -> None:
        self._trouble(error, self._log_queue.go_on)

    @property
    def _wanted(self) -> bool:
        """Somebody waits for a group."""
        writing = self._writing
        if writing is not None and (writing.waiters or writing.followers):
            return True
        group = self._collecting
        if group is not None and (group.waiters or group.followers):
            return True
        return any(group.waiters or group.followers for group in self._queue)

    def _answer(self, waiters: list[Done], group: PendingGroup) -> None:
        """Call those who waited for ``group``, once."""
        if not waiters:
            return
        if group.sequence > self.durable:
            check(False, "K7", f"group {group.sequence} is not durable")
        called = waiters.copy()
        waiters.clear()
        for waiter in called:
            waiter(None)

    def _fail_all(self, error: BaseException) -> None:
        """Call everyone who waits, the oldest group's first."""
        for group in reversed(list(self.groups())):
            called = group.waiters + group.followers
            group.waiters.clear()
            group.followers.clear()
            for waiter in called:
                waiter(error)

    def _trouble(self, error: BaseException, again: Callable[[], None]) -> None:
        transient = isinstance(error, OSError) and error.errno in TRANSIENT and not isinstance(error, SyncFailedError)
        if not transient:
            self.fail(error)
            return
        assert isinstance(error, OSError)
        if self.hooks.no_space(error):
            again()
            return
        self.stuck = error
        if self._paused:  # nothing gets less by waiting: whoever was told to wait may read, and is refused adds
            self._paused = False
            self.hooks.pressure(False)
        kind = DiskFullError if error.errno in NO_SPACE else BookieFailedError
        self._fail_all(kind(f"the journal cannot go on: {error}"))

    def fail(self, error: BaseException) -> None:
        """Nothing is acknowledged any more (K23)."""
        if self.dead is None:
            self.dead = error
            self.hooks.failed(error)
            self._fail_all(_failed(error))

    # -- small things -------------------------------------------------------------------------------------

    def _wait_for_gap(self) -> bool:
        """Whether ``journal_gap_ms`` asks to collect a little longer."""
        gap = self.config.journal_gap_ms / 1000
        if self.monotonic is None or self.call_later is None:
            return False
        left = self._started_at + gap - self.monotonic()
        if left <= 0:
            return False
        if not self._timer:
            self._timer = True
            self.call_later(left, self._gap_over)
        return True

    def _gap_over(self) -> None:
        self._timer = False
        self.start()

    def _measure(self, group: PendingGroup) -> None:
        stats, size, took = self.stats, group.size, group.seconds
        self.inline.note(self._started_at, took, size)
        stats.groups += 1
        stats.records += group.records
        stats.record_bytes += size
        stats.journal_bytes += padded(size)
        stats.sync_seconds += took
        if took > stats.slowest_sync_seconds:
            stats.slowest_sync_seconds = took

    def _release(self, buffer: GroupBuffer) -> None:
        if buffer.capacity == -(-self.config.group_bytes // BLOCK) * BLOCK and len(self._free) < _FREE_BUFFERS:
            self._free.append(buffer)


def _failed(error: BaseException) -> BookieFailedError:
    return BookieFailedError(f"the disk has failed: {error}")
