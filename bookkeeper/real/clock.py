"""The system's clocks and its dice."""

from __future__ import annotations

import random
import time


class SystemClock:
    """Boot time, which goes on while the machine sleeps (a lease that ran out in sleep has run out), and the wall."""

    __slots__ = ()

    def monotonic(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000


class SystemRng(random.SystemRandom):
    """Chance from the kernel: unpredictable, never equal in two processes (creator tokens, M5)."""
