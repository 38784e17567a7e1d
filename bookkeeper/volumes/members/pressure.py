"""While any volume has too much to write, callers pause. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Callable


class Pressure:
    """Owned by the loop's thread."""

    def __init__(self) -> None:
        self._pressed: set[int] = set()
        self._pause: Callable[[], None] = _nothing
        self._resume: Callable[[], None] = _nothing

    def on_change(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        """Who to tell."""
        self._pause, self._resume = pause, resume

    def begin(self, number: int) -> None:
        """A volume has too much to write."""
        self._pressed.add(number)
        self._pause()

    def end(self, number: int) -> None:
        """A volume has caught up, or is gone: callers go on if it was the last one."""
        self._pressed.discard(number)
        if not self._pressed:
            self._resume()


def _nothing() -> None:
    pass
