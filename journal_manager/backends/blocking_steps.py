"""Runs blocking steps off the event loop, one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from bookkeeper.errors import in_words
from journal_manager.errors import JournalClosedError, JournalDiskError, JournalError

T = TypeVar("T")


class BlockingSteps:
    """Runs blocking steps one after the other, and translates their errors."""

    def __init__(self, threads: bool) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(1, "journal") if threads else None
        self.closed = False

    def submit(self, step: Callable[[], T]) -> Awaitable[T]:
        """Begin a step now. The awaitable raises its failure."""
        if self.closed:
            raise JournalClosedError("this journal was closed")
        loop = asyncio.get_running_loop()
        if self._pool is not None:
            return loop.run_in_executor(self._pool, _worded, step)
        done: asyncio.Future[T] = loop.create_future()
        try:
            done.set_result(_worded(step))
        except Exception as error:
            done.set_exception(error)
        return done

    def finish(self, step: Callable[[], object]) -> None:
        """Run a step that releases something, after the steps that may use it; also after ``close``."""
        if self._pool is None or self.closed:
            step()
        else:
            self._pool.submit(step)

    def close(self) -> None:
        """Take no more steps. Steps that have begun run to their end. Idempotent."""
        self.closed = True
        if self._pool is not None:
            self._pool.shutdown(wait=False)


def _worded(step: Callable[[], T]) -> T:
    try:
        return step()
    except JournalError:
        raise
    except OSError as error:
        raise JournalDiskError(f"the journal's files cannot be used now: {in_words(error)}") from error
