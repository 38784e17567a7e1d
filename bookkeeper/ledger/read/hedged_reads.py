"""Decides when a second bookie is asked, too: when reads that were sent together are not answered in time.

    asked ──▶ ended        everything is answered
      │
      └─────▶ late         ``hedge_ms`` have passed: each entry that is still missing is read by itself from now on, by
                           a FragmentReader that counts the first bookie as asked

One timer serves all shares of a reader. They have the same limit, so they become late in the order in which they were
sent.
"""

from __future__ import annotations

from typing import Generic, TypeVar

Asked = TypeVar("Asked")


class HedgedReads(Generic[Asked]):
    """The pending reads of one reader. An ``Asked`` stands for reads that were sent together; nothing here looks into
    it."""

    __slots__ = ("_asked", "_hedge_s", "wake_at")

    def __init__(self, hedge_ms: int) -> None:
        self._hedge_s = hedge_ms / 1000
        self._asked: dict[Asked, float] = {}
        """Reads that lack an answer -> when they become late, in the order in which they were sent."""
        self.wake_at: float | None = None
        """When to call :meth:`on_tick`; None: nothing is asked for."""

    def on_asked(self, asked: Asked, now: float) -> bool:
        """``asked`` is under way. True: set a timer for ``wake_at``."""
        self._asked[asked] = now + self._hedge_s
        if self.wake_at is not None:
            return False
        self.wake_at = now + self._hedge_s
        return True

    def on_ended(self, asked: Asked) -> None:
        """Every read of ``asked`` is answered. Idempotent. The timer stays, because most reads end long before it."""
        self._asked.pop(asked, None)

    def on_tick(self, now: float) -> list[Asked]:
        """The timer has run out. Returns the reads that are late now, and forgets them. Set a timer for ``wake_at``."""
        late: list[Asked] = []
        self.wake_at = None
        for asked, due in self._asked.items():
            if due > now:
                self.wake_at = due
                break
            late.append(asked)
        for asked in late:
            del self._asked[asked]
        return late

    def validate_state(self) -> None:
        """What must hold between any two calls. For tests."""
        dues = list(self._asked.values())
        assert dues == sorted(dues), "the first of them were asked for first"
        assert not dues or (self.wake_at is not None and self.wake_at <= dues[0]), "nobody looks when they are late"
