"""Has the system read a file of the journal while what was read before is checked and copied.

The journal is written past the page cache, so a start reads it from the disk, whatever ended the life before. What the
system reads ahead by itself is little by default; then the disk is idle while a group goes into its entry log.
"""

from __future__ import annotations

from typing import Final

from bookkeeper.seams import File

AHEAD: Final = 16 << 20
"""So many bytes are asked for before they are needed."""

STEP: Final = 1 << 20
"""The system takes no more than a small part of a longer piece of advice."""


class FileReadAhead:
    """Of one file that is read from its beginning to its end."""

    def __init__(self, file: File) -> None:
        self._file, self._size = file, file.size()
        self._asked = 0
        self.reached(0)

    def reached(self, offset: int) -> None:
        """Everything below ``offset`` was read."""
        self._asked = max(self._asked, offset)
        end = min(offset + AHEAD, self._size)
        while self._asked + STEP <= end or self._asked < end == self._size:
            size = min(STEP, end - self._asked)
            self._file.expect(self._asked, size)
            self._asked += size
