"""Whether a bookie's disk takes adds: writable, read-only, failed or closed. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Callable

from bookkeeper.errors import BookieFailedError
from bookkeeper.storage.base.results import EngineState


class DiskState:
    """Owned by the loop's thread."""

    def __init__(self) -> None:
        self.now = EngineState.WRITABLE
        """Changed by :meth:`set` alone."""
        self.reason = ""
        """Why; empty as long as nothing was told."""
        self.closing = False
        """A stop has begun."""
        self._callback: Callable[[EngineState, str], None] | None = None

    def on_change(self, callback: Callable[[EngineState, str], None]) -> None:
        """Called with the new state and the reason at every change."""
        self._callback = callback

    def set(self, state: EngineState, reason: str) -> None:
        """FAILED and CLOSED are final."""
        if self.now in (EngineState.CLOSED, EngineState.FAILED):
            return
        self.reason = reason
        if state is self.now:
            return
        self.now = state
        if self._callback is not None:
            self._callback(state, reason)

    def begin_closing(self) -> None:
        """From now on nothing is taken any more."""
        self.closing = True

    def refuse_if_stopped(self) -> None:
        """
        Raises:
            BookieFailedError: the disk failed, is closed, or is being closed.
        """
        if self.closing or self.now in (EngineState.FAILED, EngineState.CLOSED):
            raise BookieFailedError(f"the disk is {self.now.value if not self.closing else 'closing'}")
