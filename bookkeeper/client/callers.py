"""Who waits for which entries of one writer: futures, in entry order, resolved from one place (P5).

A cancelled future is stepped over: its entry was sent and its outcome is unknown to nobody but its caller (W7).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from itertools import repeat
from typing import Any, Final

from bookkeeper.errors import BookKeeperError, PartialAppendError

_ONE: Final = -1
"""In place of a run's first id: this future is for a single entry."""


class Callers:
    """The futures of entries that were given to the machine and are neither confirmed nor failed."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, asyncio.Future[Any], int]] = deque()
        """(last entry, future, first entry or _ONE), in entry order."""

    def __len__(self) -> int:
        return len(self._waiting)

    def expect_each(self, first: int, futures: Sequence[asyncio.Future[Any]]) -> None:
        """One future for each of consecutive entries; each gets its id."""
        self._waiting.extend(zip(range(first, first + len(futures)), futures, repeat(_ONE)))

    def expect_run(self, first: int, count: int, future: asyncio.Future[Any]) -> None:
        """One future for a run; it gets the range of its ids."""
        self._waiting.append((first + count - 1, future, first))

    def expect_all(self, last: int, future: asyncio.Future[Any]) -> None:
        """A future for everything up to ``last``; it gets that id."""
        self._waiting.append((last, future, _ONE))

    def confirm(self, end: int) -> None:
        """Every entry below ``end`` is durable."""
        waiting = self._waiting
        while waiting and waiting[0][0] < end:
            last, future, first = waiting.popleft()
            if not future.done():
                future.set_result(last if first == _ONE else range(first, last + 1))

    def fail(self, from_entry: int, error: BookKeeperError) -> None:
        """Entries from ``from_entry`` on end as unknown, all of them: nothing is confirmed after this (W6)."""
        waiting = self._waiting
        while waiting:
            _, future, first = waiting.popleft()
            if future.done():
                continue
            if _ONE != first < from_entry:
                future.set_exception(partial(first, from_entry, error))
            else:
                future.set_exception(fresh(error))


def partial(first: int, first_unknown: int, error: BookKeeperError) -> PartialAppendError:
    """D16: entries ``first .. first_unknown - 1`` of a call are durable, the others unknown."""
    known = tuple(range(first, first_unknown))
    text = f"{len(known)} of the entries are confirmed, from entry {first_unknown} on the outcome is unknown: {error}"
    failure = PartialAppendError(text, confirmed=known, first_unknown=first_unknown)
    failure.__cause__ = error
    return failure


def fresh(error: BookKeeperError) -> BookKeeperError:
    """The same error for another caller: one object raised in many places would collect all their tracebacks."""
    try:
        copy = type(error)(*error.args)
    except TypeError:  # a class with more to it than its text
        return error
    copy.__cause__ = error
    return copy
