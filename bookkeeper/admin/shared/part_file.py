"""A file that a command writes piece by piece, whose errors name it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from bookkeeper.real import new_private_file


class PartFile:
    """A new private file, open for writing; what has its name is removed.

    The system says "No space left on device" and not of what: here every error has the file's name."""

    def __init__(self, path: Path) -> None:
        """Raises: OSError."""
        self._path, self._file = path, new_private_file(str(path))

    def write(self, data: bytes) -> None:
        """Raises: OSError."""
        try:
            self._file.write(data)
        except OSError as error:
            raise self._named(error) from error

    def sync(self) -> None:
        """Make what was written durable. Raises: OSError."""
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._named(error) from error

    def _named(self, error: OSError) -> OSError:
        return OSError(error.errno, os.strerror(error.errno or 0), str(self._path))

    def __enter__(self) -> PartFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with suppress(OSError):  # what was not synced is of no use to anybody
            self._file.close()
