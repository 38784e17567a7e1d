"""How much one bookie may have in progress, and who goes first.

    ROOM ──▶ more than half of the limit is in progress, or the journal is behind ──▶ CROWDED
    CROWDED ──▶ at most a quarter is in progress, and the journal has caught up ──▶ ROOM: everybody who waits goes on

Rules
    X32  Everything accepted and not answered yet is charged in bytes. While the bookie is crowded the connections that
         bring more are not read, so that their senders feel it by TCP; what still comes in above ``limit`` is refused.
    X33  Fences, recovery and high priority have a reserve of their own: an overloaded bookie can still be recovered
         from (F11).
"""

from __future__ import annotations

from collections.abc import Callable


class Admission:
    """Bytes in progress of one bookie."""

    def __init__(self, limit: int, reserve: int) -> None:
        self.limit = limit
        self.reserve = reserve
        self.in_progress = 0
        self.refused = 0
        """Requests refused so far."""
        self.pauses = 0
        """How often a connection was told to wait."""
        self._waiting: dict[object, Callable[[], None]] = {}
        self._pressure = False

    def admit(self, size: int, *, reserved: bool = False) -> bool:
        """Charge ``size`` bytes if there is room; with ``reserved``, also from the reserve.

        One request is let in whenever nothing else is in progress, whatever its size.
        """
        limit = self.limit + self.reserve if reserved else self.limit
        if self.in_progress and self.in_progress + size > limit:
            self.refused += 1
            return False
        self.in_progress += size
        return True

    def has_room(self, size: int) -> bool:
        """:meth:`admit` would let this in now; for what is answered at once and charged with nothing."""
        return not self.in_progress or self.in_progress + size <= self.limit

    def release(self, size: int) -> None:
        """What was charged is answered."""
        self.in_progress -= size
        assert self.in_progress >= 0, "released more than was admitted"
        self._wake()

    @property
    def crowded(self) -> bool:
        """Who brings more should wait (:meth:`wait`)."""
        return self._pressure or self.in_progress > self.limit // 2

    def wait(self, who: object, resume: Callable[[], None]) -> bool:
        """``resume()`` once, when there is room again. False if ``who`` waits already."""
        if who in self._waiting:
            return False
        self.pauses += 1
        self._waiting[who] = resume
        return True

    def forget(self, who: object) -> None:
        """It has gone and need not be resumed."""
        self._waiting.pop(who, None)

    def set_pressure(self, pressure: bool) -> None:
        """The journal says that too much waits for it, or that it has caught up."""
        self._pressure = pressure
        self._wake()

    def validate_state(self) -> None:
        """What must hold between any two calls. For tests."""
        assert self.in_progress >= 0, "released more than was admitted"
        assert not self._waiting or self._pressure or self.in_progress > self.limit // 4, "there is room, and they wait"

    def _wake(self) -> None:
        if self._waiting and not self._pressure and self.in_progress <= self.limit // 4:
            waiting, self._waiting = self._waiting, {}
            for resume in waiting.values():
                resume()
