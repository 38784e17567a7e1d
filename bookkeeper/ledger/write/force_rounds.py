"""The rounds of ``force()``, which make everything that was acknowledged durable on every bookie of the ensemble.

A round has a target: the highest id that was acknowledged when it began. A bookie is asked after it has acknowledged
everything that it holds up to the target. So its answer covers these entries in whatever order the bookie works, also
those that it first refused for want of room. The round is complete when every bookie has answered.

There is one round at a time. A caller that comes meanwhile shares the present round if that has the same target.
Otherwise it waits for the next round, which all such callers share.

Rules
    W11  A round completes only when *every* bookie of the ensemble has answered it, each after it had acknowledged
         everything up to the round's target. One error ends the round, which then has proved nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from bookkeeper.errors import BookKeeperError, RequestTimedOutError, check
from bookkeeper.ids import NO_ENTRY, BookieId, EntryId
from bookkeeper.ledger.ensemble.member import EnsembleMember
from bookkeeper.ledger.write.effects import Effect, ForceDone, ForceFailed, SendForce

RETRY_S: Final = 0.1
"""Seconds after which a bookie that had no room for the force of a close is asked again."""


@dataclass(slots=True)
class _Round:
    number: int
    target: EntryId
    length: int
    deadline: float
    asked: set[BookieId] = field(default_factory=set)
    done: set[BookieId] = field(default_factory=set)


class ForceRounds:
    """The rounds of one writer. It calls ``proceed`` after every event that may let a round continue."""

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self.forced: EntryId = NO_ENTRY
        """The highest target of a complete round."""
        self.forced_length = 0
        """Payload bytes of the entries up to ``forced``."""
        self.active = False
        """Whether a round is under way. The writer looks at it for every run of acks."""
        self._round: _Round | None = None
        self._number = 0
        self._next_deadline: float | None = None
        """The deadline of the next round, if somebody waits for one."""

    @property
    def deadline(self) -> float | None:
        """When ``on_tick`` has to be called at the latest."""
        return self._round.deadline if self._round is not None else None

    def request(self, acknowledged: EntryId, length: int, now: float) -> int:
        """Make everything up to ``acknowledged`` durable, which is ``length`` payload bytes.

        Returns the number of the round that does it; call ``proceed`` then.
        """
        if self._round is None:
            self._begin(acknowledged, length, now + self.timeout_ms / 1000)
            return self._number
        if self._round.target == acknowledged:
            return self._round.number
        if self._next_deadline is None:
            self._next_deadline = now + self.timeout_ms / 1000
        return self._round.number + 1

    def _begin(self, target: EntryId, length: int, deadline: float) -> None:
        self._number += 1
        self._round = _Round(self._number, target, length, deadline)
        self.active = True

    def _end(self, acknowledged: EntryId, length: int) -> None:
        """The present round has ended; begin the next one if somebody waits for it."""
        self._round = None
        self.active = False
        if self._next_deadline is not None:
            deadline, self._next_deadline = self._next_deadline, None
            self._begin(acknowledged, length, deadline)

    def proceed(self, members: Sequence[EnsembleMember], acknowledged: EntryId, length: int) -> list[Effect]:
        """Ask the bookies that can be asked now, and end rounds that are complete."""
        effects: list[Effect] = []
        while (current := self._round) is not None:
            if current.target > self.forced:
                effects += self._ask_ready_bookies(members, current)
                if any(member.bookie not in current.done for member in members):
                    break
                self.forced, self.forced_length = current.target, current.length
            effects.append(ForceDone(current.number))
            self._end(acknowledged, length)
        return effects

    @staticmethod
    def _ask_ready_bookies(members: Sequence[EnsembleMember], current: _Round) -> list[Effect]:
        effects: list[Effect] = []
        for member in members:
            if member.live and member.bookie not in current.asked and member.acks.mark > current.target:
                current.asked.add(member.bookie)
                effects.append(SendForce(member.bookie, current.number))
        return effects

    def on_forced(self, bookie: BookieId, number: int) -> None:
        """``bookie`` answered round ``number``: what it had acknowledged when it was asked is durable."""
        if self._round is not None and self._round.number == number:  # else the round has ended
            self._round.done.add(bookie)

    def on_failed(self, number: int, error: BookKeeperError, acknowledged: EntryId, length: int) -> list[Effect]:
        """A bookie failed to sync, which ends the round."""
        if self._round is None or self._round.number != number:
            return []
        self._end(acknowledged, length)
        return [ForceFailed(number, error)]

    def retry(self, bookie: BookieId, number: int) -> list[Effect]:
        """``bookie`` had no room for the request; the round goes on, within its time."""
        if self._round is None or self._round.number != number:
            return []
        return [SendForce(bookie, number, RETRY_S)]

    def on_tick(
        self, now: float, members: Sequence[EnsembleMember], acknowledged: EntryId, length: int
    ) -> list[Effect]:
        """Time has passed: end a round that took too long."""
        if (current := self._round) is None or now < current.deadline:
            return []
        silent = ", ".join(member.bookie for member in members if member.bookie not in current.done)
        text = (
            f"entries up to {current.target} are written, but not known to be durable: {silent} did not answer force() "
            f"within {self.timeout_ms} ms; call force() again"
        )
        return self.on_failed(current.number, RequestTimedOutError(text), acknowledged, length)

    def fail(self, error: BookKeeperError) -> list[Effect]:
        """Fail all rounds: nothing can be forced any more."""
        if (current := self._round) is None:
            return []
        numbers = [current.number] if self._next_deadline is None else [current.number, current.number + 1]
        self._round = self._next_deadline = None
        self.active = False
        self._number = numbers[-1]
        return [ForceFailed(number, error) for number in numbers]

    def validate_state(self, acknowledged: int) -> None:
        """Derive again what must hold between the fields. For tests.

        Raises: InvariantError.
        """
        current = self._round
        check(self.active == (current is not None), "W11", (self.active, current))
        check(self.forced <= acknowledged, "W11", (self.forced, acknowledged))
        if current is None:
            check(self._next_deadline is None, "W11", "somebody waits for the round after none")
            return
        check(current.done <= current.asked, "W11", current)
        check(self.forced < current.target <= acknowledged, "W11", (current, self.forced))
