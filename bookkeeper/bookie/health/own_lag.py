"""How long a process was not run: it notices by its own timers, and says so instead of blaming others.

On a machine that is too busy, or stood still (a paused container, a laptop's sleep), a process misses what it had to do
in time: it does not renew its session, and does not read an answer that has been there for long. From inside that looks
like a peer that does not answer. :class:`OwnLag` decides, :func:`watch_own_lag` looks.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Final

from bookkeeper.seams import Clock

EVERY_S: Final = 0.5
"""Seconds between two looks."""
LEAST_S: Final = 2.0
"""Lateness from which a sample counts."""
GAP_S: Final = 60.0
"""Seconds between two lines."""
_KEPT_S: Final = 300.0


class OwnLag:
    """Machine: what the looks say. ``now`` is monotonic, in seconds; ``wall_ms`` is the wall clock."""

    def __init__(self, now: float, wall_ms: int) -> None:
        self._due = now + EVERY_S
        self._at, self._wall_ms = now, wall_ms
        self._late: deque[tuple[float, float]] = deque()
        """When a sample was late, and by how much."""
        self._jump_s = 0.0
        self._told_at = float("-inf")
        self._worst_s = 0.0
        """Since the last line."""

    def sample(self, now: float, wall_ms: int) -> None:
        """The process runs now."""
        late = now - self._due
        jump_s = (wall_ms - self._wall_ms) / 1000 - (now - self._at)
        self._due, self._at, self._wall_ms = now + EVERY_S, now, wall_ms
        if late >= LEAST_S:
            self._late.append((now, late))
            self._worst_s = max(self._worst_s, late)
        if jump_s >= LEAST_S:
            self._jump_s = max(self._jump_s, jump_s)
        while self._late and self._late[0][0] < now - _KEPT_S:
            self._late.popleft()

    def lately(self, now: float, within_s: float) -> float:
        """The longest time, among those that ended in the last ``within_s``, in which the process was not run."""
        return max([now - self._due, *(late for at, late in self._late if at >= now - within_s), 0.0])

    def sentence(self, now: float) -> str | None:
        """What is to be told now; None: nothing, or it was told less than a minute ago."""
        if now < self._told_at + GAP_S or not (self._worst_s or self._jump_s):
            return None
        worst, jump = self._worst_s, self._jump_s
        self._told_at, self._worst_s, self._jump_s = now, 0.0, 0.0
        if worst:
            return (
                f"this process was not run for {worst:.1f} s: the machine gives it too little of a processor, or stood "
                "still. What others say of it meanwhile, or do not answer, is not their fault"
            )
        return f"the wall clock went {jump:.1f} s ahead: the machine was suspended, or its clock was set"


async def watch_own_lag(lag: OwnLag, clock: Clock, log: logging.Logger) -> None:
    """Look, and log, until cancelled."""
    while True:
        await asyncio.sleep(EVERY_S)
        now = clock.monotonic()
        lag.sample(now, clock.wall_ms())
        if (text := lag.sentence(now)) is not None:
            log.warning(text)
