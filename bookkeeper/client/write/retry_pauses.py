"""How long a writer waits before each attempt at a bookie that failed. Pure: what happened in, pauses out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from bookkeeper.ids import BookieId

RELAPSE_S: Final = 30.0
"""A bookie that fails again within so many seconds after it came back is tried again later each time."""


class RetryPauses:
    """The pauses of one writer. They grow with each attempt, and go on growing if a bookie soon fails again."""

    __slots__ = ("_begin", "_present", "_returned")

    def __init__(self, begin: Callable[[], Iterator[float]]) -> None:
        """``begin`` makes the pauses of a bookie that fails for the first time: growing, without end."""
        self._begin = begin
        self._present: dict[BookieId, Iterator[float]] = {}
        """The pauses of each bookie that is away."""
        self._returned: dict[BookieId, tuple[float, Iterator[float]]] = {}
        """When a bookie was last found to answer again, and the pauses that follow if it fails again soon."""

    def on_failed(self, bookie: BookieId, now: float) -> Iterator[float]:
        """``bookie`` failed. Returns the seconds to wait before each attempt."""
        returned_at, pauses = self._returned.get(bookie, (0.0, None))
        if pauses is None or now - returned_at > RELAPSE_S:
            pauses = self._begin()
        self._present[bookie] = pauses
        return pauses

    def on_returned(self, bookie: BookieId, now: float) -> None:
        """``bookie`` answers again."""
        self._returned[bookie] = (now, self._present.pop(bookie))

    def validate_state(self) -> None:
        """What must hold between any two calls. For tests."""
        mine = [(bookie, id(pauses)) for bookie, pauses in self._present.items()]
        mine += [(bookie, id(pauses)) for bookie, (_, pauses) in self._returned.items()]
        owners = {pauses: bookie for bookie, pauses in mine}
        assert all(owners[pauses] == bookie for bookie, pauses in mine), "two bookies share their pauses"
