"""Finds live bookies that fall behind (W15): those that stand still while others progress, or that trail too far.

This module only measures. The ensemble decides what follows if a bookie lags.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from bookkeeper.errors import check
from bookkeeper.ledger.ensemble.member import EnsembleMember

_STEPS: Final = 128
"""In how many steps the distance ``trail_bytes_max`` is measured."""


class SlowBookies:
    """Measures the bookies of one writer.

    Args:
        stall_ms: a bookie that makes no progress for so long hangs, if another one made some.
        trail_bytes_max: a bookie that is so many acknowledged payload bytes behind trails.
    """

    def __init__(self, stall_ms: int, trail_bytes_max: int) -> None:
        self.stall_ms = stall_ms
        self._step = max(1, trail_bytes_max // _STEPS)
        self.next_step = self._step
        """At so many acknowledged payload bytes call ``step``, and ask ``trailing`` again."""
        self._ends: deque[int] = deque(maxlen=_STEPS)
        """The last acknowledged entry as of each of the last steps; the first of them is ``trail_bytes_max`` back."""

    def hanging(
        self, members: Sequence[EnsembleMember], next_entry: int, now: float, *, held_up: bool = False
    ) -> list[EnsembleMember]:
        """Live bookies that owe an answer and made no progress while another bookie made some.

        A bookie is suspected in one call and named in a later one. If this process was paused itself, it reads the
        waiting replies in between.

        Args:
            held_up: callers wait for the bookies that trail. The other bookies get no new entries then, so a bookie
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
