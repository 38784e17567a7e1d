"""The groups of the journal in their order, and how far each has come. A pure machine: no I/O, no clock.

    oldest                                                      newest
    durable, durable   ->   writing   ->   closed, closed   ->   collecting
    (at their most two)     (one)          (waiting)             (one)

The machine decides the order of groups, their numbers and places in the journal, who may be answered, and when callers
have to pause. Group commit (:mod:`~bookkeeper.storage.journal.group_commit`) does the writing and reports what
happened. It calls

    collect          when records come and no group takes them
    close            when the collecting group takes no more
    number           when the journal is free: the oldest closed group gets its number
    made_durable     when that group is synced in the journal
    made_logged      when the oldest durable group is in the entry log
    block, fail      when a write found no room for now; when the disk has failed for good

Always true, and derived again by :meth:`GroupSequence.validate_state`:

    - one group is written at a time, so its header truly says that all groups before it are durable (K9)
    - numbers and places in journal files follow each other without a gap (K10)
    - a waiter is handed out once, when its group is durable (K7)
    - a group leaves only when it is in the entry log, so its records can be read from memory until then (K13)
    - ``in_flight`` is the size of all groups that are here (P12)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final

from bookkeeper.errors import check
from bookkeeper.storage.base.durable_file import BLOCK
from bookkeeper.storage.base.results import Done
from bookkeeper.storage.index.entry_index import LOG_SHIFT, OFFSET_MASK, place
from bookkeeper.storage.journal.journal_format import padded
from bookkeeper.storage.journal.pending_group import GroupBuffer, GroupState, PendingGroup

UNLOGGED_MAX: Final = 2
"""This many groups may be durable and not yet in the entry log before the journal waits for them."""

NOWHERE: Final = 1 << 63
"""Above every place."""

# As a global: to look a member up in its class costs ten times as much (CPython 3.11).
_CLOSED: Final = GroupState.CLOSED
_WRITING: Final = GroupState.WRITING
_DURABLE: Final = GroupState.DURABLE
_LOGGED: Final = GroupState.LOGGED


class GroupSequence:
    """See the module. Owned by the loop's thread; only its own methods change what is in it."""

    def __init__(
        self,
        *,
        durable: int,
        file_id: int,
        file_bytes: int,
        inflight_bytes: int,
        new_group: Callable[[GroupBuffer, int, int], PendingGroup] = PendingGroup,
    ) -> None:
        """
        Args:
            durable: the number of the last group that is durable.
            file_id: the journal file that is begun and holds no group yet.
            file_bytes: the size of a journal file.
            inflight_bytes: above this many bytes callers pause, below half of it they go on.
            new_group: makes a group from its buffer, its log and its offset there.
        """
        self._new_group = new_group
        self._file_bytes, self._inflight_bytes = file_bytes, inflight_bytes
        self.durable = durable
        """The number of the last durable group; all before it are durable, too."""
        self.file_id, self.file_offset = file_id, BLOCK
        """Where in the journal the next group goes, if it fits there."""
        self.in_flight = 0
        """Bytes of records that were taken and are not yet in the entry log."""
        self.paused = False
        """Callers were told to pause."""
        self.blocked: OSError | None = None
        """Why a group could not be written for now; it is tried again."""
        self.failure: BaseException | None = None
        """Why nothing will be written any more."""
        self.collecting: PendingGroup | None = None
        self.writing: PendingGroup | None = None
        self.closed: deque[PendingGroup] = deque()
        """Groups that wait for the journal, oldest first; changed here alone."""
        self.unlogged: deque[PendingGroup] = deque()
        """Groups that are durable and not in the entry log, oldest first; changed here alone."""

    # -- which groups there are ---------------------------------------------------------------------------

    @property
    def oldest_unlogged(self) -> PendingGroup | None:
        """The group that goes to the entry log next."""
        return self.unlogged[0] if self.unlogged else None

    def newest_first(self) -> Iterator[PendingGroup]:
        """Every group that is not in the entry log."""
        if self.collecting is not None:
            yield self.collecting
        yield from reversed(self.closed)
        if self.writing is not None:
            yield self.writing
        yield from reversed(self.unlogged)

    @property
    def newest(self) -> PendingGroup | None:
        return next(self.newest_first(), None)

    @property
    def newest_not_durable(self) -> PendingGroup | None:
        return self.collecting or (self.closed[-1] if self.closed else self.writing)

    @property
    def logged_below(self) -> int:
        """Records at places below this are in the entry logs."""
        unlogged = self.unlogged
        oldest = unlogged[0] if unlogged else self.writing or (self.closed[0] if self.closed else self.collecting)
        return NOWHERE if oldest is None else place(oldest.log_id, oldest.log_offset)

    cached_below = logged_below
    """See ``reads/unwritten``."""

    def holding(self, found: int) -> PendingGroup | None:
        """The group that holds the record at this place; None: it is in an entry log."""
        if found < self.logged_below:
            return None
        log_id, offset = found >> LOG_SHIFT, found & OFFSET_MASK
        return next((group for group in self.newest_first() if group.holds(log_id, offset)), None)

    @property
    def is_awaited(self) -> bool:
        """Somebody waits for a group that is not durable yet."""
        writing, collecting = self.writing, self.collecting
        if writing is not None and (writing.waiters or writing.logged_waiters):
            return True
        if collecting is not None and (collecting.waiters or collecting.logged_waiters):
            return True
        return any(group.waiters or group.logged_waiters for group in self.closed)

    # -- what happens -------------------------------------------------------------------------------------

    def collect(self, buffer: GroupBuffer, log_id: int, log_offset: int) -> PendingGroup:
        """Begin a group whose records will lie from ``log_offset`` on in that entry log."""
        assert self.collecting is None
        self.collecting = self._new_group(buffer, log_id, log_offset)
        return self.collecting

    def took(self, size: int) -> bool:
        """The collecting group has taken ``size`` bytes more. True: tell callers to pause (P12)."""
        self.in_flight += size
        if self.in_flight <= self._inflight_bytes or self.paused or self.blocked is not None:
            return False
        self.paused = True
        return True

    def close(self) -> PendingGroup | None:
        """The collecting group takes no more records; None if there is none."""
        group, self.collecting = self.collecting, None
        if group is not None:
            group.state = _CLOSED
            self.closed.append(group)
        return group

    def number(self) -> PendingGroup:
        """The oldest closed group is written next: it gets its number and its place in the journal.

        Raises:
            InvariantError: another group is being written, or the disk has failed.
        """
        if self.failure is not None:
            check(False, "K23", f"a group is to be written though the disk has failed: {self.failure}")
        if self.writing is not None:
            check(False, "K9", f"two groups at a time, after group {self.durable}")
        group = self.closed.popleft()
        size = padded(group.size)
        if self.file_offset + size > self._file_bytes and self.file_offset > BLOCK:
            self.file_id, self.file_offset = self.file_id + 1, BLOCK
        group.sequence, group.file_id, group.file_offset = self.durable + 1, self.file_id, self.file_offset
        group.file_bytes, group.state = size, _WRITING
        self.file_offset += size
        self.writing = group
        return group

    def made_durable(self) -> PendingGroup:
        """The group that was being written is synced in the journal. It goes to the entry log next."""
        group = self.writing
        assert group is not None
        self.writing = None
        self.durable = group.sequence
        group.state = _DURABLE
        self.unlogged.append(group)
        return group

    def made_logged(self) -> PendingGroup:
        """The oldest durable group is in the entry log: it is not here any more."""
        group = self.unlogged.popleft()
        group.state = _LOGGED
        self.in_flight -= group.size
        self.blocked = None
        return group

    # -- who waits ----------------------------------------------------------------------------------------

    def answerable(self, group: PendingGroup) -> list[Done]:
        """Those who waited until ``group`` is durable, and then the lazy ones; each is handed out once.

        Raises:
            InvariantError: it is not durable.
        """
        if not group.waiters and not group.lazy_waiters:
            return []
        if group.state < _DURABLE:
            check(False, "K7", f"a group is answered that is {group.state.name}, not durable")
        waiters, group.waiters = group.waiters, []
        if group.lazy_waiters:
            waiters += group.lazy_waiters
            group.lazy_waiters = []
        return waiters

    def covered(self, group: PendingGroup) -> list[Done]:
        """Those who waited until ``group`` is in the entry log; each is handed out once.

        Raises:
            InvariantError: it is not there.
        """
        if not group.logged_waiters:
            return []
        if group.state is not _LOGGED:
            check(False, "K13", f"a group counts as covered that is {group.state.name}, not logged")
        logged_waiters, group.logged_waiters = group.logged_waiters, []
        return logged_waiters

    def everyone(self) -> list[Done]:
        """All who wait for any group, the oldest group's first; each is handed out once."""
        waiting: list[Done] = []
        for group in reversed(list(self.newest_first())):
            waiting += group.waiters + group.lazy_waiters + group.logged_waiters
            group.waiters, group.lazy_waiters, group.logged_waiters = [], [], []
        return waiting

    # -- trouble ------------------------------------------------------------------------------------------

    def block(self, error: OSError) -> bool:
        """A group could not be written for now. True: callers that pause may go on. Nothing gets less by waiting:
        they may read, and their adds are refused."""
        self.blocked = error
        return self._go_on()

    def unblock(self) -> None:
        """Writing goes on."""
        self.blocked = None

    def relieved(self) -> bool:
        """True: callers that pause may go on, because few enough bytes are left (P12)."""
        return self.paused and self.in_flight <= self._inflight_bytes // 2 and self._go_on()

    def _go_on(self) -> bool:
        was, self.paused = self.paused, False
        return was

    def fail(self, error: BaseException) -> bool:
        """The disk has failed for good: no further group is written (K23). False if that was known already."""
        if self.failure is not None:
            return False
        self.failure = error
        return True

    # -- what must hold -----------------------------------------------------------------------------------

    def validate_state(self) -> None:
        """Derive again what must hold between two calls of group commit.

        Raises:
            InvariantError: it does not.
        """
        groups = list(self.newest_first())[::-1]
        wanted = [_DURABLE] * len(self.unlogged)
        wanted += [_WRITING] * (self.writing is not None)
        wanted += [_CLOSED] * len(self.closed)
        wanted += [GroupState.COLLECTING] * (self.collecting is not None)
        states = [group.state for group in groups]
        check(states == wanted, "K9", f"the groups are {states}, their places say {wanted}")
        check(len(self.unlogged) <= UNLOGGED_MAX, "P12", f"{len(self.unlogged)} groups wait for the entry log")

        numbered = [group for group in groups if group.state >= _WRITING]
        numbers = [group.sequence for group in numbered]
        last = self.durable + (self.writing is not None)
        check(numbers == list(range(last + 1 - len(numbers), last + 1)), "K9", f"{numbers} end in group {last}")
        check(not any(group.sequence for group in groups[len(numbered) :]), "K10", "a number was given out early")
        for before, after in pairwise(numbered):
            end = before.file_id, before.file_offset + padded(before.size)
            at = after.file_id, after.file_offset
            check(at in (end, (before.file_id + 1, BLOCK)), "K10", f"a group at {at} after one that ends at {end}")
        if numbered:
            end = numbered[-1].file_id, numbered[-1].file_offset + padded(numbered[-1].size)
            check((self.file_id, self.file_offset) == end, "K10", f"the journal goes on elsewhere than at {end}")

        for before, after in pairwise(groups):
            check(after.follows(before), "K10", f"a hole in the entry logs before {after.log_id} at {after.log_offset}")
        size = sum(group.size for group in groups)
        check(self.in_flight == size, "P12", f"{self.in_flight} bytes are counted in flight, {size} are")
        check(not self.paused or self.in_flight > self._inflight_bytes // 2, "P12", "callers pause for nothing")
        check(self.blocked is None or bool(groups), "K26", "nothing is left that could be blocked")
        answered = all(not group.waiters and not group.lazy_waiters for group in self.unlogged)
        check(answered, "K7", "a group is durable and somebody still waits for that")
