"""What a recovery keeps track of: the reading of one entry, and its writing back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bookkeeper.errors import BookKeeperError
from bookkeeper.ids import BookieId


@dataclass(slots=True)
class EntryRead:
    """One entry that is being looked for. Every answer is to a fencing read (R3) of the bookie's *present* question."""

    entry_id: int
    write_set: tuple[BookieId, ...]
    """As the last fragment was when recovery began (R5)."""
    fence: bool
    asked: set[BookieId] = field(default_factory=set)
    """Asked, and not answered yet."""
    negative: set[BookieId] = field(default_factory=set)
    unknown: dict[BookieId, BookKeeperError | None] = field(default_factory=dict)
    rounds: int = 1
    due: float | None = None
    """When to ask the rest (hedge), or everyone unknown again."""

    def unasked(self) -> list[BookieId]:
        """Who was not asked in this round."""
        return [b for b in self.write_set if b not in self.asked | self.negative | self.unknown.keys()]


@dataclass(slots=True)
class EntryWriteBack:
    """One entry that is being written back (R7)."""

    entry_id: int
    length: int
    sent: set[BookieId] = field(default_factory=set)
    """Sent, and not answered yet."""
    acked: set[BookieId] = field(default_factory=set)
    failed: dict[BookieId, BookKeeperError] = field(default_factory=dict)
    rounds: int = 1
    due: float | None = None
    """When to send to those who failed again."""


def reasons(errors: Sequence[BookKeeperError | None]) -> str:
    """What they said, each once, for an error's text."""
    return "; ".join(dict.fromkeys(f"{type(e).__name__}: {e}" if e else "no usable answer" for e in errors))
