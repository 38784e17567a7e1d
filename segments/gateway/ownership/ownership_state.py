"""Whether a gateway may append to one stream: what it knows of the stream's owner. Pure.

::

    unowned --take--> taking --taken--> here --lost--> elsewhere, or left alone
       ^                |                               |
       +--given up------+--another gateway renews------>+ (after a lease: unowned)

Calls for a stream that another gateway owns are redirected there. That knowledge expires after one lease; then the next
call makes this gateway try to acquire the lease, and it takes the stream if nobody renews it. A program with the
library takes a stream without a lease. Then the gateway refuses calls for a while, and takes the stream back with a
later call.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class OwnershipStep(Enum):
    """What to do with a call that needs the owner."""

    SERVE = "this gateway owns the stream"
    REDIRECT = "another gateway owns it"
    TAKE = "nobody is known to own it: take it, and wait"
    WAIT = "it is being taken"
    REFUSE = "not now"


class _Phase(Enum):
    UNOWNED = "unowned"
    TAKING = "taking"
    HERE = "here"
    ELSEWHERE = "elsewhere"
    LEFT_ALONE = "left alone"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class OwnershipAnswer:
    """What to do, and what belongs to it."""

    step: OwnershipStep
    address: str = ""
    """Of the other gateway."""
    reason: str = ""
    """Why not now."""


class OwnershipState:
    """What one gateway knows of who owns one stream. Times are seconds of a monotonic clock."""

    __slots__ = ("_address", "_fresh_s", "_phase", "_probation_s", "_until")

    def __init__(self, fresh_s: float, probation_s: float) -> None:
        self._fresh_s = fresh_s
        self._probation_s = probation_s
        self._phase = _Phase.UNOWNED
        self._address = ""
        self._until = 0.0

    @property
    def is_here(self) -> bool:
        """Whether this gateway owns the stream."""
        return self._phase is _Phase.HERE

    def answer(self, now: float) -> OwnershipAnswer:
        """What to do with a call that needs the owner."""
        match self._phase:
            case _Phase.HERE:
                return OwnershipAnswer(OwnershipStep.SERVE)
            case _Phase.TAKING:
                return OwnershipAnswer(OwnershipStep.WAIT)
            case _Phase.ELSEWHERE if now < self._until:
                return OwnershipAnswer(OwnershipStep.REDIRECT, self._address)
            case _Phase.LEFT_ALONE if now < self._until:
                return OwnershipAnswer(OwnershipStep.REFUSE, reason="a program with the library took the stream over")
            case _Phase.ENDED:
                return OwnershipAnswer(OwnershipStep.REFUSE, reason="this gateway is being stopped")
        return OwnershipAnswer(OwnershipStep.TAKE)

    def taking(self) -> None:
        """Note that this gateway tries to take the stream."""
        if self._phase is not _Phase.ENDED:
            self._phase = _Phase.TAKING

    def taken(self) -> None:
        """Note that this gateway owns it."""
        if self._phase is not _Phase.ENDED:
            self._phase = _Phase.HERE

    def given_up(self) -> None:
        """Note that this gateway does not own it, and knows nobody who does."""
        if self._phase is not _Phase.ENDED:
            self._phase, self._address = _Phase.UNOWNED, ""

    def elsewhere(self, address: str, now: float) -> None:
        """Note that another gateway was seen to own it."""
        if self._phase is not _Phase.ENDED:
            self._phase, self._address, self._until = _Phase.ELSEWHERE, address, now + self._fresh_s

    def overtaken(self, now: float) -> None:
        """Note that a program with the library took it."""
        if self._phase is not _Phase.ENDED:
            self._phase, self._until = _Phase.LEFT_ALONE, now + self._probation_s

    def end(self) -> None:
        """Take nothing any more, for good."""
        self._phase = _Phase.ENDED
