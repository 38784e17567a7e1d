"""Tasks with an owner: whoever starts one also ends it, and no failure of one is lost."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

_log = logging.getLogger(__name__)


class Tasks:
    """The tasks of one object, in the order in which they were started."""

    def __init__(self, name: str, on_error: Callable[[BaseException], None] | None = None) -> None:
        self._name = name
        self._on_error = on_error
        self._running: dict[asyncio.Task[Any], None] = {}
        self.closed = False

    def start(self, work: Coroutine[Any, Any, Any], what: str, *, awaited: bool = False) -> asyncio.Task[Any]:
        """Run ``work`` until it ends or this object closes. What it raises goes to ``on_error``; with ``awaited`` only
        to the caller, who awaits the task in any case."""
        task = asyncio.get_running_loop().create_task(work, name=f"{self._name}: {what}")
        self._running[task] = None
        task.add_done_callback(partial(self._on_done, awaited))
        return task

    def _on_done(self, awaited: bool, task: asyncio.Task[Any]) -> None:
        self._running.pop(task, None)
        if task.cancelled() or (error := task.exception()) is None or awaited:
            return
        if self._on_error is not None:
            self._on_error(error)
        else:
            _log.error("%s ended with an error", task.get_name(), exc_info=error)

    def leave(self) -> None:
        """The object that started them has ended: it is not told of errors any more, only the log is."""
        self._on_error = None

    def cancel(self) -> None:
        """Ask all of them to end, without waiting."""
        self.closed = True
        for task in list(self._running):
            task.cancel()

    async def close(self) -> None:
        """Cancel all of them and wait until they have ended. Never cancels or awaits its own caller."""
        self.closed = True
        me = asyncio.current_task()
        others = [task for task in self._running if task is not me]
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others)
