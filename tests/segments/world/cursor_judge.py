"""Compares what readers by a cursor were given, and said to be done, with what the cursor says (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from segments.cursors.cursor_state import CursorState
from segments.record import StoredRecord


@dataclass(slots=True)
class CursorJudge:
    """What was handed out by one cursor, to all its owners, and what of it is done."""

    handed: set[int] = field(default_factory=set)
    """Sequence numbers that some owner was given."""
    said: set[int] = field(default_factory=set)
    """Those that an owner has said to be done, or was about to."""
    done: set[int] = field(default_factory=set)
    """Those of which an owner was told that this is stored."""
    problems: list[str] = field(default_factory=list)

    def opened(self) -> frozenset[int]:
        """An owner opens the cursor: it must be given nothing of this any more."""
        return frozenset(self.done)

    def on_handed(self, seq_no: int, never: frozenset[int]) -> None:
        """A record was handed out to the owner who has got ``never`` when it opened the cursor."""
        if seq_no in never:
            self._find(f"record {seq_no} was handed out although it was done")
        self.handed.add(seq_no)

    def on_said(self, seq_nos: Iterable[int]) -> None:
        """An owner says that these are done."""
        self.said.update(seq_nos)

    def on_done(self, seq_nos: Iterable[int]) -> None:
        """It was told that this is stored."""
        self.done.update(seq_nos)

    def judge(self, state: CursorState, found: Sequence[StoredRecord]) -> list[str]:
        """Every problem. ``found`` is the stream as readers see it at the end."""
        for record in found:
            number = record.seq_no
            is_done = number < state.mark.seq_no or any(first <= number < end for first, end, *_ in state.ranges)
            if is_done and number not in self.said:
                self._find(f"the cursor says that record {number} is done, and nobody said so")
            if not is_done and number in self.done:
                self._find(f"record {number} was done, and the cursor does not know it any more")
        return self.problems

    def _find(self, problem: str) -> None:
        if len(self.problems) < 10:
            self.problems.append(problem)
