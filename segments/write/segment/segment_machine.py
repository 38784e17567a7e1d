"""Decides what a writer does with its segments: where groups go, when a segment changes, which outcomes follow. Pure.

    opening --on_open--> open --stop, on_failed--> shut --on_open--> open …
                           |                         |
                           +------ end, close -------+--> ended

While it is open a group is written, else it waits; at the end those that wait are refused. One change at a time is
under way: a segment whose ledger failed is replaced, one that is due is rolled. A roll that is put off leaves the
segment open.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, Final, Protocol, TypeVar

from bookkeeper.outcome import Outcome
from segments.errors import StreamError
from segments.write.segment.rolling import Rolling, RollLimits, RollReason


class Failover(Enum):
    """The change of a segment whose ledger failed."""

    REPLACE = "replace"


class SentEntry(Protocol):
    """An entry that was sent to a ledger."""

    @property
    def entry(self) -> int:
        """Its id."""

    @property
    def is_last(self) -> bool:
        """Whether it completes its group."""


E = TypeVar("E", bound=SentEntry)


class SegmentMachine:
    """The segments of one writer, one after the other. Times are monotonic seconds."""

    __slots__ = ("_changing", "_closing", "_failed", "_open", "_waiting", "ended", "number", "rolling")

    def __init__(self, limits: RollLimits) -> None:
        self.rolling: Final = Rolling(limits)
        self.ended: StreamError | None = None
        """Why nothing can be written any more."""
        self.number = 0
        """Of the segment that was begun last; 0 before the first."""
        self._waiting: deque[Any] = deque()
        self._open = self._failed = self._changing = self._closing = False

    @property
    def is_open(self) -> bool:
        """Whether the segment takes entries."""
        return self._open

    @property
    def waiting(self) -> int:
        """How many groups wait until a segment is open."""
        return len(self._waiting)

    def take(self, group: Any) -> bool:
        """Whether the next group is written to the open segment. Otherwise it waits here for one."""
        if not self._open:
            self._waiting.append(group)
        return self._open

    def next_waiting(self) -> Any:
        """The group that waits longest, which waits no more; None: none does."""
        return self._waiting.popleft() if self._waiting else None

    def on_open(self, number: int, now: float, chance: float) -> None:
        """A segment has begun, without entries. ``chance`` is a random number from 0 to 1."""
        self.rolling.begin(now, chance)
        self.number, self._open, self._failed = number, True, False

    def stop(self) -> None:
        """The segment takes no more entries: it is being ended."""
        self._open = False

    def on_failed(self, number: int) -> bool:
        """The ledger of a segment takes no more entries. Returns whether that is the present one, to be replaced."""
        if number != self.number:
            return False
        self._open, self._failed = False, True
        return True

    def request_roll(self, records: int) -> bool:
        """A caller requests a roll; ``records`` were sent to the segment. False: it is empty, and stays open."""
        if not records and not self._changing:
            return False
        self.rolling.request()
        return True

    def begin_change(self) -> bool:
        """Whether a change begins now; end_change() must follow."""
        if self._changing or self._closing or self.ended is not None:
            return False
        self._changing = True
        return True

    def end_change(self) -> None:
        """The change is done, or given up."""
        self._changing = False

    def next_change(self, now: float, records: int, size: int) -> Failover | RollReason | None:
        """What is to be done to the segment, to which so many records and bytes were sent; None: nothing."""
        if self.ended is not None:
            return None
        return Failover.REPLACE if self._failed else self.rolling.reason(now, records, size)

    def wake_at(self, records: int, size: int) -> float | None:
        """When to look again although nothing happens."""
        return None if self.ended is not None else self.rolling.wake_at(records, size)

    def end(self, error: StreamError) -> bool:
        """Accept nothing more, for this reason. False: it had ended already, and the first reason stays."""
        if self.ended is not None:
            return False
        self.ended, self._open = error, False
        return True

    def close(self) -> None:
        """The last segment is being ended: nothing changes any more."""
        self._open, self._closing = False, True


def take_found(sent: deque[E], last: int) -> Iterator[E]:
    """The entries up to ``last``, where a recovery found the end, in order: they are durable. They are taken out of
    ``sent``, and what is left is not in the ledger, and never will be."""
    while sent and sent[0].entry <= last:
        yield sent.popleft()


def outcome_of_rest(last: int | None) -> Outcome:
    """What became of the entries that no recovery found, which found ``last`` at the end; None: there was none."""
    return Outcome.UNKNOWN if last is None else Outcome.REJECTED


def unsent(own: Sequence[E]) -> bool:
    """Whether a group of which these entries were sent, before making one failed, cannot be in the stream."""
    return not any(entry.is_last for entry in own)
