"""Decides when to send an explicit last add confirmed. Pure: requests and turns of the loop in, decisions out."""

from __future__ import annotations

from enum import Enum
from typing import Final

from bookkeeper.ledger.write import PublishLac

LAC_TURNS: Final = 5
"""Turns of the loop (microseconds, when it is idle) before an explicit last add confirmed goes out. A caller that
appends again from inside a task or ``wait_for`` needs some turns to be woken; its entry then carries the news."""

PAUSING_MIN: Final = 8
"""After so many in a row that no append has carried, the writer counts as one that pauses: the next one is sent after
one turn, so that readers have it sooner."""

PROBE_EVERY: Final = 16
"""Of a writer that pauses one in so many waits all turns, to find out whether appends carry it again."""

LAC_OTHERS_S: Final = 0.002
"""Seconds after the ack quorum until it is sent to the other bookies, unless an add has carried it."""


class WaitAnotherTurn(Enum):
    """Ask again after another turn of the loop."""

    LATER = "another turn"


class LacTurns:
    """Counts idle turns of one writer's loop. An append that comes meanwhile carries the news, and ends the count."""

    __slots__ = ("_left", "_uncarried", "_wanted")

    def __init__(self) -> None:
        self._wanted: PublishLac | None = None
        self._left = 0
        self._uncarried = 0
        """How many in a row went out, and were not carried by an append."""

    def request(self, publish: PublishLac) -> bool:
        """Ask to publish a last add confirmed. True: the count begins now; False: it is under way."""
        begins = self._wanted is None
        self._wanted = publish
        if begins:
            self._left = 1 if self._uncarried >= PAUSING_MIN and self._uncarried % PROBE_EVERY else LAC_TURNS
        return begins

    def on_turn(self, *, idle: bool) -> WaitAnotherTurn | PublishLac | None:
        """A turn has passed. Returns what to publish; None: an append carries it (not ``idle``)."""
        self._left -= 1
        if idle and self._left > 0:
            return WaitAnotherTurn.LATER
        wanted, self._wanted = self._wanted, None
        self._uncarried = self._uncarried + 1 if idle else 0
        return wanted if idle else None

    def validate_state(self) -> None:
        """What must hold between any two calls. For tests."""
        assert self._wanted is None or 0 < self._left <= LAC_TURNS, "news waits for a turn that does not come"
        assert self._uncarried >= 0
