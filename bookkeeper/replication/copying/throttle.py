"""Limits the bytes per second of everybody who shares one throttle. Pure: time is an argument."""

from __future__ import annotations

from bookkeeper.errors import require


class Throttle:
    """Lets ``bytes_per_s`` pass; 0 sets no limit.

    Spending may run ahead by the bytes of one second: a transfer begins before its size is known, and is counted
    afterwards.
    """

    def __init__(self, bytes_per_s: int = 0) -> None:
        require(bytes_per_s >= 0, f"bytes_per_s must be at least 0 (0: no limit), not {bytes_per_s}")
        self.bytes_per_s = bytes_per_s
        self._paid_until = 0.0

    def spend(self, size: int, now: float) -> None:
        """Count bytes that were transferred."""
        if self.bytes_per_s:
            self._paid_until = max(self._paid_until, now - 1.0) + size / self.bytes_per_s

    def ready_at(self, now: float) -> float:
        """The time at which the next transfer may begin; ``now`` if at once."""
        return max(now, self._paid_until)
