"""The state that a recovery keeps of one entry while it reads it, and while it writes it back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bookkeeper.errors import BookKeeperError
from bookkeeper.ids import BookieId


@dataclass(slots=True)
class EntryRead:
    """One entry that is being read. Every answer counted here belongs to the latest fencing read (R3) of its bookie."""

    entry_id: int
    write_set: tuple[BookieId, ...]
    """By the ensemble that the last fragment had when the recovery began (R5)."""
    fence: bool
    asked: set[BookieId] = field(default_factory=set)
    """The bookies that were asked and have not answered yet."""
    negative: set[BookieId] = field(default_factory=set)
    unknown: dict[BookieId, BookKeeperError | None] = field(default_factory=dict)
    rounds: int = 1
    due: float | None = None
    """When to ask the rest of the write set (hedge), or again those whose answer is unknown."""

    def unasked(self) -> list[BookieId]:
        """The bookies that were not asked in this round."""
        return [b for b in self.write_set if b not in self.asked | self.negative | self.unknown.keys()]


@dataclass(slots=True)
class EntryWriteBack:
    """One entry that is being written back (R7)."""

    entry_id: int
    length: int
    sent: set[BookieId] = field(default_factory=set)
    """The bookies to which it was sent and that have not answered yet."""
    acked: set[BookieId] = field(default_factory=set)
    failed: dict[BookieId, BookKeeperError] = field(default_factory=dict)
    rounds: int = 1
    due: float | None = None
    """When to send it again to the bookies that failed."""


def reasons(errors: Sequence[BookKeeperError | None]) -> str:
    """What the bookies answered, each answer once, for the text of an error."""
    return "; ".join(dict.fromkeys(str(error) if error else "no usable answer" for error in errors))
