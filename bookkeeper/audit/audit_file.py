"""The file of an audit log. It is put aside by size, and belongs to one process.

All calls but :meth:`AuditFile.open` come from the worker. A batch is written behind what is durable: one that failed is
written again at the same place.
"""

from __future__ import annotations

import os

from bookkeeper.audit.config import AuditConfig
from bookkeeper.errors import ConfigError, in_words
from bookkeeper.seams import Disk, File, Lock


class AuditFile:
    """Lines in a file of which the mode is made 0600, whoever made it; ``FILE.1`` is the newest of those put aside.
    ``FILE.lock`` keeps other processes out."""

    def __init__(self, path: str, config: AuditConfig, disk: Disk) -> None:
        self._path = path
        self._config = config
        self._disk = disk
        self._file: File | None = None
        self._lock: Lock | None = None
        self._end = 0
        """Everything before is durable and whole lines."""

    def open(self) -> None:
        """Begin behind what the file holds.

        Raises:
            ConfigError: the file cannot be opened or made, is a link or a pipe, is another user's, or another process
                writes it; the text names it.
        """
        try:
            self._lock = self._disk.lock(f"{self._path}.lock")
            file = self._opened()
            self._end = size = file.size()
            if size and file.pread(1, size - 1) != b"\n":  # a crash has left half a line
                file.pwrite(b"\n", size)
                self._end = size + 1
        except BlockingIOError as error:
            raise ConfigError(
                f"another process writes the audit log {self._path}: give each process a file of its own"
            ) from error
        except OSError as error:
            self.close()
            raise ConfigError(
                f"the audit log {self._path} cannot be written: {in_words(error, beside=self._path)}; give another "
                "file, or make this one writable"
            ) from error

    def write(self, batch: bytes) -> None:
        """Make ``batch``, which consists of whole lines, durable.

        Raises:
            OSError: it may be in the file in part; the next call writes over that.
        """
        try:
            if not self._disk.exists(self._path):  # somebody has taken it away
                self._let_go()
                self._end = 0
            elif self._end and self._end + len(batch) > self._config.file_bytes:
                self._put_aside()
            file = self._opened()
            if file.size() > self._end:
                file.truncate(self._end)
            file.pwrite(batch, self._end)
            file.sync()
        except OSError:
            self._let_go()  # after a failed sync a descriptor is good for nothing
            raise
        self._end += len(batch)

    def close(self) -> None:
        """Close the file, and let other processes write it."""
        self._let_go()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _opened(self) -> File:
        if self._file is None:
            is_new = not self._disk.exists(self._path)
            if not is_new:
                self._disk.make_private(self._path)
            try:
                self._file = self._disk.open(self._path, create=is_new)
            except FileExistsError:
                self._disk.make_private(self._path)  # a link that leads nowhere is refused as one
                raise
            if is_new:
                self._disk.sync_directory(os.path.dirname(self._path))
        return self._file

    def _put_aside(self) -> None:
        """Begin a new file; of those put aside the oldest is overwritten, or removed."""
        disk, kept = self._disk, self._config.files_kept
        if (file := self._opened()).size() > self._end:
            file.truncate(self._end)
        self._let_go()
        names = [self._path, *(f"{self._path}.{number}" for number in range(1, kept + 1))]
        if kept == 0:
            disk.unlink(self._path)
        for older, newer in reversed(list(zip(names[1:], names[:-1], strict=True))):
            if disk.exists(newer):
                disk.rename(newer, older)
        disk.sync_directory(os.path.dirname(self._path))
        self._end = 0

    def _let_go(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OSError:
                pass  # what was not synced is written again
