"""Sends adds again for which a bookie had no room.

:mod:`bookkeeper.ledger.write.refused_adds` decides what is sent again, and when. This module keeps the timers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

from bookkeeper.ids import BookieId
from bookkeeper.ledger.write import RefusedAdds
from bookkeeper.net.backoff import Backoff
from bookkeeper.seams import Rng

PAUSES: Final = Backoff(first_s=0.01, max_s=0.25)
"""The pauses between two tries: well below the time without progress after which a bookie counts as failed."""

Resend = Callable[[BookieId, int, int], bool | None]
"""Called with (bookie, first entry, count) to send the bookie's share of these entries. It returns False if nothing was
sent, because the packets or the bookie are gone; then no answer will come."""


def _send_nothing(bookie: BookieId, first: int, count: int) -> bool:
    return False


class BackPressure:
    """The timers of one writer. ``resend`` is called from the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, rng: Rng, resend: Resend) -> None:
        self._loop = loop
        self._resend = resend
        self._adds = RefusedAdds(lambda: PAUSES.delays(rng))
        self._timers: dict[BookieId, asyncio.TimerHandle] = {}

    def __bool__(self) -> bool:
        return bool(self._adds.busy)

    @property
    def lowest(self) -> int | None:
        """The lowest entry whose packet is still needed for one of the bookies."""
        return self._adds.lowest

    def pending(self) -> Iterator[tuple[BookieId, int, int]]:
        """(bookie, first, last) of everything that was refused and is not known to be accepted since."""
        return self._adds.pending()

    def on_refused(self, bookie: BookieId, first: int, count: int) -> None:
        """``bookie`` had no room for these entries."""
        pause = self._adds.on_refused(bookie, first, count)
        if pause is not None:
            self._timers[bookie] = self._loop.call_later(pause, self._due, bookie)

    def on_accepted(self, bookie: BookieId, first: int, count: int) -> None:
        """``bookie`` has stored these entries."""
        self._adds.on_accepted(bookie, first, count)

    def forget(self, bookie: BookieId) -> None:
        """Forget what ``bookie`` refused: it has failed, or left the ensemble."""
        self._adds.forget(bookie)
        timer = self._timers.pop(bookie, None)
        if timer is not None:
            timer.cancel()

    def stop(self) -> None:
        """Forget what every bookie refused."""
        for bookie in list(self._adds.busy):
            self.forget(bookie)

    def end(self) -> None:
        """Stop, for good: the writer is not called any more."""
        self.stop()
        self._resend = _send_nothing

    def _due(self, bookie: BookieId) -> None:
        del self._timers[bookie]
        runs = self._adds.take_due(bookie)
        sent = [run for run in runs if self._resend(bookie, run[0], run[1] - run[0]) is not False]
        self._adds.on_sent_again(bookie, sent)
