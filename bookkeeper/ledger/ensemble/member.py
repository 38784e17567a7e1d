"""One bookie of a writer's ensemble."""

from __future__ import annotations

from bookkeeper.errors import BookKeeperError
from bookkeeper.ids import BookieId
from bookkeeper.ledger.ensemble.acks import Acks


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
