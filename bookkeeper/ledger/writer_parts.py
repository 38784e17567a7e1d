"""What a writer keeps track of: its state, runs of pending adds, and the members of the ensemble."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from itertools import islice

from bookkeeper.errors import BookKeeperError, LedgerFencedError
from bookkeeper.ids import BookieId
from bookkeeper.ledger.acks import Acks


class WriterState(Enum):
    """Where a writer stands; see the drawing in :mod:`bookkeeper.ledger.writer`."""

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
        """Drop the entries below ``upto``; their bytes."""
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
        """Why it is not live, or was not the last time."""
        self.returned = False
        """Failed, and its incarnation was checked since: it is readmitted if the change in flight leaves it its
        place."""
        self.progress_at = now
        """When it last acknowledged anything, or was first sent something after that."""
        self.suspected_at: float | None = None
        """When it was first seen to stand still while others moved on."""


def fenced_error() -> LedgerFencedError:
    """Why a writer ends when another client has fenced its ledger."""
    return LedgerFencedError("another client recovers this ledger")
