"""The threads of a bookie's disk."""

from __future__ import annotations

from collections.abc import Callable

from bookkeeper.storage.base.workers import StorageWorkers


def test_workers_are_made_when_they_are_needed_and_ended_once() -> None:
    made: list[str] = []
    ended: list[str] = []

    class OneWorker:
        def __init__(self, name: str) -> None:
            self.name = name

        def submit(self, job: Callable[[], object], done: Callable[..., None]) -> None:
            raise AssertionError("nobody has a job")

        def call(self, job: Callable[[], object]) -> object:
            raise AssertionError("nobody waits here")

        def close(self) -> None:
            ended.append(self.name)

    class Counting:
        def worker(self, name: str) -> OneWorker:
            made.append(name)
            return OneWorker(name)

    storage_workers = StorageWorkers(Counting())  # type: ignore[arg-type]
    assert made == []
    assert storage_workers.get("read") is storage_workers.get("read") and storage_workers.get(
        "journal"
    ) is not storage_workers.get("read")
    assert made == ["read", "journal"]
    storage_workers.close()
    storage_workers.close()
    assert ended == ["read", "journal"]
