"""How fast this machine is now, beside the one whose times the project's limits were chosen on.

Shared hosts, laptops that save power and small containers differ by a factor of ten and more, and from minute to
minute. Whoever starts processes for a demo, a benchmark or a test therefore stretches waits, sessions and leases by
:func:`stretch`. The defaults of the product do not follow it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Final

REFERENCE: Final = 20e6
"""Additions that the reference machine makes in a second of wall clock."""
LEAST_S: Final = 0.5
"""Seconds of wall clock that one measurement takes at least: a share of a core is given out in pieces of 0.1 s."""
FRESH_S: Final = 30.0
"""A measurement that is younger is not repeated by :func:`measured_again`."""
VARIABLE: Final = "MACHINE_SPEED"
"""Environment variable with a speed that somebody has measured already; children are handed it by :func:`handed_on`."""
_FULL: Final = 0.75
"""From this speed on nothing is stretched: measurements of one machine differ by so much."""
_SLOWEST: Final = 0.01
"""Lower measurements count as this one, so that a wait has an end."""
_PIECE: Final = 20_000


def _add(count: int) -> None:
    total = 0
    for number in range(count):
        total += number


class SpeedGauge:
    """Measures the speed, and keeps what it has measured. Any thread may ask.

    Args:
        now: seconds of the wall, of a clock that never goes back.
        work: makes so many additions.
        given: a speed that was measured before; it counts until :meth:`measured_again`.
    """

    def __init__(
        self,
        now: Callable[[], float] = time.monotonic,
        work: Callable[[int], None] = _add,
        given: float | None = None,
    ) -> None:
        self._now = now
        self._work = work
        self._speed = None if given is None else max(given, _SLOWEST)
        self._measured_at: float | None = None
        self._lock = threading.Lock()

    def speed(self) -> float:
        """The last speed that was measured or given; measures if there is none. 1.0: as fast as the reference."""
        with self._lock:
            return self._measure() if self._speed is None else self._speed

    def measured_again(self) -> float:
        """The speed now. Blocks for :data:`LEAST_S`, unless the last measurement is younger than :data:`FRESH_S`."""
        with self._lock:
            measured_at = self._measured_at
            if self._speed is not None and measured_at is not None and self._now() < measured_at + FRESH_S:
                return self._speed
            return self._measure()

    def _measure(self) -> float:
        began, done = self._now(), 0
        while (took := self._now() - began) < LEAST_S:
            self._work(_PIECE)
            done += _PIECE
        self._speed = max(done / took / REFERENCE, _SLOWEST)
        self._measured_at = self._now()
        return self._speed


def given_speed(text: str | None) -> float | None:
    """What :data:`VARIABLE` says; None if it says no speed."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 < value < float("inf") else None


_gauge: Final = SpeedGauge(given=given_speed(os.environ.get(VARIABLE)))


def speed() -> float:
    """This machine's speed: 1.0 is the reference's, 0.1 a tenth of it.

    The first call measures for half a second, unless :data:`VARIABLE` says it; later calls return at once.
    """
    return _gauge.speed()


def measured_again() -> float:
    """The speed now; see :meth:`SpeedGauge.measured_again`. :func:`speed` returns it, too, from then on."""
    return _gauge.measured_again()


def stretch(of: float | None = None) -> float:
    """How many times as long a wait is on this machine (or at the speed ``of``): 1.0 or more."""
    slow = speed() if of is None else of
    return 1.0 if slow >= _FULL else 1.0 / max(slow, _SLOWEST)


def handed_on() -> dict[str, str]:
    """The environment of children that need not measure again what this process knows."""
    return {VARIABLE: f"{speed():.4g}"}


def speed_text(of: float | None = None) -> str:
    """One line for people."""
    slow = speed() if of is None else of
    times = stretch(slow)
    long = "as long as usual" if times == 1.0 else f"{_number(times)} times as long"
    return f"this machine has {_number(slow)} of the reference's speed: waits and sessions are {long}"


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 5 else f"{value:.2g}"
