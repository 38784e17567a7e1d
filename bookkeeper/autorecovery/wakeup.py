"""Wakes a loop: watches ring, and the loop also wakes by the clock. So one that lists again on every wake-up misses
nothing."""

from __future__ import annotations

import asyncio
import contextlib


class Wakeup:
    """Wakes one waiter. Rings before the wait are not lost; several count as one."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Wake the waiter, now or at its next wait."""
        self._rung.set()

    async def wait(self, timeout_s: float) -> None:
        """Wait until it rings, for ``timeout_s`` at most."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._rung.wait(), timeout_s)
        self._rung.clear()
