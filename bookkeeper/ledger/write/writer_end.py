"""The end of a writer: whether it is open, why it is not, and whether it may still close its ledger.

    open     -- fail -->  failed
    open     -- begin_close -->  closing  -- on_closed -->  closed
    closing  -- on_close_failed, on_force_failed -->  failed
    failed   -- begin_close, if that may still be -->  closing

Rules
    W6   A failed writer stays failed; nothing is appended or confirmed any more.
    R13  A writer closes only what it may: not after a fence, and with deferred sync only what it has forced, unless its
         caller gives up the rest.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from bookkeeper.errors import BookKeeperError, ClientClosedError, LedgerClosedError, check
from bookkeeper.ledger.ensemble.sync_policy import SyncPolicy


class WriterState(Enum):
    """The state of a writer; see the drawing above."""

    OPEN = "open"
    CLOSING = "closing"
    CLOSED = "closed"
    FAILED = "failed"


# As globals: to look a member up in its class costs ten times as much (CPython 3.11).
OPEN: Final = WriterState.OPEN
CLOSING: Final = WriterState.CLOSING


class WriterEnd:
    """The end of one writer; ``sync`` says after which failures it may close the ledger."""

    __slots__ = ("_may_close", "_sync", "error", "state", "waits_for_force")

    def __init__(self, sync: SyncPolicy) -> None:
        self._sync = sync
        self.state = WriterState.OPEN
        self.error: BookKeeperError | None = None
        """Why nothing can be appended any more; None while appends are possible."""
        self.waits_for_force = False
        """Whether a close waits only for the force of what is acknowledged (W11)."""
        self._may_close = True

    def fail(self, error: BookKeeperError) -> None:
        """An open writer ends for good (W6)."""
        self.state = WriterState.FAILED
        self.error = error
        self._may_close = self._sync.may_close_after(error)

    def begin_close(self, *, force: bool) -> BookKeeperError:
        """Begin to close the ledger. Returns the error for those who want to append from now on.

        Args:
            force: something acknowledged is not durable everywhere, and is forced before.

        Raises: the error that ended the writer, if it may not close the ledger, or cannot force it, any more.
        """
        if self.error is not None and (force or not self._may_close):
            raise self.error
        self.state = WriterState.CLOSING
        self.waits_for_force = force
        self.error = LedgerClosedError("the ledger was closed by its writer")
        return self.error

    def may_close_again(self, error: BaseException | None, *, force: bool) -> bool:
        """May ``close(force=force)`` follow one that ended with ``error``?

        Yes if it failed for want of the metadata store, or of a force that is not wanted any more.
        """
        if not isinstance(error, BookKeeperError) or isinstance(error, ClientClosedError):
            return False
        return (error.retryable or not force) and self._may_close

    def on_force_failed(self, error: BookKeeperError) -> None:
        """What is acknowledged cannot be made durable, so the ledger stays open. Only a close without force may
        follow."""
        self.waits_for_force = False
        self.state = WriterState.FAILED
        self.error = error
        self._may_close = True

    def on_close_failed(self, error: BookKeeperError) -> None:
        """The metadata were not changed. A close may follow after an error that may pass."""
        if self.state is WriterState.CLOSING:
            self.state = WriterState.FAILED
            self.error = error
            self._may_close = error.retryable

    def on_closed(self) -> None:
        """The ledger is closed."""
        self.state = WriterState.CLOSED

    def validate_state(self, *, forces: bool) -> None:
        """Derive again what must hold between the fields. For tests.

        Args:
            forces: a force is under way.

        Raises: InvariantError.
        """
        check((self.state is WriterState.OPEN) == (self.error is None), "W6", (self.state, self.error))
        closes_by_force = self.state is WriterState.CLOSING and forces
        check(closes_by_force or not self.waits_for_force, "W11", (self.state, forces))
