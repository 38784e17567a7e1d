"""Log lines that somebody outside can cause, or that repeat: seldom, with the number of those left out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from typing import Final

GAP_S: Final = 1.0
"""Least time between two lines of one kind, unless somebody says another."""


class RateLimit:
    """Decides which lines are written: of each kind one in ``gap_s`` seconds. Kinds are few: they are remembered."""

    def __init__(self, gap_s: float = GAP_S) -> None:
        self._gap_s = gap_s
        self._kinds: dict[Hashable, tuple[float, int]] = {}
        """When a line of this kind was written, and how many were left out since."""

    def admit(self, now: float, kind: Hashable = None) -> int | None:
        """How many of this kind were left out before this line; None: this one is left out, too."""
        written, left_out = self._kinds.get(kind, (float("-inf"), 0))
        if now < written + self._gap_s:
            self._kinds[kind] = (written, left_out + 1)
            return None
        self._kinds[kind] = (now, 0)
        return left_out


class RateLimitedLogger:
    """Writes warnings as :class:`RateLimit` decides."""

    def __init__(self, logger: logging.Logger, now: Callable[[], float], gap_s: float = GAP_S) -> None:
        """``now``: seconds, of a clock that never goes back."""
        self._logger = logger
        self._now = now
        self._limit = RateLimit(gap_s)

    def warning(self, text: str, *details: object, kind: Hashable = None) -> None:
        """A line, unless there was one of its kind a moment ago. What comes from outside is among ``details``, each
        shown in one line."""
        left_out = self._limit.admit(self._now(), kind)
        if left_out is not None:
            self._logger.warning(text + counted(left_out), *(one_line(detail) for detail in details))

    def error(self, text: str, error: BaseException) -> None:
        """A line with the traceback of an error that nobody foresaw, unless there was one from the same place of the
        code a moment ago."""
        raised = error.__traceback__
        while raised is not None and raised.tb_next is not None:
            raised = raised.tb_next
        place = (raised.tb_frame.f_code, raised.tb_lineno) if raised is not None else None
        left_out = self._limit.admit(self._now(), (type(error), place))
        if left_out is not None:
            self._logger.error(text + counted(left_out), exc_info=error)


def counted(left_out: int) -> str:
    """The end of a line before which so many were left out."""
    return f" ({left_out} more of this kind)" if left_out else ""


def one_line(detail: object) -> object:
    """Text that cannot look like a line of its own, and is not endless."""
    if isinstance(detail, int | float):
        return detail
    text = str(detail)
    if len(text) > 1000:
        text = text[:1000] + "..."
    return text if text.isprintable() else repr(text)[1:-1]
