"""Which live bookies fall behind (W15): those that stand still while others progress, and those that trail too far.

Only measures; what it means that a bookie lags is decided by the writer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from bookkeeper.ledger.writer_parts import EnsembleMember

_STEPS: Final = 128
"""Into how many steps the distance is cut: how exactly trailing is measured."""


class SlowBookies:
    """Of one writer. ``stall_ms``: no progress for so long; ``trail_bytes_max``: payload bytes behind the others."""

    def __init__(self, stall_ms: int, trail_bytes_max: int) -> None:
        self.stall_ms = stall_ms
        self._step = max(1, trail_bytes_max // _STEPS)
        self.next_step = self._step
        """When so many payload bytes are acknowledged, ``trailing`` has to be asked again."""
        self._ends: deque[int] = deque(maxlen=_STEPS)
        """The last acknowledged entry as of each of the last steps; its first is ``trail_bytes_max`` back."""

    def hanging(
        self, members: Sequence[EnsembleMember], next_entry: int, now: float, *, held_up: bool = False
    ) -> list[EnsembleMember]:
        """Live bookies with something unanswered that stood still while another moved on.

        ``held_up``: callers wait for those who trail. Then the others have nothing to move on with, and who trails is
        measured alone.

        A bookie is suspected in one call and named in a later one: a process that was paused itself first reads what
        came.
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
        """So many payload bytes are acknowledged now, up to this entry."""
        while acknowledged_bytes >= self.next_step:
            self._ends.append(last_acknowledged)
            self.next_step += self._step

    def trailing(self, members: Sequence[EnsembleMember]) -> list[EnsembleMember]:
        """Live bookies behind which ``trail_bytes_max`` of acknowledged payload have piled up."""
        if len(self._ends) < _STEPS:
            return []
        return [member for member in members if member.live and member.acks.mark <= self._ends[0]]
