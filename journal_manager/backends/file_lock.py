"""The lock of a directory's elected replica: ``active.lock``. The kernel releases it when the process ends."""

from __future__ import annotations

from typing import Final

from journal_manager.backends.blocking_steps import BlockingSteps
from journal_manager.backends.files import Files, HeldLock
from journal_manager.journals import LockElection, TryLock

ACTIVE: Final = "active.lock"


class DirectoryLock(TryLock):
    """Takes the lock in the journal's thread."""

    def __init__(self, files: Files, directory: str, steps: BlockingSteps) -> None:
        self._files, self._directory, self._steps = files, directory, steps
        self._held: HeldLock | None = None

    async def try_acquire(self) -> bool:
        return await self._steps.submit(self._try)

    @property
    def in_force(self) -> bool:
        return self._held is not None and self._held.in_force

    async def release(self) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            self._steps.finish(held.release)

    def _try(self) -> bool:
        if self._held is not None and not self._held.in_force:
            self._held.release()
            self._held = None
        if self._held is None:
            self._files.make_directories(self._directory)
            try:
                self._held = self._files.lock(f"{self._directory}/{ACTIVE}")
            except BlockingIOError:
                return False
        return True


class FileElection(LockElection):
    """Whoever has the directory's lock is elected. A stopped process keeps it, a dead one does not; nor does one whose
    lock file was removed (by a cleaner of old files, or with the directory), because another one locks the next file.
    """

    def __init__(self, files: Files, directory: str, steps: BlockingSteps) -> None:
        super().__init__(DirectoryLock(files, directory, steps))
        self._steps = steps

    async def close(self) -> None:
        await super().close()
        self._steps.close()
