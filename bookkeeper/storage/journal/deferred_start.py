"""When records that nobody waits for are written (W11). A pure machine: no I/O, no clock.

They become few groups and do not stay in memory: they are written when a turn of the loop has brought no more of them,
at ``SOON_BYTES``, or after ``SOON_TURNS``. Whoever waits for anything takes them along.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from bookkeeper.storage.journal.group_sequence import GroupSequence
from bookkeeper.storage.journal.pending_group import PendingGroup

SOON_BYTES: Final = 256 * 1024
"""They are written when there are so many bytes of them."""

SOON_TURNS: Final = 16
"""They are collected for no more turns of the loop than this."""


class StartDecision(Enum):
    """What group commit does now."""

    NOT_NOW = 0
    """Somebody else starts the journal: it is at work, or the end of a turn is awaited already."""
    NEXT_TURN = 1
    """Report :meth:`DeferredStart.turn_over` when the loop's turn is over."""
    NOW = 2


class DeferredStart:
    """Owned by the loop's thread."""

    def __init__(self, groups: GroupSequence, *, has_turns: bool) -> None:
        """
        Args:
            has_turns: the end of a turn can be awaited; if not, everything is written at once.
        """
        self._groups, self._has_turns = groups, has_turns
        self._turns = 0
        """How many more turns may collect. While it is 0 no turn is awaited."""
        self._group: PendingGroup | None = None
        self._size = 0
        """The group that was collecting when the awaited turn began, and its size then."""

    def wanted(self, busy: bool) -> StartDecision:
        """There may be records that nobody waits for.

        Args:
            busy: the journal is at work: when it is done, this is asked again.
        """
        groups = self._groups
        if busy or groups.failure is not None:
            return StartDecision.NOT_NOW
        group = groups.collecting
        if group is None or groups.closed or groups.writing is not None or group.size >= SOON_BYTES:
            return StartDecision.NOW
        return StartDecision.NOT_NOW if self._turns else self._await_turn(group, SOON_TURNS)

    def turn_over(self, busy: bool) -> StartDecision:
        """A turn of the loop is over."""
        left, self._turns = self._turns - 1, 0
        group, self._group = self._group, None
        if group is None or group is not self._groups.collecting:
            return self.wanted(busy)  # that one is under way; there may be another
        if left and self._size < group.size < SOON_BYTES and not busy:
            return self._await_turn(group, left)
        return StartDecision.NOW

    def _await_turn(self, group: PendingGroup, turns: int) -> StartDecision:
        if not self._has_turns:
            return StartDecision.NOW
        self._turns, self._group, self._size = turns, group, group.size
        return StartDecision.NEXT_TURN
