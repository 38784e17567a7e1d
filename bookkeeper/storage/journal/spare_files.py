"""Spare journal files: full of zeros, ready to become the next journal file.

Checkpoints make spares of the journal files that they cover. Where they have left none, one is made in advance, on the
checkpoint's thread, so that the journal seldom waits for a file to be filled with zeros.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from bookkeeper.storage.base.durable_file import NO_SPACE, SyncFailedError
from bookkeeper.storage.base.workers import StorageWorkers
from bookkeeper.storage.journal.group_writer import GroupWriter

MADE_AHEAD: Final = 1 << 63
"""Added to the numbers of spare files that are made in advance, so that they never meet those of recycled files."""


class SpareFiles:
    """Owned by the loop's thread."""

    def __init__(
        self,
        names: Iterable[str],
        journal: GroupWriter,
        workers: StorageWorkers,
        wanted: int,
        failed: Callable[[BaseException], None],
        no_space: Callable[[], None],
    ) -> None:
        """
        Args:
            names: the spares that are there.
            wanted: how many are kept; 0: none is made in advance.
            failed: told that a new file could not be synced: final.
            no_space: told that there is no spare, and no space for one.
        """
        self._no_space = no_space
        self._journal, self._workers, self._wanted, self._failed = journal, workers, wanted, failed
        self.names = deque(names)
        """The spares that are ready; the first is used next. Changed here alone."""

    def add(self, names: Iterable[str]) -> None:
        """A checkpoint has made spares of journal files that it covers."""
        self.names.extend(names)

    def used(self) -> None:
        """The first spare has become a journal file."""
        self.names.popleft()

    def prepare(self, file_id: int) -> None:
        """Have a spare ready before the journal file ``file_id`` is full."""
        if self.names or not self._wanted:
            return
        number = MADE_AHEAD | file_id

        def done(name: str | None, error: BaseException | None) -> None:
            if name is not None:
                self.names.append(name)
            elif isinstance(error, SyncFailedError):
                self._failed(error)
            elif isinstance(error, OSError) and error.errno in NO_SPACE:
                self._no_space()

        self._workers.get("checkpoint").submit(lambda: self._journal.make_spare(number), done)
