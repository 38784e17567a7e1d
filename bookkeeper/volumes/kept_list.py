"""The list of volumes, as it is now, and the file that follows it."""

from __future__ import annotations

from collections.abc import Callable

from bookkeeper.seams import Disk, Worker
from bookkeeper.storage.results import Done
from bookkeeper.volumes.volume_list import VolumeList, VolumeState, write_volumes


class KeptList:
    """Owned by the loop's thread, but for the jobs of its worker."""

    def __init__(self, disk: Disk, directory: str, listed: VolumeList, worker: Worker) -> None:
        self.now = listed
        """Changed by whoever calls :meth:`write` then."""
        self.failed: Callable[[BaseException], None] = lambda error: None
        """Called when the list could not be written."""
        self._disk, self._directory, self._worker = disk, directory, worker
        self._writing = False
        self._waiting: list[Done] = []

    def is_used(self, number: int) -> bool:
        """Whether a volume gets new ledgers."""
        return any(each.number == number and each.state is VolumeState.USED for each in self.now)

    def write(self, callback: Done) -> None:
        """Make the list durable, as it is when the writing begins."""
        self._waiting.append(callback)
        if self._writing:
            return
        self._writing = True
        waiting, self._waiting = self._waiting, []
        wanted = self.now

        def written(_none: None, error: BaseException | None) -> None:
            self._writing = False
            if error is not None:
                self.failed(error)
            for each in waiting:
                each(error)
            if self._waiting:
                self.write(lambda _error: None)

        self._worker.submit(lambda: write_volumes(self._disk, self._directory, wanted), written)

    def close(self) -> None:
        """End the worker; what was begun is written."""
        self._worker.close()
