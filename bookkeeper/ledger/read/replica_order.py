"""The order in which the bookies of an ensemble are asked for entries: they take turns, and doubtful ones come last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bookkeeper.ids import BookieId

Doubts = Callable[[BookieId], Any]
"""The doubts about a bookie, as a sort key: a bookie whose key sorts higher is asked later."""


class ReplicaOrder:
    """The order for one reader. Successive reads begin with successive bookies, so that all share the load."""

    __slots__ = ("_of", "_orders", "_turn")

    def __init__(self) -> None:
        self._turn = 0
        self._of: Sequence[BookieId] = ()
        """The ensemble of the latest read."""
        self._orders: list[tuple[BookieId, ...]] = []
        """It, beginning with each of its bookies."""

    def next(self, ensemble: Sequence[BookieId], doubts: Doubts | None = None) -> Sequence[BookieId]:
        """The ensemble in the order of asking. ``doubts`` None: there are no doubts about any bookie."""
        if ensemble is not self._of:
            self._of, size = ensemble, len(ensemble)
            self._orders = [(*ensemble[turn:], *ensemble[:turn]) for turn in range(size)]
        self._turn = (self._turn + 1) % len(self._orders)
        order = self._orders[self._turn]
        return order if doubts is None else sorted(order, key=doubts)

    def validate_state(self) -> None:
        """What must hold between any two calls. For tests."""
        assert self._turn >= 0
        assert all(order[0] == bookie for order, bookie in zip(self._orders, self._of, strict=True))
