"""How long a reader waits after a long poll before it sends the next one. Pure: outcomes in, seconds out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bookkeeper.net.backoff import Backoff
from bookkeeper.seams import Rng

FAILED_S: Final = 0.05
"""Seconds to wait after a poll that failed: it fails at once while a bookie is down, and must not be repeated a
thousand times a second."""

EARLY: Final = Backoff(first_s=FAILED_S, max_s=1.0)
"""Pauses after polls that ended early without news: a bookie that has too many long polls answers at once."""


class PollPauses:
    """One reader's. Polls that end early without news are followed by pauses that grow, until one is as it should be;
    one that failed is followed by a short pause."""

    __slots__ = ("_delays", "_rng", "early")

    def __init__(self, rng: Rng) -> None:
        self._rng = rng
        self._delays: Iterator[float] | None = None
        self.early = 0
        """Polls that ended early without news since the last one that did not."""

    def on_failed(self) -> float:
        """A poll failed. Returns seconds to wait. It says nothing about those that end early."""
        return FAILED_S

    def on_answered(self, *, took_s: float, timeout_s: float, news: bool) -> float:
        """A poll that could take ``timeout_s`` was answered after ``took_s``. Returns seconds to wait; 0: none."""
        if news or took_s >= timeout_s / 2:
            self._delays, self.early = None, 0
            return 0.0
        self.early += 1
        self._delays = self._delays or EARLY.delays(self._rng)
        return next(self._delays)

    def validate_state(self) -> None:
        """What must hold between any two calls. For tests."""
        assert self.early >= 0
        assert (self._delays is not None) == (self.early > 0), "pauses without a reason, or the reverse"
