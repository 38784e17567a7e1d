"""Bytes per second, for everybody who shares one of these. Pure: time is an argument."""

from __future__ import annotations

from bookkeeper.errors import require


class Throttle:
    """Lets so many bytes a second pass; 0: as many as there are.

    What is spent may run ahead by one second's worth: a transfer is asked for before its size is known, and pays
    afterwards.
    """

    def __init__(self, bytes_per_s: int = 0) -> None:
        require(bytes_per_s >= 0, "bytes_per_s >= 0")
        self.bytes_per_s = bytes_per_s
        self._paid_until = 0.0

    def spend(self, size: int, now: float) -> None:
        """So many bytes were moved."""
        if self.bytes_per_s:
            self._paid_until = max(self._paid_until, now - 1.0) + size / self.bytes_per_s

    def ready_at(self, now: float) -> float:
        """When more may be asked for; ``now`` if at once."""
        return max(now, self._paid_until)
