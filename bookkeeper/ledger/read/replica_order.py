"""The order in which the bookies of an ensemble are asked for entries: they take turns, and doubtful ones come last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bookkeeper.ids import BookieId

Doubts = Callable[[BookieId], Any]
"""The doubts about a bookie, as a sort key: a bookie whose key sorts higher is asked later."""


class ReplicaOrder:
    """The order for one reader. Successive reads begin with successive bookies, so that all share the load."""

    __slots__ = ("_turn",)

    def __init__(self) -> None:
        self._turn = 0

    def next(self, ensemble: Sequence[BookieId], doubts: Doubts | None = None) -> Sequence[BookieId]:
        """The ensemble in the order of asking. ``doubts`` None: there are no doubts about any bookie."""
        self._turn = (self._turn + 1) % len(ensemble)
        order = (*ensemble[self._turn :], *ensemble[: self._turn])
        return order if doubts is None else sorted(order, key=doubts)

    def validate_state(self) -> None:
        """What must hold between any two calls. For tests."""
        assert self._turn >= 0
