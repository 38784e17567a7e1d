"""The list of volumes, as it is now, and the file that follows it.

Without space for the file the bookie serves on, and whoever waits is told. The file follows when there is space again.
"""

from __future__ import annotations

from collections.abc import Callable

from bookkeeper.errors import DiskFullError, in_words
from bookkeeper.seams import Disk, Worker
from bookkeeper.storage.base.durable_file import NO_SPACE, SyncFailedError
from bookkeeper.storage.base.results import Done, ignore
from bookkeeper.volumes.disks.volume_list import NAME, VolumeList, VolumeState, write_volumes


class VolumeListFile:
    """Owned by the loop's thread, but for the jobs of its worker."""

    def __init__(self, disk: Disk, directory: str, listed: VolumeList, worker: Worker) -> None:
        self.now = listed
        """Changed by whoever calls :meth:`write` then."""
        self.failed: Callable[[BaseException], None] = ignore
        """Called when the list could not be written, and space is not what is missing."""
        self._follows = True
        self._disk, self._directory, self._worker = disk, directory, worker
        self._writing = False
        self._waiting: list[Done] = []

    def state_of(self, number: int) -> VolumeState | None:
        """What has become of a volume; None: the list does not have it."""
        return next((each.state for each in self.now if each.number == number), None)

    def is_used(self, number: int) -> bool:
        """Whether a volume gets new ledgers."""
        return self.state_of(number) is VolumeState.USED

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
            self._follows = error is None
            if error is not None:
                error = self._judged(error)
            for each in waiting:
                each(error)
            if self._waiting:
                self.write(ignore)

        self._worker.submit(lambda: write_volumes(self._disk, self._directory, wanted), written)

    def catch_up(self) -> None:
        """Write the list again if there was no space for it."""
        if not self._follows and not self._writing:
            self.write(ignore)

    def _judged(self, error: BaseException) -> BaseException:
        """Why the list could not be written. A file that could not be replaced is as it was."""
        if isinstance(error, OSError) and not isinstance(error, SyncFailedError) and error.errno in NO_SPACE:
            path = f"{self._directory}/{NAME}"
            return DiskFullError(
                f"{path} cannot be written for now: {in_words(error, beside=path)}; free some space there"
            )
        self.failed(error)
        return error

    def close(self) -> None:
        """End the worker; what was begun is written."""
        self._worker.close()
