"""Which live bookies fall behind (W15): those that stand still while others progress, and those that trail too far.

It only measures. The ensemble decides what it means that a bookie lags.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from bookkeeper.errors import check
from bookkeeper.ledger.writer_parts import EnsembleMember

_STEPS: Final = 128
"""The distance is measured in so many steps."""


class SlowBookies:
    """Measures the bookies of one writer.

    Args:
        stall_ms: a bookie without progress for so long hangs, if another one moved on.
        trail_bytes_max: a bookie so many acknowledged payload bytes behind trails.
    """

    def __init__(self, stall_ms: int, trail_bytes_max: int) -> None:
        self.stall_ms = stall_ms
        self._step = max(1, trail_bytes_max // _STEPS)
        self.next_step = self._step
        """At so many acknowledged payload bytes ``step`` has to be called, and ``trailing`` asked again."""
        self._ends: deque[int] = deque(maxlen=_STEPS)
        """The last acknowledged entry as of each of the last steps; the first of them is ``trail_bytes_max`` back."""

    def hanging(
        self, members: Sequence[EnsembleMember], next_entry: int, now: float, *, held_up: bool = False
    ) -> list[EnsembleMember]:
        """Live bookies with something unanswered that stood still while another moved on.

        A bookie is suspected in one call and named in a later one: a process that was paused itself reads the replies
        that wait for it in between.

        Args:
            held_up: callers wait for those who trail. Then the other bookies get nothing to move on with, so a bookie
                that trails hangs without being compared with them.
        """
        found = []
        alone = self.trailing(members) if held_up else []
        for member in members:
            if not self._hangs(member, alone, members, next_entry, now):
                member.suspected_at = None
            elif member.suspected_at is None:
                member.suspected_at = now
            elif now > member.suspected_at:
                found.append(member)
        return found

    def _hangs(
        self,
        member: EnsembleMember,
        alone: list[EnsembleMember],
        members: Sequence[EnsembleMember],
        next_entry: int,
        now: float,
    ) -> bool:
        if not member.live or member.acks.mark >= next_entry or now - member.progress_at < self.stall_ms / 1000:
            return False
        return member in alone or any(other.live and other.progress_at > member.progress_at for other in members)

    def step(self, acknowledged_bytes: int, last_acknowledged: int) -> None:
        """``acknowledged_bytes`` of payload, up to entry ``last_acknowledged``, are acknowledged now."""
        while acknowledged_bytes >= self.next_step:
            self._ends.append(last_acknowledged)
            self.next_step += self._step

    def trailing(self, members: Sequence[EnsembleMember]) -> list[EnsembleMember]:
        """Live bookies that are ``trail_bytes_max`` of acknowledged payload behind."""
        if len(self._ends) < _STEPS:
            return []
        return [member for member in members if member.live and member.acks.mark <= self._ends[0]]

    def validate_state(self) -> None:
        """Derive again what must hold between the steps. For tests.

        Raises: InvariantError.
        """
        check(list(self._ends) == sorted(self._ends), "W15", self._ends)
        steps, rest = divmod(self.next_step, self._step)
        check(rest == 0 and len(self._ends) == min(steps - 1, _STEPS), "W15", (len(self._ends), steps))
