"""Adds that a bookie had no room for (TOO_MANY_REQUESTS): when to send them again.

A bookie that refuses for want of room is alive, and to replace it would move its load to the next one, which then
refuses, too. So what it refused is sent again after a pause that grows; whether the bookie has failed is for the
writer to say, by its progress. Until the bookie has taken them the packets are held, also those of entries
that others have confirmed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from bookkeeper.ids import BookieId
from bookkeeper.net.backoff import Backoff
from bookkeeper.seams import Rng

PAUSES: Final = Backoff(first_s=0.01, max_s=0.25)
"""Well below the time without progress after which a bookie counts as failed."""

Resend = Callable[[BookieId, int, int], bool | None]
"""(bookie, first entry, count): send what it holds of these. False: nothing was sent, for their packets are gone, or
the bookie is; then no answer comes, and nothing is held for one."""


@dataclass(slots=True)
class _BusyBookie:
    delays: Iterator[float]
    refused: list[tuple[int, int]] = field(default_factory=list)
    """(first, end) of what is to be sent again."""
    again: tuple[int, int] | None = None
    """(first, end) of what was sent again; its last entry is not answered yet."""
    timer: asyncio.TimerHandle | None = None


class BackPressure:
    """Of one writer. ``resend`` is called from the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, rng: Rng, resend: Resend) -> None:
        self._loop = loop
        self._rng = rng
        self._resend = resend
        self._busy: dict[BookieId, _BusyBookie] = {}

    def __bool__(self) -> bool:
        return bool(self._busy)

    @property
    def lowest(self) -> int | None:
        """The lowest entry whose packet is still needed for one of them."""
        return min((first for _, first, _ in self.open()), default=None)

    def open(self) -> Iterator[tuple[BookieId, int, int]]:
        """(bookie, first, last) of everything that was refused and is not known to have been taken since."""
        for bookie, busy in self._busy.items():
            for first, end in busy.refused if busy.again is None else [*busy.refused, busy.again]:
                yield bookie, first, end - 1

    def refused(self, bookie: BookieId, first: int, count: int) -> None:
        """``bookie`` had no room for these."""
        busy = self._busy.get(bookie)
        if busy is None:
            busy = self._busy[bookie] = _BusyBookie(PAUSES.delays(self._rng))
        runs = busy.refused
        if runs and runs[-1][1] == first:
            runs[-1] = (runs[-1][0], first + count)
        else:
            runs.append((first, first + count))
        self._answered(busy, first, count)
        if busy.timer is None:
            busy.timer = self._loop.call_later(next(busy.delays), self._due, bookie)

    def taken(self, bookie: BookieId, first: int, count: int) -> None:
        """``bookie`` has stored these."""
        busy = self._busy.get(bookie)
        if busy is not None and self._answered(busy, first, count):
            if busy.refused:
                busy.delays = PAUSES.delays(self._rng)
            else:
                self.forget(bookie)

    def forget(self, bookie: BookieId) -> None:
        """It has failed, or left the ensemble."""
        busy = self._busy.pop(bookie, None)
        if busy is not None and busy.timer is not None:
            busy.timer.cancel()

    def stop(self) -> None:
        for bookie in list(self._busy):
            self.forget(bookie)

    @staticmethod
    def _answered(busy: _BusyBookie, first: int, count: int) -> bool:
        """Whether this is the answer to the last of what was sent again."""
        if busy.again is None or not first < busy.again[1] <= first + count:
            return False
        busy.again = None
        return True

    def _due(self, bookie: BookieId) -> None:
        busy = self._busy[bookie]
        busy.timer = None
        runs, busy.refused = sorted(busy.refused), []
        sent = [run for run in runs if self._resend(bookie, run[0], run[1] - run[0]) is not False]
        if busy.again is not None:
            sent.append(busy.again)
        if sent:
            busy.again = (min(first for first, _ in sent), max(end for _, end in sent))
        else:
            self.forget(bookie)
