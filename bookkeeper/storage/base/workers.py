"""The threads of a bookie's disk, by name: ``journal``, ``log``, ``checkpoint``, ``read`` and ``scrub``."""

from __future__ import annotations

from typing import Literal

from bookkeeper.seams import Worker, Workers

WorkerName = Literal["journal", "log", "checkpoint", "read", "scrub"]


class StorageWorkers:
    """The engine's workers, each made when it is first needed."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._made: dict[str, Worker] = {}

    def get(self, name: WorkerName) -> Worker:
        if (worker := self._made.get(name)) is None:
            worker = self._made[name] = self._workers.worker(name)
        return worker

    def close(self) -> None:
        """Let every job that was submitted finish, then end the threads."""
        made, self._made = self._made, {}
        for worker in made.values():
            worker.close()
