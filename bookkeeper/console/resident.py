"""Values that take long to make, made again and again in the background while somebody looks, and kept.

A page shows the newest one at once, with its age; it never waits for the next. Where making it takes long, it is made
less often, so that it takes a tenth of the time at most. When nobody has read it for a while, nothing is made.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

from bookkeeper.errors import BookKeeperError, in_words
from bookkeeper.seams import Clock

log = logging.getLogger(__name__)

T = TypeVar("T")

SHARE: Final = 10
"""A value is made for one part of so many of the time at most."""


@dataclass(frozen=True, slots=True)
class CachedValue(Generic[T]):
    """The newest value, and what is known of it."""

    value: T | None = None
    """None: none was made yet."""
    at_ms: int = 0
    """When making it began, in milliseconds since 1970."""
    took_s: float = 0.0
    problem: str = ""
    """Why the last try made none; empty: it did."""


class Resident(Generic[T]):
    """One such value. :meth:`run` on the loop; the rest from any thread."""

    def __init__(
        self,
        make: Callable[[], Awaitable[T]],
        clock: Clock,
        *,
        every_s: float,
        idle_s: float,
        patience_s: float | None = None,
    ) -> None:
        """
        Args:
            make: makes the value; may raise BookKeeperError and OSError.
            every_s: seconds from one beginning to the next, at the least.
            idle_s: seconds without a reader after which none is made.
            patience_s: seconds after which a try is given up; None: never.
        """
        self._make, self._clock = make, clock
        self._every_s, self._idle_s, self._patience_s = every_s, idle_s, patience_s
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._looked = clock.monotonic()
        self._wanted_now = False
        self.kept: CachedValue[T] = CachedValue()

    def get(self) -> CachedValue[T]:
        """The newest value; from now on the next ones are made for a while."""
        was_idle = self._is_idle()
        self._looked = self._clock.monotonic()
        if was_idle and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake.set)
        return self.kept

    def want(self) -> None:
        """Make the next one now: what it shows was changed. On the loop."""
        self._wanted_now = True
        self._wake.set()

    async def run(self) -> None:
        """Make values until cancelled."""
        while True:
            began = self._clock.monotonic()
            await self._once()
            took_s = self._clock.monotonic() - began
            await self._rest(began + max(self._every_s, SHARE * took_s))

    async def _once(self) -> None:
        self._wanted_now = False
        at_ms, began = self._clock.wall_ms(), self._clock.monotonic()
        try:
            async with asyncio.timeout(self._patience_s):
                value = await self._make()
        except TimeoutError as error:
            problem = in_words(error) if self._patience_s is None else f"it took longer than {self._patience_s:g} s"
        except (BookKeeperError, OSError) as error:
            problem = in_words(error)
        except Exception:  # a panel is other people's code; the console goes on
            log.exception("a page of the console could not be made")
            problem = "it ended unexpectedly: the log of this process says how"
        else:
            self.kept = CachedValue(value, at_ms, self._clock.monotonic() - began)
            return
        self.kept = replace(self.kept, problem=problem)

    async def _rest(self, until: float) -> None:
        """Sleep until it is time and somebody looks, or the next one is wanted now."""
        while not self._wanted_now:
            left = until - self._clock.monotonic()
            if left <= 0 and not self._is_idle():
                return
            self._wake.clear()
            try:
                async with asyncio.timeout(left if left > 0 else None):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def _is_idle(self) -> bool:
        return self._clock.monotonic() - self._looked >= self._idle_s
