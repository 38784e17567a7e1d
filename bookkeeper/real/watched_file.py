"""A private file that is read again when it has changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Generic, TypeVar

from bookkeeper.errors import ConfigError, in_words
from bookkeeper.real.private import read_private

T = TypeVar("T")


class WatchedFile(Generic[T]):
    """What a file of secrets says. It is to be changed by a rename, or by appending whole lines.

    Raises:
        ConfigError: it cannot be read or used, or others may read it.
    """

    def __init__(self, path: str, parse: Callable[[str, str], T]) -> None:
        """``parse`` makes the value of text and path; it may raise ConfigError."""
        self.path = path
        self._parse = parse
        self._stamp, self.value = self._read()

    def refresh(self) -> bool:
        """Read the file again if it has changed. Returns whether it had.

        Raises:
            ConfigError: what it says now cannot be used. The value stays; the next call tries again.
        """
        try:
            changed = self._read_stamp() != self._stamp
        except OSError as error:
            raise ConfigError(f"{self.path} cannot be read: {in_words(error)}") from error
        if changed:
            self._stamp, self.value = self._read()
        return changed

    def _read(self) -> tuple[tuple[int, int, int, int], T]:
        try:
            stamp = self._read_stamp()  # before reading: what changes meanwhile is read again
            text = read_private(self.path).decode()
        except OSError as error:
            raise ConfigError(f"{self.path} cannot be read: {in_words(error)}") from error
        except UnicodeDecodeError as error:
            raise ConfigError(f"{self.path} is no text in UTF-8") from error
        return stamp, self._parse(text, self.path)

    def _read_stamp(self) -> tuple[int, int, int, int]:
        found = os.stat(self.path)
        return found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns
