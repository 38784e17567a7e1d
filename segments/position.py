"""Where a record stands in a stream: a segment, an entry of its ledger, and a slot in that entry."""

from __future__ import annotations

from typing import ClassVar, Final, NamedTuple

_MAX: Final = 2**63 - 1


class _PositionFields(NamedTuple):
    segment: int
    entry: int
    slot: int


class Position(_PositionFields):
    """Where one record stands. Positions are ordered, hashable and picklable."""

    __slots__ = ()

    EARLIEST: ClassVar[Position]
    """Before or at the first record of every stream."""

    LATEST: ClassVar[Position]
    """Behind the last record of every stream."""

    BEFORE_FIRST: ClassVar[Position]
    """Before the first record of every stream: "everything up to here" is nothing."""

    @property
    def next(self) -> Position:
        """The smallest position behind this one. No record need be there."""
        return Position(self.segment, self.entry, self.slot + 1)

    def __str__(self) -> str:
        return f"{self.segment}:{self.entry}:{self.slot}"


Position.EARLIEST = Position(1, 0, 0)
Position.LATEST = Position(_MAX, _MAX, _MAX)
Position.BEFORE_FIRST = Position(1, 0, -1)

EARLIEST: Final = Position.EARLIEST
LATEST: Final = Position.LATEST
FIRST_SEGMENT: Final = 1
"""The number of a stream's first segment."""
