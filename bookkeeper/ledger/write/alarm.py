"""The time at which a writer has to be woken: the earliest that one of its parts has set."""

from __future__ import annotations

from bookkeeper.ledger.effects import WakeAt
from bookkeeper.ledger.write.effects import Effect


class Alarm:
    """The alarm of one writer. Times are seconds of the shell's clock."""

    __slots__ = ("at",)

    def __init__(self) -> None:
        self.at: float | None = None
        """When the shell calls ``on_tick``; None: it was not asked to."""

    def wake_by(self, time: float, effects: list[Effect]) -> None:
        """Have the writer woken at ``time`` at the latest."""
        if self.at is None or time < self.at:
            self.at = time
            effects.append(WakeAt(time))

    def on_tick(self) -> None:
        """The alarm fired; set it again for later deadlines."""
        self.at = None
