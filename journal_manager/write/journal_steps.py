"""The steps that change a journal: one at a time, each to its end. A step that fails ends the log."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")


class JournalSteps:
    """The steps of one edit log.

    Args:
        ensure_usable: raises the error of a log that takes nothing more; asked before each step.
        fail: gets the error of a step, which is the log's end.
    """

    def __init__(self, ensure_usable: Callable[[], None], fail: Callable[[BaseException], None]) -> None:
        self._ensure_usable, self._fail = ensure_usable, fail
        self._turn = asyncio.Lock()
        self.tasks: list[asyncio.Future[Any]] = []
        """The steps of ``run`` and ``begin`` that wait or run."""

    async def perform(self, step: Callable[[], Awaitable[T]]) -> T:
        """Run one step, and no other at the same time. Its failure is final."""
        async with self._turn:
            self._ensure_usable()
            try:
                return await step()
            except BaseException as error:
                self._fail(error)
                raise

    async def run(self, step: Callable[[], Awaitable[T]]) -> T:
        """Run a step to its end, even if the task that asked for it is cancelled."""
        return await asyncio.shield(self.begin(step))

    def begin(self, step: Callable[[], Awaitable[T]]) -> asyncio.Future[T]:
        """Let a step run when it is its turn. Nobody need wait for it."""
        task = asyncio.ensure_future(self.perform(step))
        self.tasks.append(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Future[Any]) -> None:
        self.tasks.remove(task)
        if not task.cancelled():
            task.exception()  # ``fail`` got it, also if nobody awaits the task
