"""A reader that counts as idle after some time without news, if its options say so. Pure; times are the loop's."""

from __future__ import annotations

from segments.errors import ReaderIdleError
from segments.position import Position

_ROUNDING_S = 1e-6


def busy_until(until: float, news: float | None, idle_s: float | None) -> float:
    """When to stop waiting: at ``until``, but not behind the moment at which the reader counts as idle.

    ``news`` is when something came last; None: nothing was asked for yet. ``idle_s``: None, if it never counts as idle.
    """
    return until if idle_s is None or news is None else min(until, news + idle_s)


def idle_error(
    stream: str, position: Position, now: float, news: float | None, idle_s: float | None
) -> ReaderIdleError | None:
    """What to raise if the reader counts as idle now."""
    if idle_s is None or news is None or now - news < idle_s - _ROUNDING_S:
        return None
    text = f"nothing came from stream {stream} for {idle_s:g} s; Reader.state() tells whether it is idle or stuck"
    return ReaderIdleError(text, stream=stream, position=position)
