"""Decides when a segment ends and the next one begins. Pure: sizes and times in, a reason or a time out.

    bytes, records   as soon as the segment holds so many
    age              so long after it began; each segment adds a random part, so that streams do not roll together
    idle             so long after its last record
    asked            when the application asks

Any of the first four has to wait until the segment has its least age. A segment without records is not ended. A roll
that could not be done, because the metadata store or the bookies are away, is put off: the segment takes records as
before, and the next attempt comes after a pause that doubles.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from segments.config import StreamConfig

RETRY_MIN_S: Final = 0.25
"""The pause after the first roll that could not be done."""

RETRY_MAX_S: Final = 30.0
"""The longest pause between two attempts."""


class RollReason(Enum):
    """Why a segment ends."""

    BYTES = "bytes"
    RECORDS = "records"
    AGE = "age"
    IDLE = "idle"
    ASKED = "asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class RollLimits:
    """When a segment ends. None: never for this reason. Times in seconds."""

    bytes_max: int | None = None
    records_max: int | None = None
    age_max_s: float | None = None
    idle_max_s: float | None = None
    age_min_s: float = 0.0
    jitter: float = 0.0
    """A share of ``age_max_s``: the age of each segment is longer by a random part of it."""


class Rolling:
    """The clock of one writer's open segment. Times are monotonic seconds."""

    __slots__ = ("_age_s", "_asked", "_attempts", "_began", "_last_record", "_not_before", "limits")

    def __init__(self, limits: RollLimits) -> None:
        self.limits = limits
        self.begin(0.0, 0.0)

    def begin(self, now: float, chance: float) -> None:
        """A segment has begun. ``chance`` is a random number from 0 to 1, for the jitter."""
        self._began = self._last_record = self._not_before = now
        age, jitter = self.limits.age_max_s, self.limits.jitter
        self._age_s = None if age is None else age * (1 + jitter * chance)
        self._asked = False
        self._attempts = 0

    def change(self, limits: RollLimits) -> None:
        """Other limits from now on. The age of the open segment keeps its jitter."""
        before, self.limits = self.limits.age_max_s, limits
        if limits.age_max_s is None or before is None or self._age_s is None:
            self._age_s = limits.age_max_s
        else:
            self._age_s *= limits.age_max_s / before

    def on_records(self, now: float) -> None:
        """Records were written to the segment."""
        self._last_record = now

    def request(self) -> None:
        """End the segment at the next look, whatever its age is and although a roll was put off."""
        self._asked = True

    def put_off(self, now: float) -> float:
        """The roll could not be done. Returns when the next attempt may come."""
        pause = min(RETRY_MAX_S, RETRY_MIN_S * 2 ** min(self._attempts, 16))
        self._attempts += 1
        self._asked = False
        self._not_before = now + pause
        return self._not_before

    def reason(self, now: float, records: int, size: int) -> RollReason | None:
        """Why the segment with so many records and bytes ends now; None: it does not."""
        if not records:
            return None
        if self._asked:
            return RollReason.ASKED
        limits = self.limits
        if now < self._not_before or now - self._began < limits.age_min_s:
            return None
        if limits.bytes_max is not None and size >= limits.bytes_max:
            return RollReason.BYTES
        if limits.records_max is not None and records >= limits.records_max:
            return RollReason.RECORDS
        if self._age_s is not None and now - self._began >= self._age_s:
            return RollReason.AGE
        if limits.idle_max_s is not None and now - self._last_record >= limits.idle_max_s:
            return RollReason.IDLE
        return None

    def wake_at(self, records: int, size: int) -> float | None:
        """When to look again although nothing happens; None: only records or a wish can end the segment."""
        if not records:
            return None
        limits = self.limits
        due: list[float] = []
        if self._age_s is not None:
            due.append(self._began + self._age_s)
        if limits.idle_max_s is not None:
            due.append(self._last_record + limits.idle_max_s)
        if (limits.bytes_max is not None and size >= limits.bytes_max) or (
            limits.records_max is not None and records >= limits.records_max
        ):
            due.append(self._began)
        if not due:
            return None
        return max(min(due), self._began + limits.age_min_s, self._not_before)


def roll_limits(config: StreamConfig) -> RollLimits:
    """When segments end, by the stream's settings."""
    roll = config.roll
    return RollLimits(
        bytes_max=roll.max_bytes or None,
        records_max=roll.max_records or None,
        age_max_s=roll.max_age_s or None,
        idle_max_s=roll.idle_age_s or None,
        age_min_s=roll.min_age_s,
        jitter=roll.age_jitter,
    )
