"""When the journal begins to write the next group, and on which thread. A pure machine: no I/O, no clock.

    now, at once on the loop    syncs are quick, and one caller waits again and again: nobody else is expected to join
    at the end of the turn      syncs are quick: what arrives in this turn of the loop is one group
    by the worker               everything else
    after a gap                 ``journal_gap_ms``: so much time between the starts of two syncs

Group commit asks :meth:`WriteSchedule.next` whenever something may have changed, does what it says, and reports. How
quick syncs are :class:`~bookkeeper.storage.journal.inline_sync.InlineSync` knows; which groups there are,
:class:`~bookkeeper.storage.journal.group_sequence.GroupSequence`.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from bookkeeper.errors import check
from bookkeeper.storage.journal.group_sequence import UNLOGGED_MAX, GroupSequence
from bookkeeper.storage.journal.inline_sync import INLINE_BYTES, InlineSync
from bookkeeper.storage.journal.pending_group import PendingGroup

ALONE: Final = 16
"""After so many groups in a row that one caller waited for, the next caller's is written on the loop's thread at once,
not at the end of the turn: nobody else is expected to join."""


class NextWrite(Enum):
    """What group commit does now."""

    NOTHING = 0
    COPY_FIRST = 1
    """The entry log is behind and its last copy failed: try that again."""
    AFTER_GAP = 2
    """Ask again in ``gap_left_s``, and report :meth:`WriteSchedule.gap_over` then."""
    AT_END_OF_TURN = 3
    """Report :meth:`WriteSchedule.turn_ended` at the end of the loop's turn, and write then."""
    ON_LOOP = 4
    BY_WORKER = 5


# As a global: to look a member up in its class costs ten times as much (CPython 3.11).
_NOTHING: Final = NextWrite.NOTHING
_BY_WORKER: Final = NextWrite.BY_WORKER
_ON_LOOP: Final = NextWrite.ON_LOOP
_AT_END_OF_TURN: Final = NextWrite.AT_END_OF_TURN


class WriteSchedule:
    """Owned by the loop's thread."""

    def __init__(self, groups: GroupSequence, inline: InlineSync, *, gap_s: float, split_bytes: int) -> None:
        """
        Args:
            gap_s: least time between the starts of two syncs; 0: none.
            split_bytes: larger groups are copied to the entry log by a job of their own; below 0: all groups are.
        """
        self._groups, self._inline = groups, inline
        self._gap_s, self._split_bytes = gap_s, split_bytes
        self.busy = False
        """The journal's worker has a group in hand, or the end of the turn is awaited to write one."""
        self.began_at = 0.0
        """When the last write began."""
        self.gap_left_s = 0.0
        """How long to wait after AFTER_GAP."""
        self._gap_awaited = False
        self._alone = 0
        """Groups in a row, written on the loop's thread, that one caller waited for."""

    def next(self, now: float, copy_failed: bool) -> NextWrite:
        """What to do now.

        Args:
            now: the time (s); looked at only where a gap is wanted.
            copy_failed: the last try to copy a group into the entry log failed.
        """
        groups = self._groups
        if self.busy or groups.failure is not None:
            return _NOTHING
        if copy_failed:
            return NextWrite.COPY_FIRST
        if len(groups.unlogged) >= UNLOGGED_MAX:
            return _NOTHING
        if groups.writing is not None or groups.closed:
            return _BY_WORKER
        if groups.collecting is None:
            return _NOTHING
        if self._gap_s and (left := self.began_at + self._gap_s - now) > 0:
            if self._gap_awaited:
                return _NOTHING
            self._gap_awaited, self.gap_left_s = True, left
            return NextWrite.AFTER_GAP
        if not self._inline.on:
            return _BY_WORKER
        if self._alone >= ALONE and not groups.unlogged:
            return _ON_LOOP
        self.busy = True
        return _AT_END_OF_TURN

    def gap_over(self) -> None:
        """The time that :attr:`gap_left_s` asked for is over."""
        self._gap_awaited = False

    def turn_ended(self) -> None:
        """The end of the turn has come."""
        self.busy = False

    def fits_loop(self, group: PendingGroup, *, files_open: bool) -> bool:
        """Whether the group may be written on the loop's thread: it is small, somebody waits for it or for another, it
        needs no new file, and the log's worker has nothing. If not, the worker writes it."""
        groups = self._groups
        return files_open and group.size <= INLINE_BYTES and not groups.unlogged and groups.is_awaited

    def written_here(self, group: PendingGroup, began_at: float) -> None:
        """The group was made durable on the loop's thread. To be told before its waiters are taken."""
        self.began_at = began_at
        self._alone = self._alone + 1 if len(group.waiters) == 1 else 0

    def handed_over(self, group: PendingGroup, now: float) -> bool:
        """The group goes to the journal's worker.

        Returns:
            whether the same job copies it into the entry log: it is small, and the log's worker has nothing.
        """
        if self.busy:
            check(False, "K9", "the journal's worker gets a second group")
        self.busy, self.began_at = True, now
        return group.size <= self._split_bytes and not self._groups.unlogged

    def handed_back(self) -> None:
        """The journal's worker has nothing any more."""
        self.busy = False
