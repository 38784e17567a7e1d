"""The parts of a writer's state: where it stands, runs of pending adds, and the members of the ensemble."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from itertools import islice

from bookkeeper.errors import BookKeeperError, LedgerFencedError
from bookkeeper.ids import BookieId
from bookkeeper.ledger.acks import Acks


class WriterState(Enum):
    """The state of a writer; see the drawing in :mod:`bookkeeper.ledger.writer`."""

    OPEN = "open"
    CLOSING = "closing"
    CLOSED = "closed"
    FAILED = "failed"


class PendingAdds:
    """A run of pending adds."""

    __slots__ = ("bytes", "deadline", "end", "first", "sizes")

    def __init__(self, first: int, sizes: Sequence[int], deadline: float) -> None:
        self.first = first
        self.end = first + len(sizes)
        self.sizes: Sequence[int] = sizes
        self.bytes = sum(sizes)
        self.deadline = deadline

    def cut(self, upto: int) -> int:
        """Drop the entries below ``upto``. Returns how many bytes they have."""
        count = upto - self.first
        dropped = sum(islice(self.sizes, count))
        self.sizes = self.sizes[count:]
        self.first = upto
        self.bytes -= dropped
        return dropped


class EnsembleMember:
    """A member of the ensemble."""

    __slots__ = ("acks", "bookie", "failure", "live", "position", "progress_at", "returned", "suspected_at")

    def __init__(self, bookie: BookieId, position: int, acks: Acks, now: float) -> None:
        self.bookie = bookie
        self.position = position
        self.acks = acks
        self.live = True
        self.failure: BookKeeperError | None = None
        """The error of its last failure."""
        self.returned = False
        """Whether it failed, and its incarnation was checked since. It is used again unless the change in flight
        replaces it."""
        self.progress_at = now
        """When it last acknowledged anything, or when something was first sent to it after that."""
        self.suspected_at: float | None = None
        """When it was first seen to make no progress while others did."""


def fenced_error() -> LedgerFencedError:
    """The error with which a writer ends when another client has fenced its ledger."""
    return LedgerFencedError("another client recovers this ledger")
