"""Shell: keeps what a query has not committed from being removed.

A hold of the stream covers everything from the last committed offset on. It is renewed by a thread of the process in
which the query's source lives, on a clock of its own, because Spark calls a source at triggers only. When that process
ends, however it ends, the hold ends by itself within an hour.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from bookkeeper.errors import BookKeeperError
from segments import EARLIEST, LATEST, Position, PositionTruncatedError, StreamConfigError, StreamError, sync

_log = logging.getLogger(__name__)

HOLD_FOR: Final = timedelta(minutes=45)
"""How long a hold lasts after a renewal."""
RENEW_EVERY_S: Final = 60.0
"""Seconds between two renewals, which also move the hold behind what was committed since."""
_RETRY_S: Final = 10.0
"""After a renewal that failed."""


class HoldKeeper:
    """One hold of one stream, renewed until this process ends.

    Args:
        lenient: a place that was truncated is held from where the stream begins now; otherwise it is an error.
        every_s: between two renewals.
        monotonic: the clock, in seconds.
        wall: the time of day, by which a hold ends.
    """

    def __init__(
        self,
        stream: sync.Stream,
        name: str,
        *,
        lenient: bool = False,
        every_s: float = RENEW_EVERY_S,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._stream, self.name, self._lenient, self._every_s = stream, name, lenient, every_s
        self._monotonic, self._wall = monotonic, wall
        self._began, self._began_s = wall(), monotonic()
        self._start: Position | None = None
        self._held_until = float("-inf")
        """Until when the hold lasts at least, without a further renewal."""
        self._moving = threading.Lock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._renew_until_stopped, name=f"hold {name}", daemon=True)

    def cover(self, start: Position) -> None:
        """Keep everything from ``start`` on; what is kept already stays so. When this returns it is kept.

        Raises:
            PositionTruncatedError: records from ``start`` on are gone.
            StreamError, BookKeeperError: the hold could not be put.
        """
        with self._moving:
            if self._start is not None and self._start <= start:
                if self._monotonic() >= self._held_until:  # it was not renewed for long: it may have ended
                    self._put(self._start)
                return
            self._put(start)
            self._start = start
            if not self._thread.is_alive() and not self._stopped.is_set():
                self._thread.start()

    def release(self, before: Position) -> None:
        """What is before this place need not be kept any more. The next renewal moves the hold."""
        with self._moving:
            if self._start is not None:
                self._start = max(self._start, before)

    def stop(self) -> None:
        """Renew it no more. It ends by itself, so that a query which is started again soon finds its records."""
        self._stopped.set()

    def _put(self, start: Position) -> None:
        try:
            self._hold(start)
        except StreamConfigError:
            # the stream begins behind ``start`` by now; if no record is gone, a place at a border has only another name
            try:
                begin = self._stream.find(start)
            except PositionTruncatedError:
                if not self._lenient:
                    raise
                begin = self._stream.find(EARLIEST)
            self._hold(begin)

    def _hold(self, start: Position) -> None:
        now_s = self._monotonic()
        # a wall clock that is put back would end the hold, by the clocks of those who remove records, before it began
        now = max(self._wall(), self._began + timedelta(seconds=now_s - self._began_s))
        until, held_until = now + HOLD_FOR, now_s + HOLD_FOR.total_seconds() / 2
        self._stream.hold(self.name, start, LATEST, until=until, note="a Spark query reads from here on")
        self._held_until = held_until

    def _renew_until_stopped(self) -> None:
        pause = self._every_s
        while not self._stopped.wait(pause):
            pause = self._every_s
            try:
                with self._moving:
                    if self._start is not None and not self._stopped.is_set():
                        self._put(self._start)
            except (StreamError, BookKeeperError) as error:
                _log.warning(
                    "hold %s of stream %s was not renewed, and is tried again: %s", self.name, self._stream.name, error
                )
                pause = min(_RETRY_S, self._every_s)
