"""Threads for blocking work: one per worker, results handed back to the loop."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from bookkeeper.seams import Worker

T = TypeVar("T")

_Job = tuple[Callable[[], Any], Callable[[Any, "BaseException | None"], None], asyncio.AbstractEventLoop]


def called(worker: Worker, job: Callable[[], T]) -> Awaitable[T]:
    """What ``call`` of a worker returns: the job's result, or its error."""
    waiter: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def done(result: T | None, error: BaseException | None) -> None:
        if waiter.cancelled():
            return
        if error is not None:
            waiter.set_exception(error)
        else:
            waiter.set_result(result)  # type: ignore[arg-type]

    worker.submit(job, done)
    return waiter


class ThreadWorker:
    """One daemon thread; jobs one after the other, in the order of ``submit``."""

    def __init__(self, name: str, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._loop = loop
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._closed = False
        self._thread.start()

    def submit(self, job: Callable[[], T], done: Callable[[T | None, BaseException | None], None]) -> None:
        """See :class:`bookkeeper.seams.Worker`. Called on the loop, or by another worker once the loop is known.

        Raises:
            RuntimeError: the worker is closed, or no loop runs here and none was known before.
        """
        if self._closed:
            raise RuntimeError(f"worker {self._thread.name} is closed")
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            if self._loop is None:
                raise
        self._jobs.put((job, done, self._loop))

    def call(self, job: Callable[[], T]) -> Awaitable[T]:
        return called(self, job)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._jobs.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _work(self) -> None:
        while (item := self._jobs.get()) is not None:
            job, done, loop = item
            result, error = None, None
            try:
                result = job()
            except BaseException as failure:  # reported, whatever it is: a job never ends the worker
                error = failure
            try:
                loop.call_soon_threadsafe(done, result, error)
            except RuntimeError:  # the loop is closed: nobody is left to tell
                pass
            del item, job, done, result, error


class ThreadWorkers:
    """Makes workers that report to the loop that runs where they are asked for."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def worker(self, name: str) -> Worker:
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            pass
        return ThreadWorker(name, self._loop)
