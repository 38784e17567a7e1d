"""The threads of a bookie's disk, by name: ``journal``, ``log``, ``checkpoint``, ``read`` and ``scrub``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal, TypeVar

from bookkeeper.seams import Worker, Workers

T = TypeVar("T")
WorkerName = Literal["journal", "log", "checkpoint", "read", "scrub"]


class StorageWorkers:
    """The engine's workers, each made when it is first needed."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._made: dict[str, Worker] = {}
        self._inline = False

    @property
    def inline(self) -> bool:
        """Whether jobs run on the caller's thread."""
        return self._inline

    def run_inline(self) -> None:
        """From now on every job runs at once, on the caller's thread: for a stop in a program without a loop."""
        self._inline = True

    def get(self, name: WorkerName) -> Worker:
        if self._inline:
            return _InlineWorker()
        if (worker := self._made.get(name)) is None:
            worker = self._made[name] = self._workers.worker(name)
        return worker

    def close(self) -> None:
        """Let every job that was submitted finish, then end the threads."""
        made, self._made = self._made, {}
        for worker in made.values():
            worker.close()


class _InlineWorker:
    """Runs jobs at once, on the caller's thread."""

    def submit(self, job: Callable[[], T], done: Callable[[T | None, BaseException | None], None]) -> None:
        try:
            result = job()
        except Exception as error:  # reported, as every worker does
            return done(None, error)
        return done(result, None)

    def call(self, job: Callable[[], T]) -> Awaitable[T]:
        raise NotImplementedError("nobody waits here")

    def close(self) -> None:
        pass
