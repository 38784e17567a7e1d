"""Log lines that somebody outside can cause: one a second at most, with the number of those left out (X38)."""

from __future__ import annotations

import logging
from typing import Final

from bookkeeper.seams import Clock

GAP_S: Final = 1.0
"""Least time between two lines."""


class RateLimitedLogger:
    """For one kind of lines."""

    def __init__(self, logger: logging.Logger, clock: Clock) -> None:
        self._logger = logger
        self._clock = clock
        self._last = float("-inf")
        self._left_out = 0

    def warning(self, text: str, *details: object) -> None:
        """A line, unless there was one a moment ago. What comes from outside is among ``details``, each shown in one
        line."""
        now = self._clock.monotonic()
        if now - self._last < GAP_S:
            self._left_out += 1
            return
        more = f" ({self._left_out} more of this kind)" if self._left_out else ""
        self._logger.warning(text + more, *(one_line(detail) for detail in details))
        self._last, self._left_out = now, 0


def one_line(detail: object) -> object:
    """Text that cannot look like a line of its own, and is not endless."""
    if isinstance(detail, int | float):
        return detail
    text = str(detail)
    if len(text) > 1000:
        text = text[:1000] + "..."
    return text if text.isprintable() else repr(text)[1:-1]
