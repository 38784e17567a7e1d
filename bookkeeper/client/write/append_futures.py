"""The futures of the callers who wait for one writer's entries, in entry order, resolved from one place.

A cancelled future is skipped: its entry was sent all the same, and only its caller does not learn the outcome.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any

from bookkeeper.errors import BookKeeperError, Outcome, PartialAppendError


class _EntryFutures:
    """A future for each of the entries ``first .. end - 1``; ``first`` moves on as they are confirmed."""

    __slots__ = ("end", "first", "futures")

    def __init__(self, first: int, futures: Sequence[asyncio.Future[Any]]) -> None:
        self.first = first
        self.end = first + len(futures)
        self.futures = futures

    def confirm(self, upto: int) -> bool:
        """Entries below ``upto`` are durable. True if these were all."""
        entry, stop = self.first, min(upto, self.end)
        if entry < stop:
            whole = self.end - entry == len(self.futures) and stop == self.end
            at = len(self.futures) - (self.end - entry)
            for future in self.futures if whole else self.futures[at : at + stop - entry]:
                try:
                    future.set_result(entry)
                except asyncio.InvalidStateError:
                    pass  # cancelled; asking each of them first would cost more
                entry += 1
            self.first = stop
        return stop == self.end

    def fail(self, from_entry: int, error: BookKeeperError) -> None:
        for future in self.futures[len(self.futures) - (self.end - self.first) :]:
            if not future.done():
                future.set_exception(copy_unknown(error))


class _OneFuture:
    """The future of one entry."""

    __slots__ = ("entry", "future")

    def __init__(self, entry: int, future: asyncio.Future[Any]) -> None:
        self.entry = entry
        self.future = future

    def confirm(self, upto: int) -> bool:
        if self.entry >= upto:
            return False
        try:
            self.future.set_result(self.entry)
        except asyncio.InvalidStateError:
            pass  # cancelled
        return True

    def fail(self, from_entry: int, error: BookKeeperError) -> None:
        if not self.future.done():
            self.future.set_exception(copy_unknown(error))


class _RunFuture:
    """One future for the entries ``first .. last``; it gets their range."""

    __slots__ = ("first", "future", "last")

    def __init__(self, first: int, last: int, future: asyncio.Future[Any]) -> None:
        self.first = first
        self.last = last
        self.future = future

    def confirm(self, upto: int) -> bool:
        if self.last >= upto:
            return False
        if not self.future.done():
            self.future.set_result(range(self.first, self.last + 1))
        return True

    def fail(self, from_entry: int, error: BookKeeperError) -> None:
        if not self.future.done():
            known = self.first < from_entry
            self.future.set_exception(
                partial_append_error(self.first, from_entry, error) if known else copy_unknown(error)
            )


class _PrefixFuture:
    """A future for everything up to ``last``; it gets that id."""

    __slots__ = ("future", "last")

    def __init__(self, last: int, future: asyncio.Future[Any]) -> None:
        self.last = last
        self.future = future

    def confirm(self, upto: int) -> bool:
        if self.last >= upto:
            return False
        if not self.future.done():
            self.future.set_result(self.last)
        return True

    def fail(self, from_entry: int, error: BookKeeperError) -> None:
        if not self.future.done():
            self.future.set_exception(copy_unknown(error))


class AppendFutures:
    """The futures of entries that were given to the machine and are neither confirmed nor failed."""

    def __init__(self) -> None:
        self._waiting: deque[_OneFuture | _EntryFutures | _RunFuture | _PrefixFuture] = deque()
        """In entry order."""

    def __len__(self) -> int:
        return sum(each.end - each.first if isinstance(each, _EntryFutures) else 1 for each in self._waiting)

    def expect_each(self, first: int, futures: Sequence[asyncio.Future[Any]]) -> None:
        """One future for each of consecutive entries; each gets its id. ``futures`` must not be changed afterwards."""
        if len(futures) == 1:
            self._waiting.append(_OneFuture(first, futures[0]))
        elif futures:
            self._waiting.append(_EntryFutures(first, futures))

    def expect_run(self, first: int, count: int, future: asyncio.Future[Any]) -> None:
        """One future for a run; it gets the range of its ids."""
        self._waiting.append(_RunFuture(first, first + count - 1, future))

    def expect_all(self, last: int, future: asyncio.Future[Any]) -> None:
        """A future for everything up to ``last``; it gets that id."""
        self._waiting.append(_PrefixFuture(last, future))

    def confirm(self, end: int) -> None:
        """Every entry below ``end`` is durable."""
        waiting = self._waiting
        while waiting and waiting[0].confirm(end):
            waiting.popleft()

    def fail(self, from_entry: int, error: BookKeeperError) -> None:
        """The outcome of every entry from ``from_entry`` on is unknown. Nothing is confirmed after this."""
        waiting = self._waiting
        while waiting:
            waiting.popleft().fail(from_entry, error)


def partial_append_error(first: int, first_unknown: int, error: BookKeeperError) -> PartialAppendError:
    """The error of a call whose entries ``first .. first_unknown - 1`` are durable; the outcome of the others is
    unknown."""
    known = tuple(range(first, first_unknown))
    text = f"{len(known)} of the entries are confirmed; from entry {first_unknown} on the outcome is unknown: {error}"
    failure = PartialAppendError(text, confirmed=known, first_unknown=first_unknown)
    failure.__cause__ = error
    return failure


def copy_error(error: BookKeeperError) -> BookKeeperError:
    """A copy of the error for another caller: one object raised in many places would collect all their tracebacks."""
    try:
        copy = type(error)(*error.args)
    except TypeError:  # a class with more to it than its text
        return error
    copy.__cause__ = error
    copy.outcome = error.outcome
    return copy


def copy_unknown(error: BookKeeperError) -> BookKeeperError:
    """A copy of the error for the caller of an entry that was sent. Its outcome is unknown, whatever ended the writer:
    a recovery that closed the ledger may have kept the entry."""
    copy = copy_error(error)
    copy.outcome = Outcome.UNKNOWN
    return copy
