"""Machine: how long one waits for a process that starts. It decides, and looks at nothing itself.

A wait ends when nothing makes progress, not at a time on the wall. Progress is a new sign: a stage that the process
says for the first time, or a file that has grown. Processor time that it uses pays for the wait, too, because a busy
process on a slow machine may have nothing to say for long; but for ten times the quiet time at most, so that one that
turns in circles is found.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

QUIET_S: Final = 30.0
"""Seconds without any progress that are waited on a machine of the reference's speed."""
BUSY_TIMES: Final = 10
"""Processor time alone makes a wait at most so many times as long."""
LOOK_S: Final = 2.0
"""The time since the last look counts at most so much longer than the waiter meant it to be: one that was not running
itself has not seen that nothing happened."""


@dataclass(frozen=True, slots=True)
class ProgressSigns:
    """What a waiter sees of what it waits for, at one look."""

    marks: Hashable = None
    """Changes when, and only when, there is progress: stages that were said, sizes of files."""
    cpu_s: float = 0.0
    """Processor time that was used up to now."""


class Patience:
    """One wait (V9).

    Args:
        now: seconds, of a clock that never goes back.
        signs: what is seen now.
        quiet_s: seconds without progress that are waited, before they are stretched.
    """

    def __init__(self, now: float, signs: ProgressSigns, quiet_s: float = QUIET_S) -> None:
        self.quiet_s = quiet_s
        self.silent_s = 0.0
        """Counted seconds since the last progress."""
        self.idle_s = 0.0
        """The same, without those that were paid for by processor time."""
        self._at = now
        self._signs = signs

    def observe(self, now: float, signs: ProgressSigns, stretch: float = 1.0, meant_s: float = 0.0) -> None:
        """Note what is seen now.

        Args:
            stretch: everything takes so many times as long on this machine.
            meant_s: how long the waiter was busy, and meant to pause, since the last look.
        """
        passed = min(max(now - self._at, 0.0), LOOK_S + meant_s)
        worked = max(signs.cpu_s - self._signs.cpu_s, 0.0) * stretch
        if signs.marks != self._signs.marks:
            self.silent_s = self.idle_s = 0.0
        else:
            self.silent_s += passed
            self.idle_s += max(passed - worked, 0.0)
        self._at, self._signs = now, signs

    def is_over(self, stretch: float = 1.0) -> bool:
        """Whether nothing is to be expected any more."""
        limit = self.quiet_s * stretch
        return self.idle_s > limit or self.silent_s > BUSY_TIMES * limit

    def reason(self) -> str:
        """Why it is over, for people."""
        if self.idle_s < self.silent_s / 2:
            return f"it works, but has made no progress for {self.silent_s:.0f} s"
        return f"nothing has happened for {self.silent_s:.0f} s"
