"""Adds that a bookie had no room for (TOO_MANY_REQUESTS): what to send again, and when.

A bookie that refuses for want of room is alive. To replace it would move its load to the next bookie, which then
refuses, too (F11). So what it refused is sent again after a pause that grows. Its progress decides whether the bookie
has failed (W15). Its packets are kept until it has accepted them, also those of entries that others have confirmed.

    refused  -->  (a pause)  -->  due: send again  -- on_sent_again -->  accepted, or refused again

Rules
    W8   A packet that is still to be sent again is kept: ``lowest`` says from which entry on.
    W12  Nothing is kept for an answer that cannot come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from bookkeeper.errors import check
from bookkeeper.ids import BookieId

EntryRange = tuple[int, int]
"""(first, end): the entries first .. end - 1."""


@dataclass(slots=True)
class _BusyBookie:
    pauses: Iterator[float]
    refused: list[EntryRange] = field(default_factory=list)
    """What is to be sent again."""
    again: EntryRange | None = None
    """What was sent again; its last entry is not answered yet."""
    pausing: bool = False
    """Has a pause begun, after which ``take_due`` is called?"""


class RefusedAdds:
    """The refused adds of one writer.

    Args:
        pauses: makes the pauses of one bookie, in seconds: the first, the second, ... without end.
    """

    def __init__(self, pauses: Callable[[], Iterator[float]]) -> None:
        self._pauses = pauses
        self.busy: dict[BookieId, _BusyBookie] = {}
        """The bookies that refused something and are not known to have accepted it since."""

    @property
    def lowest(self) -> int | None:
        """The lowest entry whose packet is still needed for one of them."""
        return min((first for _, first, _ in self.pending()), default=None)

    def pending(self) -> Iterator[tuple[BookieId, int, int]]:
        """(bookie, first, last) of everything that was refused and is not known to be accepted since."""
        for bookie, busy in self.busy.items():
            for first, end in busy.refused if busy.again is None else [*busy.refused, busy.again]:
                yield bookie, first, end - 1

    def on_refused(self, bookie: BookieId, first: int, count: int) -> float | None:
        """``bookie`` had no room for these entries. Returns the pause in seconds after which to call ``take_due``; None
        if such a pause has begun already."""
        busy = self.busy.get(bookie)
        if busy is None:
            busy = self.busy[bookie] = _BusyBookie(self._pauses())
        runs = busy.refused
        if runs and runs[-1][1] == first:
            runs[-1] = (runs[-1][0], first + count)
        else:
            runs.append((first, first + count))
        self._ends_repeat(busy, first, count)
        if busy.pausing:
            return None
        busy.pausing = True
        return next(busy.pauses)

    def on_accepted(self, bookie: BookieId, first: int, count: int) -> None:
        """``bookie`` has stored these entries."""
        busy = self.busy.get(bookie)
        if busy is not None and self._ends_repeat(busy, first, count):
            if busy.refused:
                busy.pauses = self._pauses()
            else:
                self.forget(bookie)

    @staticmethod
    def _ends_repeat(busy: _BusyBookie, first: int, count: int) -> bool:
        """Is this the answer to the last entry of what was sent again?"""
        if busy.again is None or not first < busy.again[1] <= first + count:
            return False
        busy.again = None
        return True

    def take_due(self, bookie: BookieId) -> list[EntryRange]:
        """The pause is over. Returns what to send again, the lowest first; report ``on_sent_again``."""
        busy = self.busy[bookie]
        busy.pausing = False
        runs, busy.refused = sorted(busy.refused), []
        return runs

    def on_sent_again(self, bookie: BookieId, sent: Sequence[EntryRange]) -> None:
        """These entries were sent. The others have no packets any more; no answer will come for them, so they are
        forgotten."""
        busy = self.busy.get(bookie)
        if busy is None:
            return
        runs = [*sent, busy.again] if busy.again is not None else list(sent)
        if runs:
            busy.again = (min(first for first, _ in runs), max(end for _, end in runs))
        else:
            self.forget(bookie)

    def forget(self, bookie: BookieId) -> None:
        """Forget what ``bookie`` refused: it has failed, or left the ensemble."""
        self.busy.pop(bookie, None)

    def validate_state(self) -> None:
        """Derive again what must hold between pauses and answers. For tests; not between due and on_sent_again.

        Raises: InvariantError.
        """
        for bookie, busy in self.busy.items():
            check(busy.pausing == bool(busy.refused), "W15", (bookie, busy))
            check(bool(busy.refused) or busy.again is not None, "W12", (bookie, busy))
            runs = busy.refused if busy.again is None else [*busy.refused, busy.again]
            check(all(first < end for first, end in runs), "W8", (bookie, busy))
